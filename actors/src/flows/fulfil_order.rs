//! What comes after a cache miss: what is in stock is taken at once, what is bought is delivered as it comes, and a rest that
//! can never be had is paid back (contract §4).
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | take up | holds on what is in stock | PROCESSING, and what is delivered of it |
//! | (something was bought, and is stock by now) | | new stock |
//! | deliver | holds | vouchers issued; DELIVERED, where nothing is missing any more |
//! | give up | holds, money | the rest paid back, the order closed |

use uuid::Uuid;

use super::change::{self, Turn};
use super::keyed::Unanswered;
use super::picking::pick;
use crate::domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use crate::domain::order::{Actor, Order, OrderStatus, PendingReason, Source, StoredOrder};
use crate::domain::progress::{Cause, Progress};
use crate::domain::voucher::{Allocation, Expiry};
use crate::engine::Engine;
use crate::supervisor::Patience;

/// What the timeline says of a rest that is paid back.
const NEVER: &str = "the rest cannot be had";

/// What goes to a line of an order, and is kept for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Under which id it is kept: that of the purchase it was bought under, or one of its own.
    pub kept_id: Uuid,
    /// Whether it was bought for the order, or came into stock while the order waited.
    pub source: Source,
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// For which line, from 0.
    pub line: u16,
}

/// Takes up an order that waits for its vendor: what is in stock is delivered, and `asked` says that the rest is bought from
/// here on. Where it is not, and nothing is in stock, the order goes on waiting. One that was taken up stays as it is; `None`
/// where there is no such order.
///
/// # Errors
/// [`Unanswered`]; then nothing was written, or it says that this is not known yet.
pub async fn take_up(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
    asked: bool,
) -> Result<Option<Order>, Unanswered> {
    let decide = async |stored: &StoredOrder, patience: &Patience| {
        let order = &stored.order;
        if order.status != OrderStatus::Pending || order.pending_reason != Some(PendingReason::Vendor) {
            return Ok(Turn::Rest(order.clone()));
        }
        let picked = pick(engine, order, |_, line| line.pending(), patience).await?;
        if !asked && picked.vouchers.is_empty() {
            return Ok(Turn::Rest(order.clone()));
        }
        let rest = picked.leaves(order);
        if rest.is_none() && picked.elsewhere {
            // What may not be bought is at another node: nothing of it is given up.
            return Err(Unanswered::Unavailable);
        }
        let mut progress = progress(engine, order);
        progress.process(&Cause::SERVICE, rest);
        progress.issue(picked.vouchers.clone(), Source::Cache);
        give_up_what_nobody_buys(&mut progress);
        Ok(Turn::Move(progress, picked.holds()))
    };
    change::order::<Unanswered>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// Delivers to a line of an order what is kept for it, as far as it still wants that.
///
/// # Errors
/// [`Unanswered`], as for [`take_up`].
pub async fn deliver(engine: &Engine, delivery: Delivery) -> Result<Option<Order>, Unanswered> {
    let Delivery {
        kept_id,
        source,
        partner_id,
        order_id,
        line: number,
    } = delivery;
    let decide = async |stored: &StoredOrder, _: &Patience| {
        let order = &stored.order;
        let Some(line) = order.lines.get(usize::from(number)).filter(|_| !order.closed) else {
            return Ok(Turn::Rest(order.clone()));
        };
        let bought = engine.store.claim_bought(kept_id).await;
        let mut bought = bought.map_err(|error| change::unavailable(&error))?;
        let days = u16::try_from(line.min_validity_days).unwrap_or(u16::MAX);
        let not_before = Expiry::leaving(engine.clock.now().date(), days);
        bought.retain(|voucher| voucher.expiry >= not_before);
        bought.truncate(line.pending() as usize);
        if bought.is_empty() {
            return Ok(Turn::Rest(order.clone()));
        }
        let vouchers = bought.into_iter().map(|voucher| Allocation {
            voucher_id: VoucherId::generate(),
            line: number,
            sku: line.sku(),
            voucher,
        });
        let mut progress = progress(engine, order);
        progress.process(&Cause::SERVICE, order.pending_reason);
        progress.issue(vouchers.collect(), source);
        // The commit verifies each of them: nobody sells what is kept for an order, so nothing is held here.
        Ok(Turn::Move(progress, Vec::new()))
    };
    change::order::<Unanswered>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// Ends an order for which nothing more is bought: what came into stock meanwhile is delivered, the rest paid back.
///
/// # Errors
/// [`Unanswered`], as for [`take_up`].
pub async fn give_up(
    engine: &Engine,
    partner_id: PartnerId,
    order_id: OrderId,
) -> Result<Option<Order>, Unanswered> {
    let decide = async |stored: &StoredOrder, patience: &Patience| {
        let order = &stored.order;
        if order.closed || order.pending_reason != Some(PendingReason::Vendor) {
            return Ok(Turn::Rest(order.clone()));
        }
        let picked = pick(engine, order, |_, line| line.pending(), patience).await?;
        if picked.elsewhere && picked.vouchers.is_empty() {
            return Err(Unanswered::Unavailable);
        }
        let mut progress = progress(engine, order);
        progress.process(&Cause::SERVICE, order.pending_reason);
        progress.issue(picked.vouchers.clone(), Source::Cache);
        // What another node has is delivered there, or here once its lease is over, before anything is paid back.
        if !progress.order().closed && !picked.elsewhere {
            progress.give_up_rest(&never());
        }
        Ok(Turn::Move(progress, picked.holds()))
    };
    change::order::<Unanswered>(engine, partner_id, order_id, decide, |_, _| None).await
}

/// A rest that may not be bought is paid back at once, where nothing else is waited for.
pub(super) fn give_up_what_nobody_buys(progress: &mut Progress) {
    if !progress.order().closed && progress.order().pending_reason.is_none() {
        progress.give_up_rest(&never());
    }
}

fn never() -> Cause {
    Cause {
        by: Actor::System,
        reason: Some(NEVER.to_owned()),
    }
}

fn progress(engine: &Engine, order: &Order) -> Progress {
    Progress::of(order.clone(), TransactionId::generate(), engine.clock.now())
}
