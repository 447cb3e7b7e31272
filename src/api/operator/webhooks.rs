//! `/webhooks` and `/deliveries`: state of partners' endpoints, failed deliveries, and replay.
//!
//! Responses of receivers are shown as far as they are stored; request bodies are never shown.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::webhooks::{
    DELIVERY_FILTERS, DeliveryBody, WEBHOOK_FILTERS, WebhookOfPartner, parse_delivery_filter,
    parse_webhook_filter,
};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::partner::webhooks;
use crate::service::Service;

/// `GET /webhooks`; filters: `partner_id`, `status`.
pub(super) async fn list_webhooks(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &WEBHOOK_FILTERS)?;
    let filter = parse_webhook_filter(&page)?;
    let endpoints = service
        .store
        .webhooks
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = endpoints.into_iter().map(WebhookOfPartner::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |body: &WebhookOfPartner| body.webhook_id.to_string())))
}

/// `POST /webhooks/{webhook_id}/enable`: enables the endpoint and retries its waiting deliveries at once.
pub(super) async fn enable(
    service: web::Data<Service>,
    operator: Operator,
    webhook_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let webhook_id = webhook_id.parse().map_err(|_| webhooks::not_found())?;
    let enabled = service.store.webhooks.enable(webhook_id, actor).await?;
    let enabled = enabled.ok_or_else(webhooks::not_found)?;
    service.deliveries.release(webhook_id).await;
    Ok(HttpResponse::Ok().json(WebhookOfPartner::from(enabled)))
}

/// `GET /deliveries`; filters: `partner_id`, `webhook_id`, `order_id`, `status`.
pub(super) async fn list_deliveries(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &DELIVERY_FILTERS)?;
    let filter = parse_delivery_filter(&page)?;
    let deliveries = service
        .store
        .deliveries
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = deliveries.into_iter().map(DeliveryBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |body: &DeliveryBody| body.delivery_id.to_string())))
}

/// `POST /deliveries/{delivery_id}/replay`: sends the delivery again, with a new retry window of 24 hours.
pub(super) async fn replay(
    service: web::Data<Service>,
    operator: Operator,
    delivery_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let not_found = || ApiError::new(Code::DeliveryNotFound, "no such delivery");
    let delivery_id = delivery_id.parse().map_err(|_| not_found())?;
    let replayed = service.store.deliveries.replay(delivery_id, actor).await?;
    let replayed = replayed.ok_or_else(not_found)?;
    service.deliveries.wake(replayed.webhook_id).await;
    Ok(HttpResponse::Ok().json(DeliveryBody::from(replayed)))
}
