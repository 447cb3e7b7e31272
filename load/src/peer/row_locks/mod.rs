//! How is an order sold with row locks? In one transaction of its own, in one of two shapes; whatever was not written is
//! tried again, refused for good, or left to the partner to repeat.
//!
//! | Found | Then |
//! |---|---|
//! | fewer vouchers free than wanted, others passed over | once more, waiting for whoever holds them |
//! | still fewer, or the balance is short | refused, and the refusal kept under the key |
//! | the key is taken | the answer that is kept under it |
//! | a deadlock | once more |

mod function;
mod keys;
mod statements;

use sqlx::PgPool;

use super::TransactionShape;
use super::draft::OrderDraft;
use super::refusal::{StoredResponse, Refusal};

/// How often a deadlock is tried again: each time another transaction got through.
const TRIES: u32 = 3;

/// Whether vouchers that another transaction holds are passed over or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockedVouchers {
    Skip,
    Wait,
}

/// Why an order was not sold; its transaction left nothing.
#[derive(Debug)]
enum SaleError {
    /// Of the line with this index there are too few.
    OutOfStock(usize),
    InsufficientFunds,
    /// Somebody else's answer is kept under the key.
    KeyTaken,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for SaleError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Sells an order, or keeps the refusal; whichever the key has is the answer.
///
/// # Errors
/// [`Refusal`] that is not kept.
pub(super) async fn place_order(pool: &PgPool, shape: TransactionShape, draft: &OrderDraft) -> Result<StoredResponse, Refusal> {
    let mut held = LockedVouchers::Skip;
    for _ in 0..TRIES {
        let sold = match shape {
            TransactionShape::Statements => statements::sell(pool, draft, held).await,
            TransactionShape::Function => function::sell(pool, draft, held).await,
        };
        let refusal = match sold {
            Ok(answer) => return Ok(answer),
            Err(SaleError::OutOfStock(_)) if held == LockedVouchers::Skip => {
                held = LockedVouchers::Wait;
                continue;
            }
            Err(SaleError::OutOfStock(line)) => {
                let short = draft.order.lines.get(line);
                Refusal::InsufficientInventory(short.map(|line| line.product_id.clone()).unwrap_or_default())
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
