//! Validation of display names, reasons, references and other short texts.

use vouchsafe_domain::identifier;

use crate::error_body::InvalidRequest;

/// Characters.
pub(super) const MAX_NAME: usize = 200;

/// Characters. Every response with the timeline contains the reason.
pub(super) const MAX_REASON: usize = 500;

/// Characters, as for an order.
pub(super) const MAX_REFERENCE: usize = 128;

/// Trims a display name and checks it: 1 to 200 characters, no control characters.
pub(super) fn validate_name(field: &str, text: &str) -> Result<String, InvalidRequest> {
    validate_text(field, text, MAX_NAME)
}

/// Trims and checks the reason of an operator.
pub(super) fn validate_reason(text: &str) -> Result<String, InvalidRequest> {
    validate_text("reason", text, MAX_REASON)
}

/// Normalizes the reference of a posting or payment, an identifier.
pub(super) fn validate_reference(text: &str) -> Result<String, InvalidRequest> {
    validate_identifier("reference", text, MAX_REFERENCE)
}

/// Normalizes a text that is an identity and checks its length: 1 to `max` characters.
pub(super) fn validate_identifier(field: &str, text: &str, max: usize) -> Result<String, InvalidRequest> {
    let text = identifier::normalize(text)
        .map_err(|error| InvalidRequest::field(field, format!("remove the {error}")))?;
    if (1..=max).contains(&text.chars().count()) {
        return Ok(text.into_owned());
    }
    Err(InvalidRequest::field(
        field,
        format!("expected 1 to {max} characters"),
    ))
}

/// Trims a text and checks it: 1 to `max` characters, no control characters.
pub(super) fn validate_text(field: &str, text: &str, max: usize) -> Result<String, InvalidRequest> {
    let text = text.trim();
    if (1..=max).contains(&text.chars().count()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let message = format!("expected 1 to {max} characters, without control characters");
    Err(InvalidRequest::field(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;

    #[test]
    fn reference_has_one_spelling() {
        for text in ["bank-S\u{f6}", " bank-S\u{f6}\u{a0}", "bank-So\u{308}"] {
            assert_eq!(validate_reference(text).unwrap(), "bank-S\u{f6}", "{text:?}");
        }
        let error = validate_reference("bank-1\u{200b}").unwrap_err();
        assert_eq!(
            error.details[0].message,
            "remove the invisible character (U+200B) at position 7"
        );
        for text in ["", " ", &"x".repeat(129)] {
            assert!(validate_reference(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn name_is_trimmed_and_checked_for_length_and_control_characters() {
        assert_eq!(validate_name("name", " Acme & Söhne ").unwrap(), "Acme & Söhne");
        assert!(validate_name("name", &"ß".repeat(200)).is_ok());
        for text in ["", "  ", "a\nb", "a\u{0}b", &"ß".repeat(201)] {
            let error = validate_name("name", text).unwrap_err();
            assert_eq!(
                (error.code, error.details[0].field.as_str()),
                (Code::ValidationFailed, "name"),
                "{text:?}"
            );
        }
    }
}
