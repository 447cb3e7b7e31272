//! How is an order sold by one call? The stored function does it all, and the statement that calls it is the transaction.

use sqlx::{PgPool, Row};

use super::{LockedVouchers, SaleError, keys};
use crate::peer::response::voucher_product;
use crate::peer::draft::OrderDraft;
use crate::peer::refusal::StoredResponse;

/// What the function raises (see `sql/place_order.sql`).
const STOCK: &str = "VP001";
const FUNDS: &str = "VP002";
const KEY_TAKEN: &str = "VP003";

const PLACE_ORDER: &str = "SELECT replayed,
       fingerprint,
       status,
       body
  FROM place_order(
           $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

/// One statement.
///
/// # Errors
/// [`Unsold`], and nothing is written.
pub(super) async fn sell(pool: &PgPool, draft: &OrderDraft, held: LockedVouchers) -> Result<StoredResponse, SaleError> {
    let wanted = &draft.order;
    let order = draft.delivered();
    let skus: Vec<i32> = wanted.lines.iter().map(|line| line.sku_id).collect();
    let quantities: Vec<i32> = wanted.lines.iter().map(|line| line.quantity).collect();
    let products: Vec<String> = wanted.lines.iter().map(voucher_product).collect();
    let row = sqlx::query(PLACE_ORDER)
        .bind(draft.partner_id)
        .bind(draft.key.hash)
        .bind(&draft.key.fingerprint[..])
        .bind(draft.order_id)
        .bind(draft.transaction_id)
        .bind(&wanted.currency)
        .bind(wanted.total)
        .bind(&wanted.reference)
        .bind(&wanted.metadata)
        .bind(draft.lines())
        .bind(draft.at)
        .bind(skus)
        .bind(quantities)
        .bind(products)
        .bind(&draft.voucher_ids)
        .bind(order.head())
        .bind(order.tail())
        .bind(held == LockedVouchers::Wait)
        .fetch_one(pool)
        .await
        .map_err(unsold)?;
    let (status, body): (i16, Vec<u8>) = (row.try_get("status")?, row.try_get("body")?);
    if !row.try_get::<bool, _>("replayed")? {
        return Ok(StoredResponse {
            status: u16::try_from(status).unwrap_or_default(),
            body,
            replayed: false,
        });
    }
    let fingerprint: Vec<u8> = row.try_get("fingerprint")?;
    // Another request's answer: the caller reads the key once more and says so.
    keys::replay(&draft.key, &fingerprint, status, body).map_err(|_| SaleError::KeyTaken)
}

fn unsold(error: sqlx::Error) -> SaleError {
    let raised = error.as_database_error();
    match raised.and_then(|raised| raised.code()).as_deref() {
        Some(STOCK) => SaleError::OutOfStock(raised.map(line_of).unwrap_or_default()),
        Some(FUNDS) => SaleError::InsufficientFunds,
        Some(KEY_TAKEN) => SaleError::KeyTaken,
        _ => SaleError::Database(error),
    }
}

/// The detail is the number of the line, from 1.
fn line_of(raised: &dyn sqlx::error::DatabaseError) -> usize {
    let detail = raised
        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        .and_then(sqlx::postgres::PgDatabaseError::detail);
    detail
        .and_then(|number| number.parse::<usize>().ok())
        .map_or(0, |number| number.saturating_sub(1))
}
