//! Bodies of `/sandbox/clock`, the test clock of a partner.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;
use vouchsafe_domain::sandbox_clock::{ClockAdvances, MAX_ADVANCE_S};

use crate::error_body::InvalidRequest;
use crate::json::{self, JsonObject};
use crate::partner::limits::whole_number;

/// How far to advance the clock.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxClockRequest {
    #[serde(deserialize_with = "vouchsafe_domain::whole_number::required")]
    #[schema(schema_with = advance_schema)]
    advance_seconds: u32,
}

fn advance_schema() -> ObjectBuilder {
    whole_number(
        1,
        MAX_ADVANCE_S,
        "By how much everything that exists becomes older, in seconds.",
    )
}

/// The test clock of a partner.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxClock)]
pub struct SandboxClockBody {
    /// The time by your clock.
    #[serde(with = "vouchsafe_domain::timestamp")]
    now: OffsetDateTime,
    /// The sum of all advances, in seconds.
    advanced_seconds: u64,
}

impl SandboxClockBody {
    #[must_use]
    pub fn of(advances: &ClockAdvances, now: OffsetDateTime) -> Self {
        let total = advances.total();
        Self {
            now: now
                .checked_add(total.try_into().unwrap_or_default())
                .unwrap_or(now),
            advanced_seconds: Duration::as_secs(&total),
        }
    }
}

/// Parses an advance, in seconds.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_advance(body: &[u8]) -> Result<u32, InvalidRequest> {
    let JsonObject(request): JsonObject<SandboxClockRequest> = json::parse(body)?;
    if (1..=MAX_ADVANCE_S).contains(&request.advance_seconds) {
        return Ok(request.advance_seconds);
    }
    Err(InvalidRequest::field(
        "advance_seconds",
        format!("expected 1 to {MAX_ADVANCE_S}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_is_bounded() {
        for (body, expected) in [
            (r#"{"advance_seconds":1}"#, Some(1)),
            (r#"{"advance_seconds":86400.0}"#, Some(86_400)),
            (r#"{"advance_seconds":2678400}"#, Some(MAX_ADVANCE_S)),
            (r#"{"advance_seconds":0}"#, None),
            (r#"{"advance_seconds":-1}"#, None),
            (r#"{"advance_seconds":2678401}"#, None),
            (r#"{"advance_days":1}"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(parse_advance(body.as_bytes()).ok(), expected, "{body}");
        }
    }
}
