//! Wallets and transactions of a partner, as partners and operators list them.

use actix_web::HttpResponse;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::cursor::LedgerPage;
use vouchsafe_domain::money::Currency;
use vouchsafe_wire::page::PageRequest;

use super::error::ApiResult;
use super::list_request::list_response;
use crate::service::Service;

/// The page of a partner's wallets, by currency.
pub(super) async fn wallets(service: &Service, partner_id: PartnerId, page: &PageRequest) -> ApiResult {
    let wallets = service.node.list_wallets(partner_id).await?;
    let after = page.after::<Currency>()?;
    let wallets = wallets.into_iter();
    let wallets = wallets.filter(|wallet| after.is_none_or(|after| wallet.currency > after));
    let wallets = wallets.take(page.fetch_limit());
    list_response(page, wallets, |wallet| wallet.currency)
}

/// The page of a partner's transactions, newest first.
pub(super) fn transactions_response(page: &PageRequest, found: LedgerPage) -> ApiResult {
    // An entry has less than 1 KiB: its longest text is the reference.
    Ok(HttpResponse::Ok().json(page.body_of_small(&found.entries, found.next)?))
}
