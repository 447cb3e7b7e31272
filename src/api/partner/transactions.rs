//! `GET /transactions`: ledger entries of a partner's wallets, newest first.

use actix_web::web;
use vouchsafe_domain::ledger::transaction::TransactionFilter;

use crate::api::error::ApiResult;
use crate::api::ledger;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<TransactionFilter>,
) -> ApiResult {
    ledger::transactions(&service.store, caller.partner_id(), &page, filter).await
}
