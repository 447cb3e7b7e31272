//! `/wallets`: what a partner can spend, and what is under way.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Currency, Money};

use super::caller::Caller;
use super::list::Page;
use crate::errors::ApiError;
use crate::service::Service;
use crate::store::WalletRow;

/// A balance in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Wallet)]
pub(super) struct WalletBody {
    /// What it is counted in.
    currency: Currency,
    /// What can be spent now.
    balance: Money,
    /// What was debited for orders that are not yet delivered.
    pending_orders: Money,
    /// What was debited for payouts that are not yet paid.
    pending_payouts: Money,
    /// When the balance last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

/// `GET /wallets`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let wallets = service.node.list_wallets(caller.partner_id()).await?;
    let bodies = wallets.into_iter().map(WalletBody::of);
    let after = page.after::<Currency>()?;
    let bodies = bodies.filter(|body| after.is_none_or(|after| body.currency > after));
    Ok(page.answer(bodies.take(page.fetch()).collect(), |body| {
        body.currency.to_string()
    }))
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
