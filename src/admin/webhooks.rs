//! `/webhooks` and `/deliveries`: how partners' endpoints are doing, what failed and why, and sending it again.
//!
//! Rule: an answer of a receiver is shown as far as it was kept; what was sent to it is not shown at all.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::delivery::Attempt;
use vouchsafe_actors::domain::event_kind::EventKind;
use vouchsafe_actors::domain::ids::{DeliveryId, EventId, OrderId, PartnerId, WebhookId};

use super::operator::{Operator, Role};
use crate::errors::{ApiError, Code};
use crate::http::{Page, webhooks};
use crate::service::Service;
use crate::store::{
    DeliveryFilter, DeliveryState, DisabledReason, ShownDelivery, Webhook, WebhookFilter, WebhookStatus,
};

/// What endpoints are listed by.
const WEBHOOK_FILTERS: [&str; 2] = ["partner_id", "status"];

/// What deliveries are listed by.
const DELIVERY_FILTERS: [&str; 4] = ["partner_id", "webhook_id", "order_id", "status"];

/// An endpoint, whose it is, and how it is doing.
#[derive(Serialize, ToSchema)]
pub(super) struct WebhookOfPartner {
    /// Whose.
    partner_id: PartnerId,
    /// Its id.
    webhook_id: WebhookId,
    /// Where it is.
    url: String,
    /// What it is told of.
    events: Vec<EventKind>,
    /// What the partner calls it.
    #[schema(required)]
    description: Option<String>,
    /// How it is.
    status: WebhookStatus,
    /// Why it is told nothing; null while it is.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// Since when it is told nothing.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    disabled_at: Option<OffsetDateTime>,
    /// Failed attempts since the last that was taken.
    failures: i64,
    /// Since when every attempt has failed.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    failing_since: Option<OffsetDateTime>,
    /// When what failed is tried next.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
    /// Attempts that were taken, ever.
    delivered: i64,
    /// Attempts that were not.
    refused: i64,
    /// The part of all attempts that was taken, from 0 to 1; null before the first.
    #[schema(required)]
    success_rate: Option<f64>,
    /// How many events it has not seen to.
    behind: i64,
    /// When the oldest of them was committed.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    oldest_event_at: Option<OffsetDateTime>,
    /// Which node delivered last.
    #[schema(required)]
    node: Option<String>,
    /// When it was registered.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
    /// When it was last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

impl From<Webhook> for WebhookOfPartner {
    fn from(webhook: Webhook) -> Self {
        Self {
            status: webhook.status(),
            events: webhook.kinds.iter().collect(),
            success_rate: rate(webhook.delivered, webhook.refused),
            partner_id: webhook.partner_id,
            webhook_id: webhook.webhook_id,
            url: webhook.url,
            description: webhook.description,
            disabled_reason: webhook.disabled.map(|(reason, _)| reason),
            disabled_at: webhook.disabled.map(|(_, at)| at),
            failures: webhook.failures,
            failing_since: webhook.failing_since,
            next_attempt_at: webhook.next_attempt_at,
            delivered: webhook.delivered,
            refused: webhook.refused,
            behind: webhook.behind,
            oldest_event_at: webhook.oldest_event_at,
            node: webhook.leased_by,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a part, to be looked at
fn rate(delivered: i64, refused: i64) -> Option<f64> {
    let all = delivered.checked_add(refused).filter(|all| *all > 0)?;
    Some(delivered as f64 / all as f64)
}

/// A delivery that failed, waits behind one that did, or is replayed. What is taken at once has none.
#[derive(Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(super) struct DeliveryBody {
    /// Its id.
    delivery_id: DeliveryId,
    /// Whose.
    partner_id: PartnerId,
    /// To which endpoint.
    webhook_id: WebhookId,
    /// Of which event.
    event_id: EventId,
    /// Of which order.
    order_id: OrderId,
    /// Where it stands.
    status: DeliveryState,
    /// Failed attempts, since it was begun or replayed.
    failed_attempts: i32,
    /// When it is tried next; null where it waits for an earlier one of its order, or is over.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
    /// The attempts, oldest first.
    attempts: Vec<Attempt>,
    /// When the event was committed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    event_at: OffsetDateTime,
    /// When something about it last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

impl From<ShownDelivery> for DeliveryBody {
    fn from(shown: ShownDelivery) -> Self {
        Self {
            delivery_id: shown.delivery_id,
            partner_id: shown.partner_id,
            webhook_id: shown.webhook_id,
            event_id: shown.event_id,
            order_id: shown.order_id,
            status: shown.state,
            failed_attempts: shown.attempts,
            next_attempt_at: shown.next_attempt_at,
            attempts: shown.log,
            event_at: shown.event_at,
            updated_at: shown.updated_at,
        }
    }
}

/// `GET /webhooks`; filters: `partner_id`, `status`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &WEBHOOK_FILTERS)?;
    let filter = WebhookFilter {
        partner_id: page.parsed("partner_id")?,
        status: page.one_of("status", &WebhookStatus::ALL, WebhookStatus::as_str)?,
    };
    let found = service
        .store
        .list_webhooks(filter, page.after()?, page.fetch())
        .await?;
    let bodies = found.into_iter().map(WebhookOfPartner::from).collect();
    Ok(page.answer(bodies, |body: &WebhookOfPartner| body.webhook_id.to_string()))
}

/// `POST /webhooks/{webhook_id}/enable`: whoever switched it off; and what waits is tried at once.
pub(super) async fn enable(
    service: web::Data<Service>,
    operator: Operator,
    webhook_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let webhook_id = webhook_id.parse().map_err(|_| webhooks::not_found())?;
    let enabled = service.store.enable_webhook(webhook_id, by).await?;
    let enabled = enabled.ok_or_else(webhooks::not_found)?;
    service.deliveries.rest(webhook_id).await;
    Ok(HttpResponse::Ok().json(WebhookOfPartner::from(enabled)))
}

/// `GET /deliveries`; filters: `partner_id`, `webhook_id`, `order_id`, `status`.
pub(super) async fn deliveries(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &DELIVERY_FILTERS)?;
    let filter = DeliveryFilter {
        partner_id: page.parsed("partner_id")?,
        webhook_id: page.parsed("webhook_id")?,
        order_id: page.parsed("order_id")?,
        state: page.one_of("status", &DeliveryState::ALL, DeliveryState::as_str)?,
    };
    let found = service
        .store
        .list_deliveries(filter, page.after()?, page.fetch())
        .await?;
    let bodies = found.into_iter().map(DeliveryBody::from).collect();
    Ok(page.answer(bodies, |body: &DeliveryBody| body.delivery_id.to_string()))
}

/// `POST /deliveries/{delivery_id}/replay`: with 24 hours of its own.
pub(super) async fn replay(
    service: web::Data<Service>,
    operator: Operator,
    delivery_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let not_found = || ApiError::new(Code::DeliveryNotFound, "there is no such delivery");
    let delivery_id = delivery_id.parse().map_err(|_| not_found())?;
    let replayed = service.store.replay_delivery(delivery_id, by).await?;
    let replayed = replayed.ok_or_else(not_found)?;
    service.deliveries.wake(replayed.webhook_id).await;
    Ok(HttpResponse::Ok().json(DeliveryBody::from(replayed)))
}
