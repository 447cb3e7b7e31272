//! `GET /wallets`: a partner's balances and pending amounts.

use actix_web::web;
use vouchsafe_wire::filter::WholeList;

use crate::api::error::ApiResult;
use crate::api::ledger;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

pub(super) async fn list(
    service: web::Data<Service>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList<WholeList>,
) -> ApiResult {
    ledger::wallets(&service, caller.partner_id(), &page).await
}
