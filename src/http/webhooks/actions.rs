//! What is done with an endpoint: a new secret, a replay.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookBody, new_secret, not_found, parse_id, request};
use crate::errors::ApiError;
use crate::http::caller::{General, Signed};
use crate::service::Service;
use crate::store::{By, MAX_REPLAYED, Replayed, WebhookRotation};
use crate::trace;

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
