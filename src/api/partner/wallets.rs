//! `GET /wallets`: a partner's balances and pending amounts.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::money::Currency;
use vouchsafe_wire::filter::WholeList;

use crate::api::error::ApiError;
use crate::api::list_request::list_response;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

pub(super) async fn list(
    service: web::Data<Service>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList<WholeList>,
) -> Result<HttpResponse, ApiError> {
    let wallets = service.node.list_wallets(caller.partner_id()).await?;
    let after = page.after::<Currency>()?;
    let wallets = wallets.into_iter();
    let wallets = wallets.filter(|wallet| after.is_none_or(|after| wallet.currency > after));
    let wallets = wallets.take(page.fetch_limit());
    Ok(list_response(&page, wallets, |wallet| wallet.currency))
}
