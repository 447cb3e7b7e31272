//! Inputs of forms: which field of a request an operator fills, and what the page calls it.
//!
//! Type, bounds, choices and need of a field are those of the request type: see [`crate::field`].

use strum::VariantArray;

/// The labels of an enum.
pub(crate) fn labels<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|variant| (*variant).into()).collect()
}

/// An input of a form.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    /// Path of the field in the body, or placeholder of the API's path and query.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) target: InputTarget,
    /// Whether the form begins with the object's value. That of a PUT or PATCH always does.
    pub(crate) is_prefilled: bool,
    /// Empty: the description of the field.
    pub(crate) hint: &'static str,
}

/// What an input fills.
#[derive(Clone, Copy)]
pub(crate) enum InputTarget {
    /// A field of the body.
    Field,
    /// A field of the body, with the page's parameter of this name. The operator does not see it.
    PageParameter,
    /// A placeholder of the API's path or query.
    Placeholder {
        is_required: bool,
        choices: fn() -> Vec<&'static str>,
    },
    /// The body: a file with one of these endings, the last input of its form. It is read while it arrives.
    File(&'static str),
}

impl Input {
    const fn new(name: &'static str, label: &'static str, target: InputTarget) -> Self {
        Self {
            name,
            label,
            target,
            is_prefilled: false,
            hint: "",
        }
    }

    pub(crate) const fn field(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, InputTarget::Field)
    }

    pub(crate) const fn page_parameter(name: &'static str) -> Self {
        Self::new(name, "", InputTarget::PageParameter)
    }

    pub(crate) const fn placeholder(name: &'static str, label: &'static str) -> Self {
        let (is_required, choices) = (true, Vec::new);
        Self::new(name, label, InputTarget::Placeholder { is_required, choices })
    }

    pub(crate) const fn optional_placeholder(name: &'static str, label: &'static str) -> Self {
        let (is_required, choices) = (false, Vec::new);
        Self::new(name, label, InputTarget::Placeholder { is_required, choices })
    }

    /// A placeholder for one of the labels of an enum.
    pub(crate) const fn choice<T>(name: &'static str, label: &'static str) -> Self
    where
        T: VariantArray + Copy + Into<&'static str>,
    {
        let (is_required, choices) = (true, labels::<T>);
        Self::new(name, label, InputTarget::Placeholder { is_required, choices })
    }

    pub(crate) const fn file(name: &'static str, label: &'static str, endings: &'static str) -> Self {
        Self::new(name, label, InputTarget::File(endings))
    }

    pub(crate) const fn prefilled(self) -> Self {
        Self {
            is_prefilled: true,
            ..self
        }
    }

    pub(crate) const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

/// Why an operator decides so.
pub(crate) const REASON: Input = Input::field("reason", "Reason");
