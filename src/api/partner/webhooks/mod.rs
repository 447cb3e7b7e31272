//! `/webhooks`: register, list, update and delete webhook endpoints.
//!
//! A signing secret is returned only by the request that created it. Every response shows the status of an
//! endpoint, the reason if it is disabled, and the next delivery attempt.

mod actions;
mod attempts;
mod test;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, HttpResponseBuilder, web};
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_domain::webhook::Webhook;
use vouchsafe_security::vault::seal::WebhookSecret;
use vouchsafe_store::{MAX_WEBHOOKS, PutWebhookOutcome, PutWebhookRequest};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::webhooks::body::WebhookBody;
use vouchsafe_wire::partner::webhooks::request;

pub(in crate::api) use self::actions::{notify_of_retry, replay_response};
pub(super) use self::actions::{replay, retry, rotate};
pub(in crate::api) use self::attempts::attempts_response;
pub(super) use self::attempts::list as list_attempts;
pub(super) use self::test::test;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::list_response;
use crate::api::middleware::authentication::{AuthenticatedCaller, General, VerifiedRequest};
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::path_id::{Id, PathId as _};
use crate::service::Service;

/// Registers an endpoint, or updates the one with this id or URL.
pub(super) async fn put(service: web::Data<PartnerState>, signed: VerifiedRequest<General>) -> ApiResult {
    let requested = request::parse(&signed.body)?;
    let url = match &requested.url {
        None => None,
        Some(url) => {
            let checked = service.sender.check(url).await;
            Some(checked.map_err(|error| ApiError::invalid_field("url", error.to_string()))?)
        }
    };
    let partner_id = signed.caller.partner_id();
    let new_id = WebhookId::generate();
    let (secret, sealed) = generate_secret(&service, requested.webhook_id.unwrap_or(new_id)).await?;
    let put = PutWebhookRequest {
        partner_id,
        webhook_id: requested.webhook_id,
        url,
        kinds: requested.kinds,
        description: requested.description,
        enabled: requested.enabled,
        new_id,
        secret: sealed,
        url_key: service.keyring.vault().fingerprints().clone(),
    };
    let actor = signed.caller.audit_actor();
    match service.store.webhooks.put(put, actor).await? {
        PutWebhookOutcome::Created(webhook) => Ok(with_secret(HttpResponse::Created(), &webhook, &secret)),
        PutWebhookOutcome::Moved(webhook) => {
            service.deliveries.release(webhook.webhook_id).await;
            Ok(with_secret(HttpResponse::Ok(), &webhook, &secret))
        }
        PutWebhookOutcome::Updated(webhook) => {
            service.deliveries.release(webhook.webhook_id).await;
            Ok(HttpResponse::Ok().json(WebhookBody::of(&webhook, None)))
        }
        PutWebhookOutcome::NotFound => Err(WebhookId::not_found()),
        PutWebhookOutcome::UrlTaken => Err(ApiError::invalid_field(
            "url",
            "another of your endpoints has this URL; update that one",
        )),
        PutWebhookOutcome::TooMany => Err(ApiError::new(
            Code::WebhookLimitReached,
            format!("the limit of {MAX_WEBHOOKS} webhook endpoints is reached; delete one first"),
        )),
    }
}

/// A response that shows the new secret of an endpoint.
fn with_secret(mut response: HttpResponseBuilder, webhook: &Webhook, secret: &WebhookSecret) -> HttpResponse {
    let secret = secret.text();
    response
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(WebhookBody::of(webhook, Some(&secret)))
}

/// Lists the endpoints, oldest first.
pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList,
) -> ApiResult {
    let after: Option<WebhookId> = page.after()?;
    let mut webhooks = service
        .store
        .webhooks
        .list_by_partner(caller.partner_id())
        .await?;
    webhooks.retain(|webhook| after.is_none_or(|after| webhook.webhook_id > after));
    let bodies = webhooks.iter().map(|webhook| WebhookBody::of(webhook, None));
    list_response(&page, bodies, |body| body.webhook_id)
}

pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    webhook_id: Id<WebhookId>,
) -> ApiResult {
    let webhooks = &service.store.webhooks;
    let found = webhooks
        .find(Some(caller.partner_id()), webhook_id.parse()?)
        .await?;
    let found = found.ok_or_else(WebhookId::not_found)?;
    Ok(HttpResponse::Ok().json(WebhookBody::of(&found, None)))
}

pub(super) async fn remove(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let partner_id = signed.caller.partner_id();
    let actor = signed.caller.audit_actor();
    let url_key = service.keyring.vault().fingerprints().clone();
    if !service
        .store
        .webhooks
        .remove(partner_id, webhook_id, url_key, actor)
        .await?
    {
        return Err(WebhookId::not_found());
    }
    service.deliveries.release(webhook_id).await;
    Ok(HttpResponse::NoContent().finish())
}

/// Generates a secret and returns it in plain text and encrypted.
async fn generate_secret(
    service: &Service,
    webhook_id: WebhookId,
) -> Result<(WebhookSecret, Vec<u8>), ApiError> {
    let unavailable = |error: &dyn std::fmt::Display| {
        tracing::error!(error.message = %error, "cannot create a webhook secret");
        ApiError::unavailable()
    };
    let secret = WebhookSecret::generate().map_err(|error| unavailable(&error))?;
    let vault = service
        .keyring
        .sealing_vault()
        .await
        .map_err(|error| unavailable(&error))?;
    let sealed = vault
        .seal_webhook_secret(webhook_id.as_uuid(), &secret)
        .map_err(|error| unavailable(&error))?;
    Ok((secret, sealed))
}
