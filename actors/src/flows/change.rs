//! What every flow does that moves something on which is there already: read it, decide, make it durable, and decide again
//! when somebody else has moved it meanwhile.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | read | the order with the number of its last event | nothing |
//! | (the flow decides) | holds | nothing |
//! | take the key of this step: the thing and its number | key, admission | nothing |
//! | the lane commits | holds settled, watchers told | the step, or nothing: it has moved on |
//!
//! Rule: the number decides. Two who read the same state ask for the same key and find the same number: one of them wins,
//! on whichever node it runs, and the other one reads again.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::keyed::{COMMIT_PATIENCE, KEY_PATIENCE, Unanswered};
use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::deed::Deed;
use crate::domain::ids::{OrderId, PartnerId, StockId};
use crate::domain::order::{Order, StoredOrder};
use crate::domain::progress::{Progress, Progressed};
use crate::domain::stock::CHUNK_VOUCHERS;
use crate::domain::voucher::Allocation;
use crate::engine::Engine;
use crate::journal::{Hold, KeyClaim, OrderChange, Outcome, Record, Return, Ticket};
use crate::keys::Begun;
use crate::supervisor::Patience;
use crate::wallet::Funds;
use crate::wallet::purse::Wish;

/// How often a change is decided when each time somebody else was faster.
pub(super) const MAX_DECISIONS: u32 = 5;

/// What a step is named by: who it is about, and where that stood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) partner_id: PartnerId,
    pub(super) thing: Uuid,
    pub(super) since: u32,
}

impl Step {
    fn key(self) -> KeyHash {
        let mut digest = Sha256::new();
        digest.update(b"step");
        digest.update(self.thing.as_bytes());
        digest.update(self.since.to_be_bytes());
        let digest = digest.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        KeyHash(Uuid::from_bytes(bytes))
    }

    /// The claim of one attempt at it. Its fingerprint is chance: nobody else's attempt is ever taken for this one.
    fn claim(self) -> KeyClaim {
        let mut fingerprint = [0; 32];
        fingerprint[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        fingerprint[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        KeyClaim {
            key: self.key(),
            fingerprint: Fingerprint(fingerprint),
            answer: Answer {
                status: 200,
                body: Bytes::new(),
            },
            keep: Keep::Day,
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempted {
    Done,
    /// Somebody else was faster, or what it rested on is no longer so: read again.
    Again,
}

/// Makes a step durable, if nobody else has taken it.
pub(super) async fn attempt(
    engine: &Engine,
    step: Step,
    fill: impl FnOnce(Record) -> Record,
    holds: Vec<Box<dyn Hold>>,
) -> Result<Attempted, Unanswered> {
    let key = match engine.keys.begin(step.key()) {
        Begun::First(key) => key,
        Begun::Known(_) => return Ok(Attempted::Again),
        Begun::Crowded => return Err(Unanswered::KeyBusy),
        Begun::Running(other) => {
            drop(holds);
            let ended = timeout_at(Instant::now() + KEY_PATIENCE, other.ended()).await;
            return ended.map(|_| Attempted::Again).map_err(|_| Unanswered::KeyBusy);
        }
    };
    let admission = std::sync::Arc::clone(&engine.admission).try_acquire_owned();
    let admission = admission.map_err(|_| Unanswered::Overloaded)?;
    let record = fill(Record::answering(step.partner_id, step.claim()));
    let outcome = engine.journal.submit(record, holds, Ticket { key, admission });
    match timeout(COMMIT_PATIENCE, outcome).await {
        Ok(Ok(Outcome::Committed(_))) => Ok(Attempted::Done),
        Ok(Ok(Outcome::KeyKnown(_) | Outcome::Stale(..))) => Ok(Attempted::Again),
        Ok(Ok(Outcome::Poisoned)) => Err(Unanswered::Poisoned),
        Ok(Ok(Outcome::Busy)) => Err(Unanswered::Unavailable),
        Ok(Err(_)) | Err(_) => Err(Unanswered::OutcomeUnknown),
    }
}

/// What a flow makes of an order that it has read.
pub(super) enum Turn {
    /// There is nothing to do.
    Rest(Order),
    /// It moves on, resting on these.
    Move(Progress, Vec<Box<dyn Hold>>),
}

/// Moves an order on by what `decide` says of it; gives the order after it. `deed` says what the trail is told of the way
/// from the one to the other.
///
/// # Errors
/// Those of `decide`, and [`Unanswered`]; then nothing was written, or it says that this is not known yet. `None` where
/// this partner has no such order.
pub(super) async fn order<E: From<Unanswered>>(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
    decide: impl AsyncFn(&StoredOrder, &Patience) -> Result<Turn, E>,
    deed: impl Fn(&Order, &Order) -> Option<Deed>,
) -> Result<Option<Order>, E> {
    let patience = Patience::begin();
    for _ in 0..MAX_DECISIONS {
        let stored = engine.store.load_order(partner_id, order_id).await;
        let Some(stored) = stored.map_err(|error| unavailable(&error))? else {
            return Ok(None);
        };
        let (progress, holds) = match decide(&stored, &patience).await? {
            Turn::Rest(order) => return Ok(Some(order)),
            Turn::Move(progress, holds) => (progress, holds),
        };
        let progressed = progress.finish(stored.last_sequence);
        let order = progressed.order.clone();
        let deed = deed(&stored.order, &order);
        let written = write(engine, stored.last_sequence, progressed, deed, holds, &patience);
        if written.await? == Attempted::Done {
            return Ok(Some(order));
        }
    }
    Err(Unanswered::Unavailable.into())
}

/// Makes what an order has become durable, and tells whoever waits for it.
async fn write(
    engine: &Engine,
    since: u32,
    progressed: Progressed,
    deed: Option<Deed>,
    mut holds: Vec<Box<dyn Hold>>,
    patience: &Patience,
) -> Result<Attempted, Unanswered> {
    let Progressed {
        order,
        issued,
        returned,
        movement,
        pending,
        events,
    } = progressed;
    let (order_id, partner_id) = (order.order_id, order.partner_id);
    if let Some(refund) = &movement {
        let asked = Wish::Add(refund.amount);
        let asked = engine
            .wallets
            .set_aside(partner_id, refund.currency, asked, patience);
        match asked.await? {
            Funds::Held(hold) => holds.push(Box::new(hold)),
            Funds::Refused(_) => return Err(Unanswered::Poisoned),
        }
    }
    let returned = number(engine, returned).await?;
    let restocked: Vec<_> = returned
        .iter()
        .map(|back| (back.allocation.sku.clone(), back.allocation.voucher.expiry))
        .collect();
    let step = Step {
        partner_id,
        thing: order_id.as_uuid(),
        since,
    };
    let fill = |record| Record {
        change: Some(OrderChange {
            after: order,
            since,
            issued,
            returned,
        }),
        movement,
        pending,
        events: Some(events),
        deed,
        ..record
    };
    let attempted = attempt(engine, step, fill, holds).await?;
    if attempted == Attempted::Done {
        engine.watch.changed(order_id);
        for (sku, expiry) in restocked {
            engine.inventory.restocked(&sku, expiry);
        }
    }
    Ok(attempted)
}

/// Gives vouchers that come back rows of their own, in chunks of neighbours.
async fn number(engine: &Engine, mut vouchers: Vec<Allocation>) -> Result<Vec<Return>, Unanswered> {
    if vouchers.is_empty() {
        return Ok(Vec::new());
    }
    vouchers.sort_by(|a, b| (&a.sku, a.voucher).cmp(&(&b.sku, b.voucher)));
    let numbers = engine.store.number_stock(vouchers.len()).await;
    let numbers = numbers.map_err(|error| unavailable(&error))?;
    Ok(shelved_again(vouchers, &numbers))
}

/// Each voucher under its number; a chunk ends with its SKU, with a gap between numbers, and when it is full.
fn shelved_again(vouchers: Vec<Allocation>, numbers: &[StockId]) -> Vec<Return> {
    let mut returned: Vec<Return> = Vec::with_capacity(vouchers.len());
    let full = i64::try_from(CHUNK_VOUCHERS).unwrap_or(i64::MAX);
    for (allocation, &stock_id) in vouchers.into_iter().zip(numbers) {
        let chunk_begins = match returned.last() {
            Some(before)
                if before.allocation.sku == allocation.sku
                    && before.stock_id.0 + 1 == stock_id.0
                    && stock_id.0 - before.chunk_begins.0 < full =>
            {
                before.chunk_begins
            }
            _ => stock_id,
        };
        returned.push(Return {
            allocation,
            stock_id,
            chunk_begins,
        });
    }
    returned
}

/// Why nothing could be read.
pub(super) fn unavailable(error: &crate::store::Unavailable) -> Unanswered {
    tracing::warn!(%error, "what is to be changed cannot be read");
    Unanswered::Unavailable
}
