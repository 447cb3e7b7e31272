//! `/audit` and `/audit/checkpoints`: the audit trail and its hash chain, newest first; a checkpoint on
//! request.

use actix_web::{HttpResponse, web};
use tracing::info;
use vouchsafe_domain::audit_log::{AuditFilter, CheckpointFilter};

use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::reports::Reports;

/// `GET /audit`.
pub(super) async fn list(
    reports: Reports,
    ListRequest { page, filter }: ListRequest<AuditFilter>,
) -> ApiResult {
    let (after, limit) = (page.after()?, page.fetch_limit());
    let rows = reports.read(async |store| store.audit_log.list(filter.clone(), after, limit).await);
    list_response(&page, rows.await?, |row| row.audit_id)
}

/// `GET /audit/checkpoints`.
pub(super) async fn list_checkpoints(
    service: web::Data<OperatorState>,
    reports: Reports,
    ListRequest { page, filter }: ListRequest<CheckpointFilter>,
) -> ApiResult {
    let (after, limit) = (page.after()?, page.fetch_limit());
    let key = filter.check.then(|| service.keyring.vault().checkpoint_key());
    let checkpoints =
        reports.read(async |store| store.audit_log.list_checkpoints(after, limit, key.clone()).await);
    list_response(&page, checkpoints.await?, |checkpoint| checkpoint.number)
}

/// `POST /audit/checkpoints`.
pub(super) async fn write_checkpoint(service: web::Data<OperatorState>, operator: Operator) -> ApiResult {
    let key = service.keyring.vault().checkpoint_key();
    let audit_log = &service.store.audit_log;
    let checkpoint = audit_log
        .write_checkpoints_now(key, operator.audit_actor())
        .await?;
    // The entry of this request is in one.
    let checkpoint = checkpoint.ok_or_else(ApiError::unavailable)?;
    // As for those of the background task: its hash covers all before it.
    info!(
        checkpoint.number = checkpoint.number,
        checkpoint.entries = checkpoint.entries,
        checkpoint.hash = checkpoint.hash,
        "audit checkpoint written"
    );
    Ok(HttpResponse::Ok().json(checkpoint))
}
