//! `/transactions`: ledger entries of a partner's wallets, newest first.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::TransactionId;
use vouchsafe_domain::ledger::transaction::TransactionFilter;

use crate::api::error::ApiResult;
use crate::api::ledger;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::path_id::{Id, PathId as _};

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<TransactionFilter>,
) -> ApiResult {
    let transactions = &service.store.transactions;
    let found = transactions
        .list(caller.partner_id(), filter, page.after()?, page.limit())
        .await?;
    ledger::transactions_response(&page, found)
}

pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    transaction_id: Id<TransactionId>,
) -> ApiResult {
    let transactions = &service.store.transactions;
    let found = transactions
        .find(caller.partner_id(), transaction_id.parse()?)
        .await?;
    let found = found.ok_or_else(TransactionId::not_found)?;
    Ok(HttpResponse::Ok().json(found))
}
