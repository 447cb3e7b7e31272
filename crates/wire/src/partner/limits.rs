//! Limits of texts and numbers in requests: each is checked and documented by the same constant.

use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};

use crate::error_body::InvalidRequest;

/// Longest accepted overlap of a rotation: a week.
pub(super) const MAX_OVERLAP_S: u32 = 604_800;

/// Overlap of a rotation by default (contract §3): a day.
pub(super) const DEFAULT_OVERLAP_S: u32 = 86_400;

/// A text that the partner chooses.
pub(super) struct TextLimit {
    max_chars: usize,
    /// Characters that it must not contain.
    forbidden: Forbidden,
}

enum Forbidden {
    /// Postgres cannot store NUL in text.
    Nul,
    ControlCharacters,
}

/// The partner's own reference of an order or a payout (contract §3).
pub(super) const REFERENCE: TextLimit = TextLimit {
    max_chars: 128,
    forbidden: Forbidden::Nul,
};

/// A reason or a description, which operators see too.
pub(super) const DESCRIPTION: TextLimit = TextLimit {
    max_chars: 500,
    forbidden: Forbidden::ControlCharacters,
};

/// Pattern of a text without NUL.
pub(super) const NO_NUL: &str = r"^[^\u0000]*$";

/// Pattern of a text without control characters.
pub(super) const NO_CONTROL_CHARACTERS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

impl TextLimit {
    /// Returns what is expected, unless the text is absent or valid.
    pub(super) fn check(&self, text: Option<&str>) -> Result<(), String> {
        let text = text.unwrap_or_default();
        let (is_forbidden, without): (fn(char) -> bool, _) = match self.forbidden {
            Forbidden::Nul => (|c| c == '\0', " without NUL"),
            Forbidden::ControlCharacters => (char::is_control, ", without control characters"),
        };
        if text.chars().count() <= self.max_chars && !text.contains(is_forbidden) {
            return Ok(());
        }
        Err(format!("expected at most {} characters{without}", self.max_chars))
    }

    /// The schema of an optional field.
    pub(super) fn schema(&self, description: &str) -> ObjectBuilder {
        let pattern = match self.forbidden {
            Forbidden::Nul => NO_NUL,
            Forbidden::ControlCharacters => NO_CONTROL_CHARACTERS,
        };
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some(description))
            .max_length(Some(self.max_chars))
            .pattern(Some(pattern))
    }
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
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::UInt32)))
        .description(Some(description))
        .minimum(Some(min))
        .maximum(Some(max))
}
