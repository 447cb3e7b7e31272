//! What is done with an endpoint: a new secret, a test, a replay.

use std::sync::Arc;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::delivery::{Ending, Fault};
use vouchsafe_actors::domain::event_kind::EventKind;
use vouchsafe_actors::domain::ids::EventId;

use super::{WebhookBody, new_secret, not_found, parse_id, request};
use crate::delivery::{Parcel, sample};
use crate::errors::{ApiError, Code};
use crate::http::caller::{General, Signed};
use crate::service::Service;
use crate::store::{By, MAX_REPLAYED, Replayed, WebhookRotation};
use crate::trace;

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub(in crate::http) struct TestBody {
    /// The id of the sample; it is in no feed.
    event_id: EventId,
    /// What it was a sample of.
    event: EventKind,
    /// Whether the endpoint took it: a 2xx within five seconds.
    delivered: bool,
    /// The status of its answer; null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no answer; null if there was one.
    #[schema(required)]
    fault: Option<Fault>,
    /// How long it took.
    latency_ms: u32,
}

/// How much is sent again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookReplay)]
pub(in crate::http) struct ReplayedBody {
    /// How many events.
    replayed: usize,
}

/// `POST /webhooks/{webhook_id}/rotate`. A body may be left out.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`.
pub(in crate::http) async fn rotate(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let overlap_s = request::overlap(&signed.body)?;
    let (secret, sealed) = new_secret(&service, webhook_id).await?;
    let rotation = WebhookRotation {
        partner_id,
        webhook_id,
        secret: sealed,
        overlap_s,
    };
    let by = By::partner(partner_id, trace::current());
    let rotated = service.store.rotate_webhook(rotation, by).await?;
    rotated.ok_or_else(not_found)?;
    service.deliveries.rest(webhook_id).await;
    let webhook = service.store.find_webhook(Some(partner_id), webhook_id).await?;
    let webhook = webhook.ok_or_else(not_found)?;
    let secret = secret.text();
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(WebhookBody::of(&webhook, Some(&secret))))
}

/// `POST /webhooks/{webhook_id}/test`: sends a sample now, and says what came of it. A body may be left out.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`.
pub(in crate::http) async fn test(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let event = request::tested(&signed.body)?;
    let target = service.store.webhook_target(partner_id, webhook_id).await?;
    let target = target.ok_or_else(not_found)?;
    let broken = || ApiError::new(Code::InternalError, "the sample could not be written");
    let envelope = sample(partner_id, event, service.clock.now()).ok_or_else(broken)?;
    let parcel = Parcel {
        id: envelope.event_id.to_string(),
        body: serde_json::to_vec(&envelope).map_err(|_| broken())?,
        test: true,
    };
    let (answered, took) = service.sender.post(Arc::new(target), parcel).await;
    Ok(HttpResponse::Ok().json(TestBody {
        event_id: envelope.event_id,
        event,
        delivered: answered.ending() == Ending::Delivered,
        status: answered.status.ok(),
        fault: answered.status.err(),
        latency_ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
    }))
}

/// `POST /webhooks/{webhook_id}/replay`: sends events again, as deliveries of their own 24 hours.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`, `EVENT_NOT_FOUND`.
pub(in crate::http) async fn replay(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let wish = request::wish(&signed.body, service.clock.now())?;
    let by = By::partner(partner_id, trace::current());
    let replayed = service
        .store
        .replay_events(partner_id, webhook_id, wish, by)
        .await?;
    match replayed {
        Replayed::Again(replayed) => {
            service.deliveries.wake(webhook_id).await;
            Ok(HttpResponse::Accepted().json(ReplayedBody { replayed }))
        }
        Replayed::NoWebhook => Err(not_found()),
        Replayed::NoEvent => Err(crate::http::events::not_found()),
        Replayed::TooMany => Err(ApiError::invalid(
            "from",
            format!("more than {MAX_REPLAYED} events; ask for a shorter time"),
        )),
    }
}
