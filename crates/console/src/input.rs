//! Inputs of forms: what each field of a request is called, and how it is typed or chosen.

use strum::VariantArray;

/// The labels of an enum.
pub(crate) fn labels<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|variant| (*variant).into()).collect()
}

/// An input of a form.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    /// Path of the field in the body, or placeholder of the API's path.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: InputKind,
    pub(crate) is_required: bool,
    /// Whether an empty input is null instead of omitted.
    pub(crate) is_nullable: bool,
    /// Whether the form begins with the object's value.
    pub(crate) is_prefilled: bool,
    pub(crate) hint: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) enum InputKind {
    Line,
    Paragraph,
    Number,
    Choice(fn() -> Vec<&'static str>),
    Flag,
    /// A list of texts, one per line.
    Lines,
    /// An object, as JSON.
    Json,
    /// A rate limit `QUOTA/SECONDS`.
    Limit,
    /// A file with one of these endings as the body, the last input of its form. It is read while it arrives.
    File(&'static str),
    /// Objects of the body, from CSV with a header. They may contain codes: they are not shown again.
    Rows,
    /// A credential. It is not shown again.
    Secret,
    /// A parameter of the page. The operator does not see it.
    Param,
}

impl InputKind {
    pub(crate) const fn is_secret(self) -> bool {
        matches!(self, Self::File(_) | Self::Rows | Self::Secret)
    }
}

impl Input {
    pub(crate) const fn new(name: &'static str, label: &'static str, kind: InputKind) -> Self {
        Self {
            name,
            label,
            kind,
            is_required: true,
            is_nullable: false,
            is_prefilled: false,
            hint: "",
        }
    }

    pub(crate) const fn line(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, InputKind::Line)
    }

    pub(crate) const fn number(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, InputKind::Number)
    }

    pub(crate) const fn flag(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, InputKind::Flag)
    }

    /// One of the labels of an enum.
    pub(crate) const fn choice<T>(name: &'static str, label: &'static str) -> Self
    where
        T: VariantArray + Copy + Into<&'static str>,
    {
        Self::new(name, label, InputKind::Choice(labels::<T>))
    }

    pub(crate) const fn optional(self) -> Self {
        Self {
            is_required: false,
            ..self
        }
    }

    /// An input that shows the current value and resets it when it is empty.
    pub(crate) const fn current(self) -> Self {
        Self {
            is_required: false,
            is_nullable: true,
            is_prefilled: true,
            ..self
        }
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

/// Why an operator decides so, for the partner.
pub(crate) const REASON: Input =
    Input::new("reason", "Reason", InputKind::Paragraph).hint("The partner sees it in the timeline.");

/// Why an operator erases personal data.
pub(crate) const AUDITED_REASON: Input = Input::new("reason", "Reason", InputKind::Paragraph)
    .hint("The audit trail keeps it: do not repeat personal data.");
