//! `GET /transactions`: ledger entries of a partner's wallets, newest first.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{OrderId, PayoutId, TransactionId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::money::{Currency, Money};

use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::period;
use crate::service::Service;
use crate::store::{Transaction, TransactionFilter};

const FILTERS: [&str; 5] = ["from", "to", "order_id", "type", "currency"];

/// A ledger entry of a wallet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transaction)]
pub struct TransactionBody {
    /// Identifies the transaction.
    transaction_id: TransactionId,
    /// What the transaction is for.
    #[serde(rename = "type")]
    kind: LedgerKind,
    /// Amount: positive for a credit, negative for a debit.
    amount: Money,
    /// Currency of the wallet.
    currency: Currency,
    /// Balance of the wallet after this transaction.
    balance_after: Money,
    /// Number of the transaction within its wallet, from 1 without gaps.
    #[schema(minimum = 1)]
    sequence: i64,
    /// Order that the transaction belongs to.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// Payout that the transaction belongs to.
    #[schema(required)]
    payout_id: Option<PayoutId>,
    /// Reference of the order, payout or posting.
    #[schema(required)]
    reference: Option<String>,
    /// When the transaction was posted.
    #[serde(with = "vouchsafe_domain::timestamp")]
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
    caller: AuthenticatedCaller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = TransactionFilter {
        period: period::from_page(&page)?,
        order_id: page.parsed_filter("order_id")?,
        kind: page.enum_filter("type", &LedgerKind::ALL, LedgerKind::as_str)?,
        currency: page.parsed_filter("currency")?,
    };
    let found = service
        .store
        .transactions
        .list(caller.partner_id(), filter, page.after()?, page.limit())
        .await?;
    let bodies = found.entries.into_iter().map(TransactionBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body_with_next(bodies, found.next)))
}
