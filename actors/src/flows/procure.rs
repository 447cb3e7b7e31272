//! Buying what orders wait for: an order is taken up, each of its purchases asked about until its vendor has said its last
//! word, and what never comes is paid back.
//!
//! | step | on disk |
//! |---|---|
//! | an order is taken up | PROCESSING, and what was in stock |
//! | its purchases are written down | each under its key, before a vendor hears of it |
//! | one of them is claimed | a claim, so that one node asks at a time |
//! | its vendor is asked: to sell, or what it sold | what is new is stock, kept for the order |
//! | it is delivered, as far as the order still wants it | vouchers issued |
//! | nothing more comes, or it is wanted no more | what is left is others', the purchase ended |
//! | no purchase of the order goes on | what is missing is paid back, the order closed |
//!
//! Rule: every step may be repeated. Whoever dies between two leaves what the next one finds by asking the store.

use std::time::Duration;

use tracing::error;
use uuid::Uuid;

use super::change::unavailable;
use super::fulfil_order::{Delivery, deliver, give_up, take_up};
use super::keyed::Unanswered;
use crate::domain::order::{Order, PendingReason};
use crate::domain::voucher::Expiry;
use crate::engine::Engine;
use crate::procurement::{ClaimedPurchase, Rest, Vendors, WaitingOrder};
use crate::store::Unavailable;

/// How soon, and how late at most, a vendor is asked about a purchase again: a quarter of its age lies between.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(300));

/// Why something that is bought cannot go on for now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// The books cannot be read or written.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The order could not be moved on.
    #[error("the order could not be moved on: {0}")]
    Unanswered(#[from] Unanswered),
}

/// Moves on an order for which nothing is being bought: it is taken up, or nothing more comes for it.
///
/// # Errors
/// [`Stuck`]; it is found again.
pub async fn settle(engine: &Engine, vendors: &dyn Vendors, waiting: WaitingOrder) -> Result<(), Stuck> {
    let WaitingOrder {
        partner_id,
        order_id,
        bought,
    } = waiting;
    if bought {
        give_up(engine, partner_id, order_id).await?;
        return Ok(());
    }
    let stored = engine.store.load_order(partner_id, order_id).await?;
    let Some(stored) = stored else {
        return Ok(());
    };
    let asked = vendors.is_asked_for(&stored.order).await?;
    let order = take_up(engine, partner_id, order_id, asked).await?;
    let Some(order) = order.filter(|order| order.pending_reason == Some(PendingReason::Vendor)) else {
        return Ok(());
    };
    if order
        .lines
        .iter()
        .any(|line| line.pending() > 0 && !line.stock_only)
    {
        return Ok(vendors.open(order).await?);
    }
    // What could be bought came into stock before anybody was asked for it, and what is left is bought by nobody.
    give_up(engine, partner_id, order_id).await?;
    Ok(())
}

/// Asks about a purchase once, if nobody else does, and delivers what came of it.
///
/// # Errors
/// [`Stuck`] when nothing is known to have been done; a claim that is not given back ends by itself.
pub async fn pursue(engine: &Engine, vendors: &dyn Vendors, purchase_id: Uuid) -> Result<(), Stuck> {
    let Some(claimed) = vendors.claim(purchase_id).await? else {
        return Ok(());
    };
    let age = (engine.clock.now() - claimed.requested_at).try_into();
    let pause = pause(age.unwrap_or_default());
    let after = match ask(engine, vendors, claimed).await {
        Ok(Rest::Over) => None,
        Ok(Rest::ToCome(least)) => Some(pause.max(least.unwrap_or_default())),
        Ok(Rest::ByHand) => Some(pause),
        Err(stuck) => {
            error!(purchase.id = %purchase_id, error = %stuck, "a purchase cannot go on for now");
            Some(pause)
        }
    };
    Ok(vendors.note(purchase_id, after).await?)
}

async fn ask(engine: &Engine, vendors: &dyn Vendors, claimed: ClaimedPurchase) -> Result<Rest, Stuck> {
    let ClaimedPurchase { delivery, asked, .. } = claimed;
    // What nobody has heard of and nobody wants any more is not bought.
    let rest = if asked || still_wanted(engine, delivery).await? {
        vendors.ask(claimed).await?
    } else {
        Rest::Over
    };
    let order = deliver(engine, delivery).await?;
    let wanted = order.is_some_and(|order| wants(&order, delivery.line));
    let rest = match rest {
        Rest::ByHand if !wanted => Rest::Over,
        rest => rest,
    };
    if rest == Rest::Over || !wanted {
        pass_on(engine, vendors, delivery.kept_id).await?;
    }
    Ok(rest)
}

async fn still_wanted(engine: &Engine, delivery: Delivery) -> Result<bool, Stuck> {
    let stored = engine.store.load_order(delivery.partner_id, delivery.order_id);
    let stored = stored.await.map_err(|error| unavailable(&error))?;
    Ok(stored.is_some_and(|stored| wants(&stored.order, delivery.line)))
}

fn wants(order: &Order, line: u16) -> bool {
    let line = order.lines.get(usize::from(line));
    !order.closed && line.is_some_and(|line| line.pending() > 0)
}

async fn pass_on(engine: &Engine, vendors: &dyn Vendors, purchase_id: Uuid) -> Result<(), Stuck> {
    if let Some(sku) = vendors.pass_on(purchase_id).await? {
        engine.inventory.restocked(&sku, Expiry::PAST);
    }
    Ok(())
}

/// Until a purchase of this age is asked about again: the older it is, the longer.
fn pause(age: Duration) -> Duration {
    let (least, most) = ASK_AGAIN;
    (age / 4).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_a_purchase_is_the_later_it_is_asked_about() {
        let table = [
            (0, 250),
            (1_000, 250),
            (8_000, 2_000),
            (1_200_000, 300_000),
            (86_400_000, 300_000),
        ];
        for (age_ms, pause_ms) in table {
            assert_eq!(
                pause(Duration::from_millis(age_ms)),
                Duration::from_millis(pause_ms)
            );
        }
    }
}
