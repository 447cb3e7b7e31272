//! Fields of a form: what an input is called, and the type, bounds, choices and need that the request type
//! gives it.

use std::borrow::Cow;

use serde_json::Value;
use vouchsafe_wire::operation::Method;

use crate::action::Action;
use crate::body_schema::{BodySchema, Property, has_type};
use crate::input::{Input, InputTarget};
use crate::value::label_of;

/// Characters: a longer text gets several lines.
const MAX_LINE: u64 = 200;

pub(crate) struct Field {
    /// Path of the field in the body, or placeholder of the API's path and query.
    pub(crate) name: Cow<'static, str>,
    pub(crate) label: Cow<'static, str>,
    pub(crate) kind: FieldKind,
    pub(crate) is_required: bool,
    /// Whether an empty input is null instead of omitted.
    pub(crate) is_nullable: bool,
    /// Whether the form begins with the object's value.
    pub(crate) is_prefilled: bool,
    pub(crate) hint: Cow<'static, str>,
}

pub(crate) enum FieldKind {
    Line,
    Paragraph,
    Number,
    Time,
    /// One of these.
    Choice(Vec<String>),
    /// Any of these.
    Choices(Vec<String>),
    Flag,
    /// A list of texts, one per line.
    Lines,
    /// Amounts by currency, one per line.
    Amounts,
    /// A rate limit `QUOTA/SECONDS`.
    Limit,
    /// The fields of an object, behind a flag if it can be null.
    Group(Vec<Field>),
    /// A file with one of these endings.
    File(&'static str),
    /// Objects of the body, from CSV with a header. They may contain codes: they are not shown again.
    Rows,
    /// A credential. It is not shown again.
    Secret,
    /// A parameter of the page. The operator does not see it.
    PageParameter,
}

impl FieldKind {
    pub(crate) const fn is_secret(&self) -> bool {
        matches!(self, Self::File(_) | Self::Rows | Self::Secret)
    }
}

impl Field {
    /// The last name of its path.
    pub(crate) fn key(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// This field and those of its group, with those of their groups.
    pub(crate) fn with_parts(&self) -> Vec<&Self> {
        let parts = match &self.kind {
            FieldKind::Group(fields) => fields.as_slice(),
            _ => &[],
        };
        let parts = parts.iter().flat_map(Self::with_parts);
        std::iter::once(self).chain(parts).collect()
    }

    fn of_input(input: &Input, method: Method, schema: &BodySchema) -> Self {
        let field = Self {
            name: input.name.into(),
            label: input.label.into(),
            kind: FieldKind::Line,
            is_required: true,
            is_nullable: false,
            is_prefilled: false,
            hint: input.hint.into(),
        };
        match input.target {
            InputTarget::PageParameter => Self {
                kind: FieldKind::PageParameter,
                ..field
            },
            InputTarget::File(endings) => Self {
                kind: FieldKind::File(endings),
                ..field
            },
            InputTarget::Placeholder { is_required, choices } => {
                let choices: Vec<_> = choices().into_iter().map(str::to_owned).collect();
                let kind = if choices.is_empty() {
                    FieldKind::Line
                } else {
                    FieldKind::Choice(choices)
                };
                Self {
                    kind,
                    is_required,
                    ..field
                }
            }
            InputTarget::Field => {
                // A test finds inputs that the body does not have.
                let Some(property) = schema.property(input.name) else {
                    return field;
                };
                let mut field = Self::of_property(field.name, field.label, &property, schema);
                if !input.hint.is_empty() {
                    field.hint = input.hint.into();
                }
                let is_change = matches!(method, Method::Put | Method::Patch);
                field.is_prefilled = (is_change || input.is_prefilled) && !field.kind.is_secret();
                // A patch requires nothing, but its form shows the value that the object has.
                let has_value = !field.is_nullable || matches!(field.kind, FieldKind::Choice(_));
                field.is_required |= matches!(method, Method::Patch) && has_value;
                field
            }
        }
    }

    fn of_property(
        name: Cow<'static, str>,
        label: Cow<'static, str>,
        property: &Property,
        schema: &BodySchema,
    ) -> Self {
        let kind = kind_of(&name, &property.schema, schema);
        let form = match kind {
            FieldKind::Amounts => " Such as USD 500.00, one per line.",
            FieldKind::Lines => " One per line.",
            _ => "",
        };
        let bounds = ["minimum", "maximum"].map(|bound| property.schema[bound].as_u64());
        let range = match bounds {
            [minimum, Some(maximum)] => format!("{} to {maximum}. ", minimum.unwrap_or_default()),
            _ => String::new(),
        };
        Self {
            name,
            label,
            is_required: property.is_required,
            is_nullable: property.is_nullable,
            is_prefilled: false,
            hint: format!("{range}{}{form}", property.description.replace('`', "")).into(),
            kind,
        }
    }
}

/// The fields of a form.
pub(crate) fn fields(action: &Action) -> Vec<Field> {
    let schema = (action.body)();
    let of_input = |input| Field::of_input(input, action.method(), &schema);
    action.inputs.iter().map(of_input).collect()
}

fn kind_of(name: &str, property: &Value, schema: &BodySchema) -> FieldKind {
    if let Some(choices) = choices_of(property) {
        return FieldKind::Choice(choices);
    }
    if has_type(property, "boolean") {
        return FieldKind::Flag;
    }
    if has_type(property, "array") {
        let items = schema.resolve(&property["items"]).schema;
        return match choices_of(&items) {
            Some(choices) => FieldKind::Choices(choices),
            None if items["properties"].is_object() => FieldKind::Rows,
            None => FieldKind::Lines,
        };
    }
    if has_type(property, "object") {
        let names = BodySchema::names(property);
        if names == ["quota", "window_s"] {
            return FieldKind::Limit;
        }
        if names.is_empty() {
            return FieldKind::Amounts;
        }
        let part = |key: String| {
            let label = label_of(&key);
            let property = schema.property_of(property, &key)?;
            Some(Field::of_property(
                format!("{name}.{key}").into(),
                label.into(),
                &property,
                schema,
            ))
        };
        return FieldKind::Group(names.into_iter().filter_map(part).collect());
    }
    let is_text = has_type(property, "string");
    if is_time(property) {
        FieldKind::Time
    } else if has_type(property, "integer") {
        FieldKind::Number
    } else if is_text && property["writeOnly"] == true {
        FieldKind::Secret
    } else if is_text && property["format"].is_null() && property["maxLength"].as_u64() > Some(MAX_LINE) {
        FieldKind::Paragraph
    } else {
        FieldKind::Line
    }
}

/// A time, or a date or a time.
fn is_time(schema: &Value) -> bool {
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    std::iter::once(schema)
        .chain(forms)
        .any(|form| form["format"] == "date-time")
}

fn choices_of(schema: &Value) -> Option<Vec<String>> {
    let choices = schema["enum"].as_array()?.iter();
    Some(choices.filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
