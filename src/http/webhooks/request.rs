//! What may be said about endpoints on the wire, and what it means.

use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::event_kind::{EventKind, EventKinds};
use vouchsafe_actors::domain::ids::{EventId, WebhookId};

use crate::delivery::MAX_URL_BYTES;
use crate::errors::ApiError;
use crate::http::period;
use crate::json::{self, Object};
use crate::store::ReplayWish;

/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 500;

/// How long the former secret signs, too, unless it is said. Seconds: a day.
const DEFAULT_OVERLAP_S: u32 = 86_400;

/// The longest that it may. Seconds: a week.
const MAX_OVERLAP_S: u32 = 604_800;

/// An endpoint, as it is to be. What is left out of one that is there stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WebhookRequest {
    /// Where it is: https, or in the sandbox http to this machine. The host must be a public one.
    #[schema(max_length = 2048, examples("https://shop.example/vouchsafe"))]
    url: String,
    /// What it is told of; everything unless it is said.
    #[serde(default)]
    #[schema(min_items = 1)]
    events: Option<Vec<EventKind>>,
    /// What you call it.
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    description: Option<String>,
    /// Whether it is told anything.
    #[serde(default)]
    enabled: Option<bool>,
    /// Which one to change; without it the one with this URL, or a new one.
    #[serde(default)]
    webhook_id: Option<WebhookId>,
}

/// How a new secret takes over.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = WebhookRotateRequest)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RotateRequest {
    /// For how long the former secret signs, too, in seconds; a day unless it is said.
    #[serde(default)]
    #[schema(maximum = 604_800)]
    overlap_seconds: Option<u32>,
}

/// What a test sends.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = WebhookTestRequest)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TestRequest {
    /// A sample of which event; `order.delivered` unless it is said.
    #[serde(default)]
    event: Option<EventKind>,
}

/// What is sent again: one event, or those of a span of time.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WebhookReplayRequest)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ReplayRequest {
    /// One event.
    #[serde(default)]
    event_id: Option<EventId>,
    /// Those from this moment on: a date (its midnight in UTC) or an RFC 3339 time.
    #[serde(default)]
    #[schema(examples("2026-11-20T12:00:00Z"))]
    from: Option<String>,
    /// Those before this moment; up to now unless it is said.
    #[serde(default)]
    #[schema(examples("2026-11-21"))]
    to: Option<String>,
}

/// An endpoint that can be put.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) url: String,
    pub(super) kinds: Option<EventKinds>,
    pub(super) description: Option<String>,
    pub(super) enabled: Option<bool>,
    pub(super) webhook_id: Option<WebhookId>,
}

/// Reads a request for an endpoint; whether its URL may be is asked elsewhere.
pub(super) fn parse(body: &[u8]) -> Result<Wanted, ApiError> {
    let Object(WebhookRequest {
        url,
        events,
        description,
        enabled,
        webhook_id,
    }) = json::parse(body)?;
    if url.len() > MAX_URL_BYTES {
        let message = format!("expected at most {MAX_URL_BYTES} bytes");
        return Err(ApiError::invalid("url", message));
    }
    let kinds = match events {
        None => None,
        Some(kinds) if EventKind::ALL.iter().all(|kind| kinds.contains(kind)) => Some(EventKinds::ALL),
        Some(kinds) => {
            let kinds = EventKinds::of(&kinds);
            Some(kinds.ok_or_else(|| ApiError::invalid("events", "expected at least one event"))?)
        }
    };
    let fits = |text: &String| text.chars().count() <= MAX_DESCRIPTION && !text.contains(char::is_control);
    if !description.as_ref().is_none_or(fits) {
        let message = format!("expected at most {MAX_DESCRIPTION} characters, without control characters");
        return Err(ApiError::invalid("description", message));
    }
    Ok(Wanted {
        url,
        kinds,
        description,
        enabled,
        webhook_id,
    })
}

/// For how long the former secret signs, too. Seconds.
pub(super) fn overlap(body: &[u8]) -> Result<u32, ApiError> {
    let request: RotateRequest = optional(body)?;
    let seconds = request.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_S);
    if seconds > MAX_OVERLAP_S {
        let message = format!("expected 0 to {MAX_OVERLAP_S} seconds");
        return Err(ApiError::invalid("overlap_seconds", message));
    }
    Ok(seconds)
}

/// Of which event a test sends a sample.
pub(super) fn tested(body: &[u8]) -> Result<EventKind, ApiError> {
    let request: TestRequest = optional(body)?;
    Ok(request.event.unwrap_or(EventKind::OrderDelivered))
}

/// What is to be sent again.
pub(super) fn wish(body: &[u8], now: OffsetDateTime) -> Result<ReplayWish, ApiError> {
    let Object(ReplayRequest { event_id, from, to }) = json::parse(body)?;
    match (event_id, from, to) {
        (Some(event_id), None, None) => Ok(ReplayWish::Event(event_id)),
        (None, Some(from), to) => {
            let read = |name, text: &str| period::moment(text).ok_or_else(|| period::unreadable(name));
            let to = to.map_or(Ok(now), |to| read("to", &to))?;
            Ok(ReplayWish::Span(read("from", &from)?, to))
        }
        _ => Err(ApiError::invalid(
            "event_id",
            "expected either event_id, or from and perhaps to",
        )),
    }
}

/// A body that may be left out.
fn optional<T: Default + serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    json::parse::<Object<T>>(body).map(|Object(read)| read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Code;

    #[test]
    fn an_endpoint_is_read_strictly() {
        for (body, refused) in [
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
                refused,
                "{body}"
            );
        }
    }

    #[test]
    fn a_replay_is_of_one_event_or_of_a_span() {
        let now = time::macros::datetime!(2026-11-20 12:00 UTC);
        let event = format!(r#"{{"event_id":"evt_{}"}}"#, "0".repeat(32));
        for (body, fine) in [
            (event.as_str(), true),
            (r#"{"from":"2026-11-19"}"#, true),
            (r#"{"from":"2026-11-19","to":"2026-11-19T12:00:00Z"}"#, true),
            (r#"{"to":"2026-11-19"}"#, false),
            ("{}", false),
            (r#"{"from":"yesterday"}"#, false),
        ] {
            assert_eq!(wish(body.as_bytes(), now).is_ok(), fine, "{body}");
        }
    }
}
