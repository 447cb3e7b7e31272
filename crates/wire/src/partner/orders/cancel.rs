//! Parsing and validation of the body that cancels an order or a payout.

use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use crate::error_body::InvalidRequest;
use crate::json;
use crate::partner::limits::DESCRIPTION;

/// Options of a cancellation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    #[serde(default)]
    #[schema(schema_with = reason_schema)]
    reason: Option<String>,
}

fn reason_schema() -> ObjectBuilder {
    DESCRIPTION.schema("Shown in the timeline, and in the event of an order.")
}

/// Parses the reason of a cancellation. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_reason(body: &[u8]) -> Result<Option<String>, InvalidRequest> {
    let CancelRequest { reason } = json::parse_optional(body)?;
    DESCRIPTION
        .check(reason.as_deref())
        .map_err(|message| InvalidRequest::field("reason", message))?;
    Ok(reason.filter(|reason| !reason.is_empty()))
}
