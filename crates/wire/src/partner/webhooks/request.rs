//! Parsing and validation of the webhook request bodies.

use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_domain::ids::{EventId, WebhookId};
use vouchsafe_domain::webhook::MAX_URL_BYTES;

use crate::error_body::InvalidRequest;
use crate::json::{self, JsonObject};
use crate::period;

const MAX_DESCRIPTION: usize = 500;

/// Default overlap of a secret rotation: a day.
const DEFAULT_OVERLAP_S: u32 = 86_400;

/// Maximum overlap: a week.
const MAX_OVERLAP_S: u32 = 604_800;

/// The endpoint to register or update. An update leaves omitted fields unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WebhookRequest)]
#[serde(deny_unknown_fields)]
pub struct PutWebhookBody {
    /// URL of the endpoint: https to a public host. In the sandbox also http to the local machine.
    #[schema(max_length = 2048, examples("https://shop.example/vouchsafe"))]
    url: String,
    /// Events to subscribe to. All events by default.
    #[serde(default)]
    #[schema(min_items = 1)]
    events: Option<Vec<EventKind>>,
    /// Your description of the endpoint.
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    description: Option<String>,
    /// Whether to deliver events to the endpoint.
    #[serde(default)]
    enabled: Option<bool>,
    /// Endpoint to update. Without it, the endpoint with this URL is updated or a new one is registered.
    #[serde(default)]
    webhook_id: Option<WebhookId>,
}

/// Options of a secret rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = WebhookRotateRequest)]
#[serde(deny_unknown_fields)]
pub struct RotateSecretBody {
    /// How long deliveries are also signed with the previous secret, in seconds. Default: 86400 (a day).
    #[serde(default)]
    #[schema(maximum = 604_800)]
    overlap_seconds: Option<u32>,
}

/// Options of a test delivery.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = WebhookTestRequest)]
#[serde(deny_unknown_fields)]
pub struct TestWebhookBody {
    /// Event type of the sample. Default: `order.delivered`.
    #[serde(default)]
    event: Option<EventKind>,
}

/// The events to deliver again: one event, or a time range.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WebhookReplayRequest)]
#[serde(deny_unknown_fields)]
pub struct ReplayEventsBody {
    /// Event to deliver again.
    #[serde(default)]
    event_id: Option<EventId>,
    /// Start of the range, inclusive: a date (midnight UTC) or an RFC 3339 time.
    #[serde(default)]
    #[schema(examples("2026-11-20T12:00:00Z"))]
    from: Option<String>,
    /// End of the range, exclusive. Default: now.
    #[serde(default)]
    #[schema(examples("2026-11-21"))]
    to: Option<String>,
}

/// A validated endpoint.
#[derive(Debug)]
pub struct RequestedWebhook {
    pub url: String,
    pub kinds: Option<EventKinds>,
    pub description: Option<String>,
    pub enabled: Option<bool>,
    pub webhook_id: Option<WebhookId>,
}

/// Parses an endpoint. The caller checks the URL against the SSRF guard.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse(body: &[u8]) -> Result<RequestedWebhook, InvalidRequest> {
    let JsonObject(PutWebhookBody {
        url,
        events,
        description,
        enabled,
        webhook_id,
    }) = json::parse(body)?;
    if url.len() > MAX_URL_BYTES {
        let message = format!("expected at most {MAX_URL_BYTES} bytes");
        return Err(InvalidRequest::field("url", message));
    }
    let kinds = match events {
        None => None,
        Some(kinds) if EventKind::ALL.iter().all(|kind| kinds.contains(kind)) => Some(EventKinds::ALL),
        Some(kinds) => {
            let kinds = EventKinds::of(&kinds);
            Some(kinds.ok_or_else(|| {
                InvalidRequest::field(
                    "events",
                    "expected at least one event; omit the field for all events",
                )
            })?)
        }
    };
    let fits = |text: &String| text.chars().count() <= MAX_DESCRIPTION && !text.contains(char::is_control);
    if !description.as_ref().is_none_or(fits) {
        let message = format!("expected at most {MAX_DESCRIPTION} characters, without control characters");
        return Err(InvalidRequest::field("description", message));
    }
    Ok(RequestedWebhook {
        url,
        kinds,
        description,
        enabled,
        webhook_id,
    })
}

/// Parses the overlap of a secret rotation, in seconds. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_overlap(body: &[u8]) -> Result<u32, InvalidRequest> {
    let request: RotateSecretBody = parse_optional(body)?;
    let seconds = request.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_S);
    if seconds > MAX_OVERLAP_S {
        let message = format!("expected 0 to {MAX_OVERLAP_S} seconds");
        return Err(InvalidRequest::field("overlap_seconds", message));
    }
    Ok(seconds)
}

/// Parses the type of the sample event. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_test_event(body: &[u8]) -> Result<EventKind, InvalidRequest> {
    let request: TestWebhookBody = parse_optional(body)?;
    Ok(request.event.unwrap_or(EventKind::OrderDelivered))
}

/// Parses the events to deliver again. A range without an end ends now.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_replay(body: &[u8], now: OffsetDateTime) -> Result<ReplayRequest, InvalidRequest> {
    let JsonObject(ReplayEventsBody { event_id, from, to }) = json::parse(body)?;
    match (event_id, from, to) {
        (Some(event_id), None, None) => Ok(ReplayRequest::Event(event_id)),
        (None, Some(from), to) => {
            let read = |name, text: &str| {
                period::parse_timestamp(text).ok_or_else(|| period::invalid_timestamp(name))
            };
            let to = to.map_or(Ok(now), |to| read("to", &to))?;
            Ok(ReplayRequest::TimeRange(read("from", &from)?, to))
        }
        _ => Err(InvalidRequest::field(
            "event_id",
            "expected either event_id, or from and optionally to",
        )),
    }
}

/// Parses an optional body.
fn parse_optional<T: Default + serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, InvalidRequest> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let JsonObject(body) = json::parse(body)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;

    #[test]
    fn endpoint_with_unknown_or_invalid_field_is_rejected() {
        for (body, expected) in [
            (r#"{"url":"https://a.example/"}"#, None),
            (
                r#"{"url":"https://a.example/","events":["order.created"],"enabled":false,"description":"x"}"#,
                None,
            ),
            (
                r#"{"url":"https://a.example/","events":null,"enabled":null,"description":null,"webhook_id":null}"#,
                None,
            ),
            (
                r#"{"url":"https://a.example/","events":[]}"#,
                Some(Code::ValidationFailed),
            ),
            (
                r#"{"url":"https://a.example/","events":["order.lost"]}"#,
                Some(Code::ValidationFailed),
            ),
            (r#"{"url":1}"#, Some(Code::ValidationFailed)),
            ("{}", Some(Code::ValidationFailed)),
            (
                r#"{"url":"https://a.example/","secret":"x"}"#,
                Some(Code::ValidationFailed),
            ),
            (
                r#"{"url":"https://a.example/","webhook_id":"wh_1"}"#,
                Some(Code::ValidationFailed),
            ),
            (
                r#"{"url":"https://a.example/","description":"a\nb"}"#,
                Some(Code::ValidationFailed),
            ),
            ("", Some(Code::MalformedRequest)),
        ] {
            assert_eq!(
                parse(body.as_bytes()).err().map(|error| error.code),
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn replay_takes_one_event_or_a_time_range() {
        let now = time::macros::datetime!(2026-11-20 12:00 UTC);
        let event = format!(r#"{{"event_id":"evt_{}"}}"#, "0".repeat(32));
        for (body, is_valid) in [
            (event.as_str(), true),
            (r#"{"from":"2026-11-19"}"#, true),
            (r#"{"from":"2026-11-19","to":"2026-11-19T12:00:00Z"}"#, true),
            (r#"{"to":"2026-11-19"}"#, false),
            ("{}", false),
            (r#"{"from":"yesterday"}"#, false),
        ] {
            assert_eq!(parse_replay(body.as_bytes(), now).is_ok(), is_valid, "{body}");
        }
    }
}
