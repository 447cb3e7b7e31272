//! Validation of display names, reasons, references and other short texts.

use crate::error_body::InvalidRequest;

/// In characters.
pub(super) const MAX_NAME: usize = 200;

/// In characters. Every response with the timeline contains the reason.
pub(super) const MAX_REASON: usize = 500;

/// In characters, as for an order.
pub(super) const MAX_REFERENCE: usize = 128;

/// Trims a display name and checks it: 1 to 200 characters, no control characters.
pub(super) fn validate_name(field: &str, text: &str) -> Result<String, InvalidRequest> {
    validate_text(field, text, MAX_NAME)
}

/// Trims and checks the reason of an operator.
pub(super) fn validate_reason(text: &str) -> Result<String, InvalidRequest> {
    validate_text("reason", text, MAX_REASON)
}

/// Trims and checks the reference of a posting or payment.
pub(super) fn validate_reference(text: &str) -> Result<String, InvalidRequest> {
    validate_text("reference", text, MAX_REFERENCE)
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
