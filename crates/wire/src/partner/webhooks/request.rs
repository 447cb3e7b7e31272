//! Parsing and validation of the webhook request bodies.

use std::borrow::Cow;

use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::openapi::{RefOr, Schema};
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};
use vouchsafe_domain::identifier;
use vouchsafe_domain::ids::{EventId, WebhookId};
use vouchsafe_domain::period::{InvalidTimestamp, Period, parse_timestamp};
use vouchsafe_domain::schema::HttpUrl;
use vouchsafe_domain::text_schema::DateOrTime;
use vouchsafe_domain::webhook::MAX_URL_BYTES;

use crate::error_body::InvalidRequest;
use crate::json::{self, JsonObject};
use crate::partner::limits::{DESCRIPTION, overlap_s, overlap_schema};
use crate::schema::{Alternative, add_alternatives, any_of, one_of};

/// The fields of an endpoint, as [`PutWebhookBody`] permits. An update leaves omitted fields unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WebhookFields {
    /// URL of the endpoint: https to a public host. In the sandbox also http to the local machine.
    /// Another scheme, host or port than before replaces the secret.
    #[serde(default)]
    #[schema(value_type = Option<HttpUrl>)]
    url: Option<String>,
    /// Events to subscribe to. By default all that v1 began with: `order.created`, `order.processing`,
    /// `order.delivered`, `order.partially_delivered`, `order.cancelled`, `order.refunded`, `voucher.issued`.
    /// An event that is added later is sent to endpoints that name it.
    #[serde(default)]
    #[schema(value_type = Option<Vec<SubscribedEvent>>, min_items = 1)]
    events: Option<Vec<EventKind>>,
    #[serde(default)]
    #[schema(schema_with = description_schema)]
    description: Option<String>,
    /// Whether to deliver events to the endpoint.
    #[serde(default)]
    enabled: Option<bool>,
    /// Endpoint to update; it keeps its URL if none is given. Without it, the endpoint with this URL is
    /// updated or a new one is registered.
    #[serde(default)]
    webhook_id: Option<WebhookId>,
}

/// Type of an event in requests. Responses may have types that are added later, a request only those of this
/// document.
enum SubscribedEvent {}

impl utoipa::PartialSchema for SubscribedEvent {
    fn schema() -> RefOr<Schema> {
        EventKind::schema()
    }
}

impl ToSchema for SubscribedEvent {}

/// The endpoint to register or update: by its URL, or by its ID.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct PutWebhookBody(JsonObject<WebhookFields>);

impl PutWebhookBody {
    const ALTERNATIVES: [Alternative; 2] = [
        Alternative {
            name: "WebhookRegistration",
            description: "An endpoint to register, or to update if one has this URL.",
            required: &["url"],
            optional: &["events", "description", "enabled", "webhook_id"],
        },
        Alternative {
            name: "WebhookUpdate",
            description: "An endpoint to update by its ID.",
            required: &["webhook_id"],
            optional: &["url", "events", "description", "enabled"],
        },
    ];
}

impl utoipa::PartialSchema for PutWebhookBody {
    fn schema() -> RefOr<Schema> {
        any_of(
            &Self::ALTERNATIVES,
            "The endpoint to register or update: by its URL, or by its ID.",
        )
    }
}

impl ToSchema for PutWebhookBody {
    fn name() -> Cow<'static, str> {
        "WebhookRequest".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_alternatives::<WebhookFields>(&Self::ALTERNATIVES, schemas);
    }
}

/// Options of a secret rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookRotateRequest {
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = secret_overlap_schema)]
    overlap_seconds: Option<u32>,
}

fn description_schema() -> ObjectBuilder {
    DESCRIPTION.schema("Your description of the endpoint.")
}

fn secret_overlap_schema() -> ObjectBuilder {
    overlap_schema("How long deliveries are also signed with the previous secret, in seconds.")
}

/// Options of a test delivery.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTestRequest {
    /// Event type of the sample. Default: `order.delivered`.
    #[serde(default)]
    #[schema(value_type = Option<SubscribedEvent>)]
    event: Option<EventKind>,
}

/// The events to deliver again, as [`ReplayEventsBody`] permits.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayFields {
    /// Event to deliver again.
    #[serde(default)]
    event_id: Option<EventId>,
    /// Start of the range, inclusive: a date (midnight UTC) or an RFC 3339 time.
    #[serde(default)]
    #[schema(value_type = Option<DateOrTime>)]
    from: Option<String>,
    /// End of the range, exclusive. Default: now.
    #[serde(default)]
    #[schema(value_type = Option<DateOrTime>)]
    to: Option<String>,
}

/// The events to deliver again: one event, or a time range.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct ReplayEventsBody(JsonObject<ReplayFields>);

impl ReplayEventsBody {
    const ALTERNATIVES: [Alternative; 2] = [
        Alternative {
            name: "WebhookReplayEvent",
            description: "One event to deliver again.",
            required: &["event_id"],
            optional: &[],
        },
        Alternative {
            name: "WebhookReplayRange",
            description: "The events of a time range to deliver again.",
            required: &["from"],
            optional: &["to"],
        },
    ];

    /// One event, or the events of a time range that ends `now` without `to`.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate(self, now: OffsetDateTime) -> Result<ReplayRequest, InvalidRequest> {
        let Self(JsonObject(ReplayFields { event_id, from, to })) = self;
        match (event_id, from, to) {
            (Some(event_id), None, None) => Ok(ReplayRequest::Event(event_id)),
            (None, Some(from), to) => {
                let read = |name: &str, text: &str| {
                    parse_timestamp(text)
                        .ok_or_else(|| InvalidRequest::field(name, InvalidTimestamp.to_string()))
                };
                let to = to.map(|to| read("to", &to)).transpose()?;
                let from = read("from", &from)?;
                let period = Period { from: Some(from), to };
                period
                    .check()
                    .map_err(|error| InvalidRequest::field("to", error.to_string()))?;
                Ok(ReplayRequest::TimeRange(from, to.unwrap_or(now)))
            }
            _ => Err(InvalidRequest::field(
                "event_id",
                "expected either event_id, or from and optionally to",
            )),
        }
    }
}

impl utoipa::PartialSchema for ReplayEventsBody {
    fn schema() -> RefOr<Schema> {
        one_of(
            &Self::ALTERNATIVES,
            "The events to deliver again: one event, or a time range.",
        )
    }
}

impl ToSchema for ReplayEventsBody {
    fn name() -> Cow<'static, str> {
        "WebhookReplayRequest".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_alternatives::<ReplayFields>(&Self::ALTERNATIVES, schemas);
    }
}

/// A validated endpoint.
#[derive(Debug)]
pub struct RequestedWebhook {
    /// Present unless `webhook_id` is.
    pub url: Option<String>,
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
    let PutWebhookBody(JsonObject(WebhookFields {
        url,
        events,
        description,
        enabled,
        webhook_id,
    })) = json::parse(body)?;
    let url = url.as_deref().map(identifier::normalize).transpose();
    let url = url.map_err(|error| InvalidRequest::field("url", format!("remove the {error}")))?;
    match &url {
        None if webhook_id.is_none() => {
            let message = "expected the URL of the endpoint, or the `webhook_id` of one to update";
            return Err(InvalidRequest::field("url", message));
        }
        Some(url) if url.len() > MAX_URL_BYTES => {
            let message = format!("expected at most {MAX_URL_BYTES} bytes");
            return Err(InvalidRequest::field("url", message));
        }
        _ => {}
    }
    let kinds = match events {
        None => None,
        Some(kinds) => {
            let kinds = EventKinds::of(&kinds);
            Some(kinds.ok_or_else(|| {
                InvalidRequest::field(
                    "events",
                    "expected at least one event; omit the field for those that v1 began with",
                )
            })?)
        }
    };
    DESCRIPTION
        .check(description.as_deref())
        .map_err(|message| InvalidRequest::field("description", message))?;
    Ok(RequestedWebhook {
        url: url.map(Cow::into_owned),
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
    let request: WebhookRotateRequest = json::parse_optional(body)?;
    overlap_s(request.overlap_seconds)
}

/// Parses the type of the sample event. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_test_event(body: &[u8]) -> Result<EventKind, InvalidRequest> {
    let request: WebhookTestRequest = json::parse_optional(body)?;
    Ok(request.event.unwrap_or(EventKind::OrderDelivered))
}

/// Parses the body of a replay.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_replay(body: &[u8], now: OffsetDateTime) -> Result<ReplayRequest, InvalidRequest> {
    json::parse::<ReplayEventsBody>(body)?.validate(now)
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
    fn form_of_a_request_requires_a_field_that_is_not_null() {
        let mut schemas = Vec::new();
        PutWebhookBody::schemas(&mut schemas);
        let form = |name: &str| {
            let (_, schema) = schemas.iter().find(|(known, _)| known == name).unwrap();
            serde_json::to_value(schema).unwrap()
        };
        let (by_url, by_id) = (form("WebhookRegistration"), form("WebhookUpdate"));
        for (form, required, other) in [(&by_url, "url", "webhook_id"), (&by_id, "webhook_id", "url")] {
            assert_eq!(form["required"], serde_json::json!([required]));
            let [required, other] = [required, other].map(|field| form["properties"][field].to_string());
            assert!(!required.contains("null"), "{required}");
            assert!(other.contains("null"), "{other}");
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
            (r#"{"from":"2026-11-19","to":"2026-11-18"}"#, false),
            (r#"{"to":"2026-11-19"}"#, false),
            ("{}", false),
            (r#"{"from":"yesterday"}"#, false),
        ] {
            assert_eq!(parse_replay(body.as_bytes(), now).is_ok(), is_valid, "{body}");
        }
    }
}
