//! `/transactions`: every movement of money in this partner's wallets, newest first; those of a wallet by their numbers.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::{OrderId, PayoutId, TransactionId};
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::{Currency, Money};

use super::caller::Caller;
use super::list::Page;
use super::period;
use crate::errors::ApiError;
use crate::service::Service;
use crate::store::{Transaction, TransactionFilter};

/// What entries are listed by.
const FILTERS: [&str; 5] = ["from", "to", "order_id", "type", "currency"];

/// A movement of money in a wallet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transaction)]
pub struct TransactionBody {
    /// Its id.
    transaction_id: TransactionId,
    /// Why money moved.
    #[serde(rename = "type")]
    kind: LedgerKind,
    /// How much: positive into the wallet, negative out of it.
    amount: Money,
    /// Of what.
    currency: Currency,
    /// What the wallet held right after it.
    balance_after: Money,
    /// Counts the transactions of the wallet from 1, without a gap.
    #[schema(minimum = 1)]
    sequence: i64,
    /// The order that it belongs to.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// The payout that it belongs to.
    #[schema(required)]
    payout_id: Option<PayoutId>,
    /// What whoever moved the money called it.
    #[schema(required)]
    reference: Option<String>,
    /// When.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
}

impl From<Transaction> for TransactionBody {
    fn from(entry: Transaction) -> Self {
        Self {
            transaction_id: entry.transaction_id,
            kind: entry.kind,
            amount: entry.amount.of(entry.currency),
            currency: entry.currency,
            balance_after: entry.balance_after.of(entry.currency),
            sequence: entry.sequence,
            order_id: entry.order_id,
            payout_id: entry.payout_id.map(PayoutId::from_uuid),
            reference: entry.reference,
            created_at: entry.created_at,
        }
    }
}

/// `GET /transactions`; filters: `from`, `to`, `order_id`, `type`, `currency`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let filter = TransactionFilter {
        period: period::of(&page)?,
        order_id: page.parsed("order_id")?,
        kind: page.one_of("type", &LedgerKind::ALL, LedgerKind::as_str)?,
        currency: page.parsed("currency")?,
    };
    let found = service
        .store
        .list_transactions(caller.partner_id(), filter, page.after()?, page.limit())
        .await?;
    let bodies = found.entries.into_iter().map(TransactionBody::from).collect();
    Ok(HttpResponse::Ok().json(page.ending(bodies, found.next)))
}
