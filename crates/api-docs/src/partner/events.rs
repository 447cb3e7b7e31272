//! Webhooks of the partner document: one request per kind of event, with a sample of each.

use serde_json::Value;
use strum::VariantArray as _;
use time::macros::datetime;
use utoipa::openapi::Required;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::sample_event::sample_event;
use vouchsafe_domain::schema::EXAMPLE_DIGITS;

use super::EVENTS;
use crate::openapi::{Webhook, text};

/// What the service does after each response, as docs/partner/webhooks.md says.
const RESPONSES: [(&str, &str); 4] = [
    ("2XX", "Accepted."),
    ("410", "Disables the endpoint."),
    ("4XX", "Not accepted: the delivery is retried for 24 hours."),
    (
        "5XX",
        "Not accepted: the delivery is retried for 24 hours. `Retry-After` extends the next gap.",
    ),
];

/// The webhooks of all kinds.
pub(super) fn webhooks() -> impl Iterator<Item = Webhook> {
    EventKind::VARIANTS.iter().map(|kind| webhook(*kind))
}

fn webhook(kind: EventKind) -> Webhook {
    let name: &'static str = kind.into();
    let header = |name, description, example| (name, Required::True, description, text(example));
    Webhook {
        name,
        id: format!("on{kind:?}"),
        tag: EVENTS,
        summary: format!("Receive {name}"),
        description: format!(
            "The event `{name}`, sent to your webhook endpoints that subscribe to it. Verify the signature, respond within 5 \
             seconds, and remember `event_id`: a delivery may come again."
        ),
        headers: vec![
            header(
                "webhook-id",
                "The `event_id`, the same on every attempt.",
                &event_id(),
            ),
            header(
                "webhook-timestamp",
                "Unix time of this attempt in seconds.",
                "1795262400",
            ),
            header(
                "webhook-signature",
                "Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of id, timestamp and body, separated by dots. Two, separated \
                 by a space, during a rotation of the secret.",
                "v1,dkInQEYYnCxSMcVFWHpQGUQPxNtWx2sQF0TslgE8pP8=",
            ),
            header(
                "X-Signature",
                "`t=<timestamp>,v1=<hex>`: HMAC-SHA256 of timestamp, dot and body. `,v1=` twice during a rotation of the secret.",
                "t=1795262400,v1=7ec2f7395a9e7853321ae83d8146aea1b425fcfbe02e90dbafd87f99e4331da3",
            ),
            (
                "X-Vouchsafe-Test",
                Required::False,
                "`true` on a sample of `POST /webhooks/{webhook_id}/test`.",
                text("true"),
            ),
        ],
        schema: kind.schema_name(),
        example: sample(kind),
        responses: &RESPONSES,
    }
}

fn event_id() -> String {
    format!("evt_{EXAMPLE_DIGITS}")
}

/// The sample event of this kind, with the ids of all examples: the document is the same on every node.
pub(crate) fn sample(kind: EventKind) -> Value {
    let at = datetime!(2026-11-20 12:00:00.123456 UTC);
    let partner_id = format!("ptn_{EXAMPLE_DIGITS}").parse().ok();
    let event = partner_id.and_then(|partner_id| sample_event(partner_id, kind, at));
    // Amounts serialize as raw JSON, which only a text keeps.
    let text = event.and_then(|event| serde_json::to_string(&event).ok());
    let mut event = text
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    replace_ids(&mut event);
    event
}

fn replace_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(replace_ids),
        Value::Array(items) => items.iter_mut().for_each(replace_ids),
        Value::String(text) => {
            if let Some((prefix, digits)) = text.split_once('_')
                && digits.len() == EXAMPLE_DIGITS.len()
            {
                *text = format!("{prefix}_{EXAMPLE_DIGITS}");
            }
        }
        _ => {}
    }
}
