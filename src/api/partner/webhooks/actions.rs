//! Webhook endpoint actions: secret rotation, retry and event replay.

use actix_web::{HttpResponse, web};
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_domain::webhook::Webhook;
use vouchsafe_store::{MAX_REPLAYED, ReplayOutcome, WebhookSecretRotation};
use vouchsafe_wire::partner::webhooks::body::WebhookBody;
use vouchsafe_wire::partner::webhooks::replay::WebhookReplay;
use vouchsafe_wire::partner::webhooks::request;

use super::{generate_secret, with_secret};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::partner::PartnerState;
use crate::api::path_id::{Id, PathId as _};
use crate::service::Service;

/// The body is optional.
pub(in crate::api::partner) async fn rotate(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let partner_id = signed.caller.partner_id();
    let overlap_s = request::parse_overlap(&signed.body)?;
    let (secret, sealed) = generate_secret(&service, webhook_id).await?;
    let rotation = WebhookSecretRotation {
        partner_id,
        webhook_id,
        secret: sealed,
        overlap_s,
    };
    let actor = signed.caller.audit_actor();
    let rotated = service.store.webhooks.rotate_secret(rotation, actor).await?;
    rotated.ok_or_else(WebhookId::not_found)?;
    service.deliveries.release(webhook_id).await;
    let webhook = service.store.webhooks.find(Some(partner_id), webhook_id).await?;
    let webhook = webhook.ok_or_else(WebhookId::not_found)?;
    Ok(with_secret(HttpResponse::Ok(), &webhook, &secret))
}

/// Attempts everything that waits at once.
pub(in crate::api::partner) async fn retry(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let (partner_id, actor) = (signed.caller.partner_id(), signed.caller.audit_actor());
    let webhook = service
        .store
        .webhooks
        .retry(Some(partner_id), webhook_id, actor)
        .await?;
    let webhook = webhook.ok_or_else(WebhookId::not_found)?;
    notify_of_retry(&service, &webhook).await;
    Ok(HttpResponse::Accepted().json(WebhookBody::of(&webhook, None)))
}

/// A failing endpoint has lost its lease, so that its actor notices only when it writes; one that works reads
/// what is due.
pub(in crate::api) async fn notify_of_retry(service: &Service, webhook: &Webhook) {
    if webhook.failures >= i64::from(FAILING_THRESHOLD) {
        service.deliveries.release(webhook.webhook_id).await;
    } else {
        service.deliveries.wake(webhook.webhook_id).await;
    }
}

/// Delivers events again, with a new retry period of 24 hours.
pub(in crate::api::partner) async fn replay(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let replay_request = request::parse_replay(&signed.body, service.clock.now())?;
    let (partner_id, actor) = (signed.caller.partner_id(), signed.caller.audit_actor());
    let replay = service
        .store
        .deliveries
        .replay_events(partner_id, webhook_id, replay_request, actor);
    replay_response(&service, webhook_id, replay.await?).await
}

/// The response to a replay, whose deliveries begin now.
pub(in crate::api) async fn replay_response(
    service: &Service,
    webhook_id: WebhookId,
    replayed: ReplayOutcome,
) -> ApiResult {
    match replayed {
        ReplayOutcome::Scheduled(replayed) => {
            service.deliveries.wake(webhook_id).await;
            Ok(HttpResponse::Accepted().json(WebhookReplay { replayed }))
        }
        ReplayOutcome::WebhookNotFound => Err(WebhookId::not_found()),
        ReplayOutcome::EventNotFound => Err(crate::api::partner::events::not_found()),
        ReplayOutcome::TooManyEvents => Err(ApiError::invalid_field(
            "from",
            format!(
                "the range has more than {MAX_REPLAYED} events or changes of orders, or too many large orders; choose a \
                 shorter one"
            ),
        )),
    }
}
