//! Order processing with one call of the stored function; the calling statement is the transaction.

use sqlx::{PgPool, Row};

use super::{LockedVouchers, SaleError, keys};
use crate::draft::OrderDraft;
use crate::refusal::StoredResponse;
use crate::response::voucher_product;

/// SQLSTATE values raised by `sql/place_order.sql`.
const OUT_OF_STOCK: &str = "VP001";
const INSUFFICIENT_FUNDS: &str = "VP002";
const KEY_TAKEN: &str = "VP003";

const PLACE_ORDER: &str = "SELECT replayed,
       fingerprint,
       status,
       body
  FROM place_order(
           $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

/// Executes the function.
///
/// # Errors
/// [`SaleError`]; the transaction is rolled back.
pub(super) async fn sell(
    pool: &PgPool,
    draft: &OrderDraft,
    locked_vouchers: LockedVouchers,
) -> Result<StoredResponse, SaleError> {
    let request = &draft.order;
    let order = draft.delivered();
    let skus: Vec<i32> = request.lines.iter().map(|line| line.sku_id).collect();
    let quantities: Vec<i32> = request.lines.iter().map(|line| line.quantity).collect();
    let products: Vec<String> = request.lines.iter().map(voucher_product).collect();
    let row = sqlx::query(PLACE_ORDER)
        .bind(draft.partner_id)
        .bind(draft.key.hash)
        .bind(&draft.key.fingerprint[..])
        .bind(draft.order_id)
        .bind(draft.transaction_id)
        .bind(&request.currency)
        .bind(request.total)
        .bind(&request.reference)
        .bind(&request.metadata)
        .bind(draft.lines())
        .bind(draft.at)
        .bind(skus)
        .bind(quantities)
        .bind(products)
        .bind(&draft.voucher_ids)
        .bind(order.head())
        .bind(order.tail())
        .bind(locked_vouchers == LockedVouchers::Wait)
        .fetch_one(pool)
        .await
        .map_err(sale_error)?;
    let (status, body): (i16, Vec<u8>) = (row.try_get("status")?, row.try_get("body")?);
    if !row.try_get::<bool, _>("replayed")? {
        return Ok(StoredResponse {
            status: u16::try_from(status).unwrap_or_default(),
            body,
            replayed: false,
        });
    }
    let fingerprint: Vec<u8> = row.try_get("fingerprint")?;
    // The response belongs to another request. The caller reads the key again and reports the conflict.
    keys::replay(&draft.key, &fingerprint, status, body).map_err(|_| SaleError::KeyTaken)
}

fn sale_error(error: sqlx::Error) -> SaleError {
    let database_error = error.as_database_error();
    match database_error
        .and_then(|database_error| database_error.code())
        .as_deref()
    {
        Some(OUT_OF_STOCK) => SaleError::OutOfStock(database_error.map(failed_line).unwrap_or_default()),
        Some(INSUFFICIENT_FUNDS) => SaleError::InsufficientFunds,
        Some(KEY_TAKEN) => SaleError::KeyTaken,
        _ => SaleError::Database(error),
    }
}

/// The DETAIL field is the line number, counted from 1.
fn failed_line(database_error: &dyn sqlx::error::DatabaseError) -> usize {
    let detail = database_error
        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        .and_then(sqlx::postgres::PgDatabaseError::detail);
    detail
        .and_then(|number| number.parse::<usize>().ok())
        .map_or(0, |number| number.saturating_sub(1))
}
