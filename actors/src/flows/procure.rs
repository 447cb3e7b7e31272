//! Procurement steps: start an order, advance its purchases until the vendor has sold or refused everything,
//! and refund the rest.
//!
//! | step | on disk |
//! |---|---|
//! | start the order | PROCESSING, and what was in stock |
//! | record its purchases | each under its key, before the vendor is contacted |
//! | claim a purchase | a claim: one node at a time contacts the vendor |
//! | request vouchers, or poll for them | newly sold vouchers as stock reserved for the order |
//! | deliver them, as far as the order needs them | vouchers issued |
//! | nothing more comes, or is needed | the remainder released, the purchase ended |
//! | no purchase of the order is open | the shortfall refunded, the order closed |
//!
//! Every step may be repeated; after a crash the next poll continues from the store.

use async_recursion::async_recursion as boxed;
use std::time::Duration;

use tracing::error;
use uuid::Uuid;
use vouchsafe_domain::order::{Order, PendingReason};
use vouchsafe_domain::voucher::Expiry;

use super::change::log_unavailable;
use super::fulfil_order::{deliver_reserved, end_fulfilment, start_fulfilment};
use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::ports::vendors::{
    ClaimedPurchase, ForcedResponse, OrderPurchases, PurchaseRemainder, ReservedDelivery, Vendors,
    WaitingOrder,
};
use vouchsafe_domain::store_error::Unavailable;

/// Minimum delay before a vendor is asked about a purchase again. Up to a maximum it is a quarter of the
/// purchase's age.
const MIN_POLL_DELAY: Duration = Duration::from_millis(250);

/// Maximum delay before a vendor is asked again.
const MAX_POLL_DELAY: Duration = Duration::from_secs(300);

/// The same for a purchase that an operator fulfils, which makes it due at once: no vendor is asked, and what
/// is left is to end the purchase of an order that was closed meanwhile. The longest delay that a clock set
/// back does not shorten.
const MAX_MANUAL_POLL_DELAY: Duration = Duration::from_secs(3_600);

/// Why a procurement step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcureError {
    /// The store is unavailable.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The order could not be changed.
    #[error("cannot change the order: {0}")]
    Flow(#[from] FlowError),
}

/// Advances a waiting order: starts it, or ends it if nothing more will come.
///
/// # Errors
/// [`ProcureError`]; the next poll retries.
#[boxed(?Send)]
pub async fn advance_waiting_order(
    engine: &Engine,
    vendors: &dyn Vendors,
    waiting: WaitingOrder,
) -> Result<(), ProcureError> {
    let WaitingOrder {
        partner_id,
        order_id,
        purchases,
    } = waiting;
    match purchases {
        OrderPurchases::None => {}
        OrderPurchases::Open => return Ok(()),
        OrderPurchases::Ended => {
            end_fulfilment(engine, partner_id, order_id).await?;
            return Ok(());
        }
    }
    let stored = engine.store.load_order(partner_id, order_id).await?;
    let Some(stored) = stored else {
        return Ok(());
    };
    let is_purchasable = vendors.is_purchasable(&stored.order).await?;
    let order = start_fulfilment(engine, partner_id, order_id, is_purchasable).await?;
    let Some(order) = order.filter(|order| order.pending_reason == Some(PendingReason::Vendor)) else {
        return Ok(());
    };
    if order
        .lines
        .iter()
        .any(|line| line.pending() > 0 && !line.stock_only)
    {
        return Ok(vendors.open_purchases(order).await?);
    }
    // Everything purchasable came into stock meanwhile, and the rest cannot be bought.
    end_fulfilment(engine, partner_id, order_id).await?;
    Ok(())
}

/// Requests a purchase from its vendor once, unless it is claimed or not due, and delivers the result.
/// Returns whether it was requested. A forced response replaces that of a mock vendor.
///
/// # Errors
/// [`ProcureError`] if the purchase cannot be claimed, or if the release of its claim is not known to be
/// stored; an unreleased claim expires.
#[boxed(?Send)]
pub async fn advance_purchase(
    engine: &Engine,
    vendors: &dyn Vendors,
    purchase_id: Uuid,
    forced: Option<ForcedResponse>,
) -> Result<bool, ProcureError> {
    let Some(claimed) = vendors.claim_purchase(purchase_id).await? else {
        return Ok(false);
    };
    let age: Result<Duration, _> = (engine.clock.now() - claimed.requested_at).try_into();
    let age = age.unwrap_or_default();
    let delay = poll_delay(age, MAX_POLL_DELAY);
    let after = match request_vouchers(engine, vendors, claimed, forced).await {
        Ok(PurchaseRemainder::Done) => None,
        Ok(PurchaseRemainder::Pending(minimum)) => Some(delay.max(minimum.unwrap_or_default())),
        Ok(PurchaseRemainder::Manual) => Some(poll_delay(age, MAX_MANUAL_POLL_DELAY)),
        Err(error) => {
            error!(purchase.id = %purchase_id, error.message = %error, "purchase failed for now; retrying");
            Some(delay)
        }
    };
    vendors.release_claim(purchase_id, after).await?;
    Ok(true)
}

async fn request_vouchers(
    engine: &Engine,
    vendors: &dyn Vendors,
    claimed: ClaimedPurchase,
    forced: Option<ForcedResponse>,
) -> Result<PurchaseRemainder, ProcureError> {
    let ClaimedPurchase {
        delivery,
        was_requested,
        ..
    } = claimed;
    // A purchase that was never requested and is not needed any more is not bought.
    let remainder = if was_requested || is_still_needed(engine, delivery).await? {
        vendors.request_vouchers(claimed, forced).await?
    } else {
        PurchaseRemainder::Done
    };
    let order = deliver_reserved(engine, delivery).await?;
    let is_needed = order.is_some_and(|order| is_line_pending(&order, delivery.line));
    let remainder = match remainder {
        PurchaseRemainder::Manual if !is_needed => PurchaseRemainder::Done,
        remainder => remainder,
    };
    if remainder == PurchaseRemainder::Done || !is_needed {
        release_remainder(engine, vendors, delivery.reservation_id).await?;
    }
    Ok(remainder)
}

async fn is_still_needed(engine: &Engine, delivery: ReservedDelivery) -> Result<bool, ProcureError> {
    let stored = engine.store.load_order(delivery.partner_id, delivery.order_id);
    let stored = stored.await.map_err(|error| log_unavailable(&error))?;
    Ok(stored.is_some_and(|stored| is_line_pending(&stored.order, delivery.line)))
}

fn is_line_pending(order: &Order, line: u16) -> bool {
    let line = order.lines.get(usize::from(line));
    !order.closed && line.is_some_and(|line| line.pending() > 0)
}

async fn release_remainder(
    engine: &Engine,
    vendors: &dyn Vendors,
    purchase_id: Uuid,
) -> Result<(), ProcureError> {
    if let Some(sku) = vendors.release_remainder(purchase_id).await? {
        engine.inventory.notify_restocked(&sku, Expiry::PAST);
    }
    Ok(())
}

/// The delay before a purchase of this age is polled again.
fn poll_delay(age: Duration, maximum: Duration) -> Duration {
    (age / 4).clamp(MIN_POLL_DELAY, maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_delay_grows_with_the_age_of_the_purchase() {
        let table = [
            (0, 250, 250),
            (1_000, 250, 250),
            (8_000, 2_000, 2_000),
            (1_200_000, 300_000, 300_000),
            (86_400_000, 300_000, 3_600_000),
        ];
        for (age_ms, delay_ms, manual_delay_ms) in table {
            let delays = [MAX_POLL_DELAY, MAX_MANUAL_POLL_DELAY]
                .map(|maximum| poll_delay(Duration::from_millis(age_ms), maximum));
            assert_eq!(delays, [delay_ms, manual_delay_ms].map(Duration::from_millis));
        }
    }
}
