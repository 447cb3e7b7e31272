//! `GET /transactions`: ledger entries of a partner's wallets, newest first.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ledger::transaction::TransactionFilter;

use crate::api::error::ApiError;
use crate::api::ledger;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

pub(super) async fn list(
    service: web::Data<Service>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<TransactionFilter>,
) -> Result<HttpResponse, ApiError> {
    ledger::transactions(&service.partner_store, caller.partner_id(), &page, filter).await
}
