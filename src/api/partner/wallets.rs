//! `GET /wallets`: a partner's balances and pending amounts.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Currency, Money};

use crate::api::middleware::authentication::AuthenticatedCaller;
use vouchsafe_wire::page::PageRequest;
use crate::api::error::ApiError;
use crate::service::Service;
use crate::store::WalletRow;

/// The balance in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Wallet)]
pub struct WalletBody {
    /// Currency of the wallet.
    currency: Currency,
    /// Amount that can be spent now.
    balance: Money,
    /// Amount debited for orders that are not delivered yet.
    pending_orders: Money,
    /// Amount debited for payouts that are not paid yet.
    pending_payouts: Money,
    /// When the balance last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

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
    Ok(HttpResponse::Ok().json(page.body(bodies.take(page.fetch_limit()).collect(), |body| {
        body.currency.to_string()
    })))
}

impl WalletBody {
    fn of(row: WalletRow) -> Self {
        Self {
            currency: row.currency,
            balance: row.balance.of(row.currency),
            pending_orders: row.pending_orders.of(row.currency),
            pending_payouts: row.pending_payouts.of(row.currency),
            updated_at: row.updated_at,
        }
    }
}
