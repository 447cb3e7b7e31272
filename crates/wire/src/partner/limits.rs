//! Limits of texts and numbers in requests: each is checked and documented by the same constant.

use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use vouchsafe_domain::bounds;
use vouchsafe_domain::identifier::{self, IDENTIFIER_PATTERN};

use crate::error_body::InvalidRequest;

/// Longest accepted overlap of a rotation: a week.
pub(super) const MAX_OVERLAP_S: u32 = 604_800;

/// Overlap of a rotation by default (contract §3): a day.
pub(super) const DEFAULT_OVERLAP_S: u32 = 86_400;

/// A text that the partner chooses, without control characters: operators read it on terminals.
pub(super) struct TextLimit {
    max_chars: usize,
}

/// Longest reference of an order or a payout (contract §3), in characters.
const MAX_REFERENCE: usize = 128;

/// A reason or a description, which operators see too.
pub(super) const DESCRIPTION: TextLimit = TextLimit { max_chars: 500 };

/// Pattern of a text without control characters except tab and newline.
pub(super) const TEXT_WITH_LINES: &str = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$";

/// Pattern of a text without control characters.
pub(super) const NO_CONTROL_CHARACTERS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

impl TextLimit {
    /// Returns what is expected, unless the text is absent or valid.
    pub(super) fn check(&self, text: Option<&str>) -> Result<(), String> {
        let text = text.unwrap_or_default();
        if text.chars().count() <= self.max_chars && !text.contains(char::is_control) {
            return Ok(());
        }
        Err(format!(
            "expected at most {} characters, without control characters",
            self.max_chars
        ))
    }

    /// The schema of an optional field.
    pub(super) fn schema(&self, description: &str) -> ObjectBuilder {
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some(description))
            .max_length(Some(self.max_chars))
            .pattern(Some(NO_CONTROL_CHARACTERS))
    }
}

/// Normalizes the partner's own reference of an order or a payout, an identifier.
pub(super) fn parse_reference(text: Option<&str>) -> Result<Option<String>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let text = identifier::normalize(text).map_err(|error| format!("remove the {error}"))?;
    if text.chars().count() > MAX_REFERENCE {
        return Err(format!("expected at most {MAX_REFERENCE} characters"));
    }
    Ok(Some(text.into_owned()))
}

/// The schema of an optional reference.
pub(super) fn reference_schema(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some(format!(
            "{description} Returned without white space at its ends and in Unicode form C; invisible characters are refused."
        )))
        .max_length(Some(MAX_REFERENCE))
        .pattern(Some(IDENTIFIER_PATTERN))
}

/// The overlap of a rotation in seconds.
pub(super) fn overlap_s(requested: Option<u32>) -> Result<u32, InvalidRequest> {
    let seconds = requested.unwrap_or(DEFAULT_OVERLAP_S);
    if seconds <= MAX_OVERLAP_S {
        return Ok(seconds);
    }
    let message = format!("expected 0 to {MAX_OVERLAP_S} seconds");
    Err(InvalidRequest::field("overlap_seconds", message))
}

/// The schema of an optional overlap; the description gets the default.
pub(super) fn overlap_schema(description: &str) -> ObjectBuilder {
    let description = format!("{description} Default: {DEFAULT_OVERLAP_S} (a day).");
    whole_number(0, MAX_OVERLAP_S, &description)
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
}

/// The schema of a number within inclusive bounds.
pub(super) fn whole_number(min: u32, max: u32, description: &str) -> ObjectBuilder {
    bounds::whole_number(min, max).description(Some(description))
}
