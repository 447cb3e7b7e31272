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

use super::Shape;
use super::draft::Draft;
use super::refusal::{Kept, Refusal};

/// How often a deadlock is tried again: each time another transaction got through.
const TRIES: u32 = 3;

/// Whether vouchers that another transaction holds are passed over or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    PassedOver,
    WaitedFor,
}

/// Why an order was not sold; its transaction left nothing.
#[derive(Debug)]
enum Unsold {
    /// Of the line with this index there are too few.
    Stock(usize),
    Funds,
    /// Somebody else's answer is kept under the key.
    KeyTaken,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Unsold {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Sells an order, or keeps the refusal; whichever the key has is the answer.
///
/// # Errors
/// [`Refusal`] that is not kept.
pub(super) async fn place(pool: &PgPool, shape: Shape, draft: &Draft) -> Result<Kept, Refusal> {
    let mut held = Held::PassedOver;
    for _ in 0..TRIES {
        let sold = match shape {
            Shape::Statements => statements::sell(pool, draft, held).await,
            Shape::Function => function::sell(pool, draft, held).await,
        };
        let refusal = match sold {
            Ok(answer) => return Ok(answer),
            Err(Unsold::Stock(_)) if held == Held::PassedOver => {
                held = Held::WaitedFor;
                continue;
            }
            Err(Unsold::Stock(line)) => {
                let short = draft.wanted.lines.get(line);
                Refusal::InsufficientInventory(short.map(|line| line.product_id.clone()).unwrap_or_default())
            }
            Err(Unsold::Funds) => Refusal::InsufficientFunds,
            Err(Unsold::KeyTaken) => return keys::kept(pool, &draft.key).await,
            Err(Unsold::Database(error)) if is_deadlock(&error) => continue,
            Err(Unsold::Database(_)) => return Err(Refusal::ServiceUnavailable),
        };
        return keys::keep(pool, &draft.key, &refusal).await;
    }
    Err(Refusal::ServiceUnavailable)
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("40P01")
}
