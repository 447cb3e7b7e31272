//! `GET /wallets`: a partner's balances and pending amounts.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::money::Currency;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::wallets::WalletBody;

use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::service::Service;

/// `GET /wallets`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &[])?;
    let wallets = service.node.list_wallets(caller.partner_id()).await?;
    let bodies = wallets.into_iter().map(WalletBody::of);
    let after = page.after::<Currency>()?;
    let bodies = bodies.filter(|body| after.is_none_or(|after| body.currency > after));
    Ok(
        HttpResponse::Ok().json(page.body(bodies.take(page.fetch_limit()).collect(), |body| {
            body.currency.to_string()
        })),
    )
}
