//! `/webhooks`: where a partner is told of its events, and how that goes.
//!
//! Rules: a secret is in the answer that made it and nowhere else. Nothing is switched off in silence: status, reason and
//! next attempt are in every answer.

mod actions;
mod request;
mod test;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::event_kind::EventKind;
use vouchsafe_actors::domain::ids::WebhookId;

pub(super) use self::actions::{ReplayedBody, replay, rotate};
pub(in crate::http) use self::request::{ReplayRequest, RotateRequest, TestRequest, WebhookRequest};
pub(super) use self::test::{TestBody, test};
use super::caller::{Caller, General, Signed};
use super::list::Page;
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::{By, DisabledReason, MAX_WEBHOOKS, PutOutcome, PutWebhook, Webhook, WebhookStatus};
use crate::trace;
use crate::vault::seal::WebhookSecret;

/// An endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(super) struct WebhookBody<'a> {
    /// Its id.
    webhook_id: WebhookId,
    /// Where it is.
    url: &'a str,
    /// What it is told of.
    events: Vec<EventKind>,
    /// What you call it.
    #[schema(required)]
    description: Option<&'a str>,
    /// Whether it is told anything.
    enabled: bool,
    /// How it is.
    status: WebhookStatus,
    /// Why it is told nothing; null while it is.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// Since when it is told nothing.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    disabled_at: Option<OffsetDateTime>,
    /// Since when every attempt has failed; null if the last one did not.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    failing_since: Option<OffsetDateTime>,
    /// When what failed is tried next; null if nothing waits for that.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
    /// Until when the former secret signs, too; null without a rotation.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    previous_secret_expires_at: Option<OffsetDateTime>,
    /// When it was registered.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
    /// When it was last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
    /// What signs its deliveries: in the answer that made it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

impl<'a> WebhookBody<'a> {
    fn of(webhook: &'a Webhook, secret: Option<&'a str>) -> Self {
        Self {
            webhook_id: webhook.webhook_id,
            url: &webhook.url,
            events: webhook.kinds.iter().collect(),
            description: webhook.description.as_deref(),
            enabled: webhook.disabled.is_none(),
            status: webhook.status(),
            disabled_reason: webhook.disabled.map(|(reason, _)| reason),
            disabled_at: webhook.disabled.map(|(_, at)| at),
            failing_since: webhook.failing_since,
            next_attempt_at: webhook.next_attempt_at,
            previous_secret_expires_at: webhook.previous_until,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
            secret,
        }
    }
}

/// `POST /webhooks`: registers an endpoint, or changes the one with this id or URL.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`, `WEBHOOK_LIMIT_REACHED`.
pub async fn put(service: web::Data<Service>, signed: Signed<General>) -> Result<HttpResponse, ApiError> {
    let wanted = request::parse(&signed.body)?;
    let checked = service.sender.check(&wanted.url).await;
    checked.map_err(|error| ApiError::invalid("url", error.to_string()))?;
    let partner_id = signed.caller.partner_id();
    let webhook_id = WebhookId::generate();
    let (secret, sealed) = new_secret(&service, webhook_id).await?;
    let put = PutWebhook {
        partner_id,
        webhook_id: wanted.webhook_id,
        url: wanted.url,
        kinds: wanted.kinds,
        description: wanted.description,
        enabled: wanted.enabled,
        new: (webhook_id, sealed),
    };
    let by = By::partner(partner_id, trace::current());
    match service.store.put_webhook(put, by).await? {
        PutOutcome::Created(webhook) => {
            let secret = secret.text();
            let body = WebhookBody::of(&webhook, Some(&secret));
            Ok(HttpResponse::Created()
                .insert_header((CACHE_CONTROL, "no-store"))
                .json(body))
        }
        PutOutcome::Updated(webhook) => {
            service.deliveries.rest(webhook.webhook_id).await;
            Ok(HttpResponse::Ok().json(WebhookBody::of(&webhook, None)))
        }
        PutOutcome::NotFound => Err(not_found()),
        PutOutcome::UrlTaken => Err(ApiError::invalid("url", "another endpoint of yours has this URL")),
        PutOutcome::TooMany => Err(ApiError::new(
            Code::WebhookLimitReached,
            format!("{MAX_WEBHOOKS} endpoints are registered, the most there may be; delete one first"),
        )),
    }
}

/// `GET /webhooks`: oldest first.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let after: Option<WebhookId> = page.after()?;
    let mut webhooks = service.store.webhooks_of(caller.partner_id()).await?;
    webhooks.retain(|webhook| after.is_none_or(|after| webhook.webhook_id > after));
    let bodies = webhooks
        .iter()
        .map(|webhook| WebhookBody::of(webhook, None))
        .collect();
    Ok(page.answer(bodies, |body: &WebhookBody<'_>| body.webhook_id.to_string()))
}

/// `DELETE /webhooks/{webhook_id}`.
///
/// # Errors
/// `WEBHOOK_NOT_FOUND`, also for the endpoint of another partner.
pub async fn remove(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let by = By::partner(partner_id, trace::current());
    if !service.store.remove_webhook(partner_id, webhook_id, by).await? {
        return Err(not_found());
    }
    service.deliveries.rest(webhook_id).await;
    service.metrics.deliveries().forget(webhook_id);
    Ok(HttpResponse::NoContent().finish())
}

/// A new secret, and the same sealed.
async fn new_secret(service: &Service, webhook_id: WebhookId) -> Result<(WebhookSecret, Vec<u8>), ApiError> {
    let unavailable = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "a webhook's secret cannot be made");
        ApiError::unavailable()
    };
    let secret = WebhookSecret::generate().map_err(|error| unavailable(&error))?;
    let vault = service
        .keyring
        .sealing()
        .await
        .map_err(|error| unavailable(&error))?;
    let sealed = vault
        .seal_webhook_secret(webhook_id.as_uuid(), &secret)
        .map_err(|error| unavailable(&error))?;
    Ok((secret, sealed))
}

fn parse_id(text: &str) -> Result<WebhookId, ApiError> {
    text.parse().map_err(|_| not_found())
}

/// There is no such endpoint, or it is another partner's.
#[must_use]
pub fn not_found() -> ApiError {
    ApiError::new(
        Code::WebhookNotFound,
        "there is no such webhook endpoint; GET /webhooks lists them",
    )
}
