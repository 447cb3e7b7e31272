//! Order processing with row locks: one transaction per order, which is one call of the stored function
//! `sql/place_order.sql`. Errors are retried, stored as refusals, or left to the partner to retry.
//!
//! | Error | Handling |
//! |---|---|
//! | too few free vouchers, locked ones skipped | retry once, waiting for locks |
//! | still too few, or insufficient balance | reject and store the refusal under the key |
//! | key already used | return the stored response |
//! | deadlock | retry |

use sqlx::{PgPool, Row};

use super::order::{CURRENCY, OrderDraft, SKU_ID, StoredResponse};
use super::refusal::Refusal;
use super::stored_responses;

/// Attempts per order; in each deadlock another transaction makes progress.
const MAX_ATTEMPTS: u32 = 3;

/// SQLSTATE values raised by `sql/place_order.sql`.
const OUT_OF_STOCK: &str = "VP001";
const INSUFFICIENT_FUNDS: &str = "VP002";
const KEY_TAKEN: &str = "VP003";

const DEADLOCK_DETECTED: &str = "40P01";

const PLACE_ORDER: &str = "SELECT replayed,
       fingerprint,
       status,
       body
  FROM place_order(
           $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

/// Handling of vouchers that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockedVouchers {
    Skip,
    Wait,
}

/// Reason for a rolled-back order.
#[derive(Debug)]
enum SaleError {
    OutOfStock,
    InsufficientFunds,
    /// A response is already stored under the key.
    KeyTaken,
    Deadlock,
    Database,
}

/// Sells an order or stores its refusal; returns the response stored under the key.
pub(super) async fn place_order(pool: &PgPool, draft: &OrderDraft) -> Result<StoredResponse, Refusal> {
    let mut locked_vouchers = LockedVouchers::Skip;
    for _ in 0..MAX_ATTEMPTS {
        let refusal = match sell(pool, draft, locked_vouchers).await {
            Ok(response) => return Ok(response),
            Err(SaleError::OutOfStock) if locked_vouchers == LockedVouchers::Skip => {
                locked_vouchers = LockedVouchers::Wait;
                continue;
            }
            Err(SaleError::OutOfStock) => Refusal::InsufficientInventory(draft.product_id.to_string()),
            Err(SaleError::InsufficientFunds) => Refusal::InsufficientFunds,
            Err(SaleError::KeyTaken) => return stored_responses::read(pool, &draft.key).await,
            Err(SaleError::Deadlock) => continue,
            Err(SaleError::Database) => return Err(Refusal::ServiceUnavailable),
        };
        return stored_responses::store_refusal(pool, &draft.key, &refusal).await;
    }
    Err(Refusal::ServiceUnavailable)
}

/// Executes the function; the calling statement is the transaction, which an error rolls back.
async fn sell(
    pool: &PgPool,
    draft: &OrderDraft,
    locked_vouchers: LockedVouchers,
) -> Result<StoredResponse, SaleError> {
    let order = draft.delivered();
    let row = sqlx::query(PLACE_ORDER)
        .bind(draft.partner_id)
        .bind(draft.key.hash)
        .bind(&draft.key.fingerprint[..])
        .bind(draft.order_id)
        .bind(draft.transaction_id)
        .bind(CURRENCY)
        .bind(order.total())
        .bind(draft.lines())
        .bind(draft.at)
        .bind(SKU_ID)
        .bind(draft.quantity)
        .bind(order.voucher_product())
        .bind(&draft.voucher_ids)
        .bind(order.head())
        .bind(order.tail())
        .bind(locked_vouchers == LockedVouchers::Wait)
        .bind(draft.has_endpoint)
        .fetch_one(pool)
        .await?;
    let (status, body): (i16, Vec<u8>) = (row.try_get("status")?, row.try_get("body")?);
    if row.try_get::<bool, _>("replayed")? {
        let fingerprint: Vec<u8> = row.try_get("fingerprint")?;
        // The response belongs to another request. The caller reads the key again and reports the conflict.
        return stored_responses::replay(&draft.key, &fingerprint, status, body)
            .map_err(|_| SaleError::KeyTaken);
    }
    Ok(StoredResponse {
        status: u16::try_from(status).unwrap_or_default(),
        body,
        replayed: false,
    })
}

impl From<sqlx::Error> for SaleError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        match code.as_deref() {
            Some(OUT_OF_STOCK) => Self::OutOfStock,
            Some(INSUFFICIENT_FUNDS) => Self::InsufficientFunds,
            Some(KEY_TAKEN) => Self::KeyTaken,
            Some(DEADLOCK_DETECTED) => Self::Deadlock,
            _ => Self::Database,
        }
    }
}
