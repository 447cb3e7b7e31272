//! Order processing with row locks: one transaction per order, in one of two shapes. Errors are retried, stored as
//! refusals, or left to the partner to retry.
//!
//! | Error | Handling |
//! |---|---|
//! | too few free vouchers, locked ones skipped | retry once, waiting for locks |
//! | still too few, or insufficient balance | reject and store the refusal under the key |
//! | key already used | return the stored response |
//! | deadlock | retry |

mod function;
mod keys;
mod statements;

use sqlx::PgPool;

use super::TransactionShape;
use super::draft::OrderDraft;
use super::refusal::{Refusal, StoredResponse};

/// Attempts per order; in each deadlock another transaction makes progress.
const MAX_ATTEMPTS: u32 = 3;

/// Handling of vouchers that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockedVouchers {
    Skip,
    Wait,
}

/// Reason for a rolled-back order.
#[derive(Debug)]
enum SaleError {
    /// Too few vouchers for the line with this index.
    OutOfStock(usize),
    InsufficientFunds,
    /// A response is already stored under the key.
    KeyTaken,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for SaleError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Sells an order or stores its refusal; returns the response stored under the key.
///
/// # Errors
/// A [`Refusal`] that is not stored.
pub(super) async fn place_order(
    pool: &PgPool,
    shape: TransactionShape,
    draft: &OrderDraft,
) -> Result<StoredResponse, Refusal> {
    let mut locked_vouchers = LockedVouchers::Skip;
    for _ in 0..MAX_ATTEMPTS {
        let result = match shape {
            TransactionShape::Statements => statements::sell(pool, draft, locked_vouchers).await,
            TransactionShape::Function => function::sell(pool, draft, locked_vouchers).await,
        };
        let refusal = match result {
            Ok(response) => return Ok(response),
            Err(SaleError::OutOfStock(_)) if locked_vouchers == LockedVouchers::Skip => {
                locked_vouchers = LockedVouchers::Wait;
                continue;
            }
            Err(SaleError::OutOfStock(line)) => {
                let out_of_stock = draft.order.lines.get(line);
                Refusal::InsufficientInventory(
                    out_of_stock
                        .map(|line| line.product_id.clone())
                        .unwrap_or_default(),
                )
            }
            Err(SaleError::InsufficientFunds) => Refusal::InsufficientFunds,
            Err(SaleError::KeyTaken) => return keys::read_stored(pool, &draft.key).await,
            Err(SaleError::Database(error)) if is_deadlock(&error) => continue,
            Err(SaleError::Database(_)) => return Err(Refusal::ServiceUnavailable),
        };
        return keys::store_refusal(pool, &draft.key, &refusal).await;
    }
    Err(Refusal::ServiceUnavailable)
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("40P01")
}
