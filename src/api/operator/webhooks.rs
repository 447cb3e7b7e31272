//! `/webhooks` and `/deliveries`: state of partners' endpoints, failed deliveries, and replay.
//!
//! Responses of receivers are shown as far as they are stored. Payloads of events have no codes.

use actix_web::{HttpResponse, web};
use time::Duration;
use vouchsafe_domain::delivery::attempt::AttemptFilter;
use vouchsafe_domain::delivery::view::DeliveryFilter;
use vouchsafe_domain::ids::{DeliveryId, WebhookId};
use vouchsafe_domain::period::Period;
use vouchsafe_domain::webhook::WebhookFilter;
use vouchsafe_wire::operator::webhooks as operations;
use vouchsafe_wire::operator::webhooks::{
    DeliveryWithPayload, WebhookHealth, WebhookHealthSample, WebhookOfPartner,
};
use vouchsafe_wire::partner::webhooks::request::ReplayEventsBody;

use crate::api::endpoint::Endpoint;
use crate::api::error::ApiResult;
use crate::api::list_request::{ListRequest, ValidatedQuery, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::chart_range::ChartRange;
use crate::api::operator::endpoint::bind;
use crate::api::operator::reports::Reports;
use crate::api::partner::webhooks;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; operations::OPERATIONS.len()] {
    [
        bind(operations::LIST_WEBHOOKS, list_webhooks),
        bind(operations::GET_WEBHOOK, get_webhook),
        bind(operations::ENABLE_WEBHOOK, enable),
        bind(operations::RETRY_WEBHOOK, retry),
        bind(operations::REPLAY_WEBHOOK, replay_events),
        bind(operations::LIST_WEBHOOK_DELIVERIES, list_attempts),
        bind(operations::GET_WEBHOOK_HEALTH, health),
        bind(operations::LIST_DELIVERIES, list_deliveries),
        bind(operations::GET_DELIVERY, get_delivery),
        bind(operations::REPLAY_DELIVERY, replay),
    ]
}

/// `GET /webhooks`.
async fn list_webhooks(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<WebhookFilter>,
) -> ApiResult {
    let endpoints = service
        .store
        .webhooks
        .list(filter, page.after()?, page.fetch_limit());
    let bodies = endpoints.await?.into_iter().map(WebhookOfPartner::from);
    list_response(&page, bodies, |body| body.webhook_id)
}

/// `GET /webhooks/{webhook_id}`.
async fn get_webhook(service: web::Data<OperatorState>, webhook_id: Id<WebhookId>) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let webhook = service.store.webhooks.find(None, webhook_id).await?;
    let webhook = webhook.ok_or_else(WebhookId::not_found)?;
    Ok(HttpResponse::Ok().json(WebhookOfPartner::from(webhook)))
}

/// `POST /webhooks/{webhook_id}/enable`: enables the endpoint and retries its waiting deliveries at once.
async fn enable(
    service: web::Data<OperatorState>,
    operator: Operator,
    webhook_id: Id<WebhookId>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let webhook_id = webhook_id.parse()?;
    let enabled = service.store.webhooks.enable(webhook_id, actor).await?;
    let enabled = enabled.ok_or_else(WebhookId::not_found)?;
    service.deliveries.release(webhook_id).await;
    Ok(HttpResponse::Ok().json(WebhookOfPartner::from(enabled)))
}

/// `POST /webhooks/{webhook_id}/retry`: attempts everything that waits at once, also while the endpoint
/// fails.
async fn retry(
    service: web::Data<OperatorState>,
    operator: Operator,
    webhook_id: Id<WebhookId>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let webhook_id = webhook_id.parse()?;
    let webhook = service.store.webhooks.retry(None, webhook_id, actor).await?;
    let webhook = webhook.ok_or_else(WebhookId::not_found)?;
    webhooks::notify_of_retry(&service, &webhook).await;
    Ok(HttpResponse::Accepted().json(WebhookOfPartner::from(webhook)))
}

/// `POST /webhooks/{webhook_id}/replay`: sends an event, or those of a time range, again.
async fn replay_events(
    service: web::Data<OperatorState>,
    operator: Operator,
    webhook_id: Id<WebhookId>,
    Json(body): Json<ReplayEventsBody>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let webhook_id = webhook_id.parse()?;
    let replay_request = body.validate(service.clock.now())?;
    let store = &service.store;
    let webhook = store.webhooks.find(None, webhook_id).await?;
    let webhook = webhook.ok_or_else(WebhookId::not_found)?;
    let replay = store
        .deliveries
        .replay_events(webhook.partner_id, webhook_id, replay_request, actor);
    webhooks::replay_response(&service, webhook_id, replay.await?).await
}

/// `GET /webhooks/{webhook_id}/deliveries`.
async fn list_attempts(
    service: web::Data<OperatorState>,
    webhook_id: Id<WebhookId>,
    ListRequest { page, filter }: ListRequest<AttemptFilter>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let webhook = service.store.webhooks.find(None, webhook_id).await?;
    webhook.ok_or_else(WebhookId::not_found)?;
    webhooks::attempts_response(&service.store, webhook_id, &page, filter, service.clock.now()).await
}

/// Range without `from`.
const DEFAULT_HEALTH_RANGE: Duration = Duration::days(7);

/// `GET /webhooks/{webhook_id}/health`: attempts by hour.
async fn health(
    service: web::Data<OperatorState>,
    webhook_id: Id<WebhookId>,
    ValidatedQuery(period): ValidatedQuery<Period>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let webhook = service.store.webhooks.find(None, webhook_id).await?;
    webhook.ok_or_else(WebhookId::not_found)?;
    let range = ChartRange::new(period, service.clock.now(), Duration::HOUR, DEFAULT_HEALTH_RANGE);
    let rows = service
        .store
        .webhook_health
        .list(webhook_id, range.from, range.to, range.step);
    let samples = rows.await?.into_iter().map(|hours| WebhookHealthSample {
        at: hours.at,
        delivered: hours.delivered,
        failed: hours.failed,
        mean_latency_ms: hours.mean_ms,
        longest_latency_ms: hours.longest_ms,
    });
    Ok(HttpResponse::Ok().json(WebhookHealth {
        step_s: range.step * 3_600,
        data: samples.collect(),
    }))
}

/// `GET /deliveries`.
async fn list_deliveries(
    reports: Reports,
    ListRequest { page, filter }: ListRequest<DeliveryFilter>,
) -> ApiResult {
    let (after, limit) = (page.after()?, page.fetch_limit());
    let deliveries = reports.read(async |store| store.deliveries.list(filter, after, limit).await);
    list_response(&page, deliveries.await?, |delivery| delivery.delivery_id)
}

/// `GET /deliveries/{delivery_id}`.
async fn get_delivery(service: web::Data<OperatorState>, delivery_id: Id<DeliveryId>) -> ApiResult {
    let delivery_id = delivery_id.parse()?;
    let found = service.store.deliveries.find_with_event(delivery_id).await?;
    let (delivery, event) = found.ok_or_else(DeliveryId::not_found)?;
    let payload = event.and_then(|event| event.events.envelope(event.number));
    Ok(HttpResponse::Ok().json(DeliveryWithPayload { delivery, payload }))
}

/// `POST /deliveries/{delivery_id}/replay`: sends the delivery again, with a new retry window of 24 hours.
async fn replay(
    service: web::Data<OperatorState>,
    operator: Operator,
    delivery_id: Id<DeliveryId>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let delivery_id = delivery_id.parse()?;
    let replayed = service.store.deliveries.replay(delivery_id, actor).await?;
    let replayed = replayed.ok_or_else(DeliveryId::not_found)?;
    service.deliveries.wake(replayed.webhook_id).await;
    Ok(HttpResponse::Ok().json(replayed))
}
