//! Parsing and validation of the body of `POST /orders/{order_id}/cancel`.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error_body::InvalidRequest;
use crate::json;

const MAX_REASON_CHARS: usize = 500;

/// Options of a cancellation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Shown in the order's timeline and in the event.
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    reason: Option<String>,
}

/// Parses the reason of a cancellation. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_reason(body: &[u8]) -> Result<Option<String>, InvalidRequest> {
    if body.is_empty() {
        return Ok(None);
    }
    let CancelRequest { reason } = json::parse(body)?;
    let fits =
        |reason: &String| reason.chars().count() <= MAX_REASON_CHARS && !reason.contains(char::is_control);
    if !reason.as_ref().is_none_or(fits) {
        let message = format!("expected at most {MAX_REASON_CHARS} characters, without control characters");
        return Err(InvalidRequest::field("reason", message));
    }
    Ok(reason.filter(|reason| !reason.is_empty()))
}
