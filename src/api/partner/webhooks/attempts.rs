//! `GET /webhooks/{webhook_id}/deliveries`: the log of an endpoint's delivery attempts, newest first.

use actix_web::web;
use time::OffsetDateTime;
use vouchsafe_domain::delivery::attempt::AttemptFilter;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_store::PgStore;
use vouchsafe_wire::page::PageRequest;

use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::list_response;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::path_id::{Id, PathId as _};

pub(in crate::api::partner) async fn list(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<AttemptFilter>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let store = &service.store;
    let own = store
        .webhooks
        .find_target(caller.partner_id(), webhook_id)
        .await?;
    own.ok_or_else(WebhookId::not_found)?;
    attempts_response(store, webhook_id, &page, filter, service.clock.now()).await
}

/// A page of the attempts of an endpoint that the caller may see.
pub(in crate::api) async fn attempts_response(
    store: &PgStore,
    webhook_id: WebhookId,
    page: &PageRequest,
    filter: AttemptFilter,
    now: OffsetDateTime,
) -> ApiResult {
    if !filter.is_bounded(now) {
        let message = "`event` and `outcome=delivered` need `from`, at most two days before `to` or now";
        return Err(ApiError::invalid_field("from", message));
    }
    let attempts = store
        .deliveries
        .list_attempts(webhook_id, filter, page.after()?, page.fetch_limit());
    list_response(page, attempts.await?, |attempt| attempt.attempt_id)
}
