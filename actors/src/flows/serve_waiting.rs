//! New stock goes to those who wait for it before it goes to the shelf, oldest order first (contract §4).
//!
//! | step | on disk |
//! |---|---|
//! | (stock came in while orders waited for its SKU) | its chunks are kept under an id of their own: no shelf claims them |
//! | the oldest order gets what it waits for, then the next one | vouchers issued |
//! | nobody waits any more, or nothing is left | the rest is kept for nobody: any shelf may claim it |
//!
//! Rule: a step that cannot be made now is made at the next look, and nobody else is served before. Only an order that the
//! store refuses for good is passed over, so that it does not hold up those behind it for ever.

use tracing::error;

use super::change::unavailable;
use super::fulfil_order::{Delivery, deliver};
use super::keyed::Unanswered;
use super::procure::Stuck;
use crate::domain::ids::{OrderId, PartnerId};
use crate::domain::order::{Order, Source};
use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::engine::Engine;
use crate::procurement::{KeptStock, Vendors};

/// Gives stock that is kept for whoever waits to the orders that do, and the rest to the shelf.
///
/// # Errors
/// [`Stuck`]; the stock stays kept, and is found again.
pub async fn serve_waiting(engine: &Engine, vendors: &dyn Vendors, kept: KeptStock) -> Result<(), Stuck> {
    let mut after = None;
    while let Some((partner_id, order_id)) = vendors.first_in_line(&kept.sku, after).await? {
        match serve(engine, &kept, partner_id, order_id).await {
            // Nothing is left, or nothing that is valid for long enough.
            Ok(Served { waits_on: true }) => break,
            Ok(Served { waits_on: false }) => {}
            Err(Unanswered::Poisoned) => {
                error!(order.id = %order_id, sku = %kept.sku, "an order that waits cannot be given what it waits for");
            }
            Err(error) => return Err(error.into()),
        }
        after = Some(order_id);
    }
    vendors.release(kept.kept_id).await?;
    engine.inventory.restocked(&kept.sku, Expiry::PAST);
    Ok(())
}

/// How an order stands that was served.
struct Served {
    /// Whether it still waits for the SKU.
    waits_on: bool,
}

/// Gives an order what is kept, line by line.
async fn serve(
    engine: &Engine,
    kept: &KeptStock,
    partner_id: PartnerId,
    order_id: OrderId,
) -> Result<Served, Unanswered> {
    let stored = engine.store.load_order(partner_id, order_id).await;
    let mut order = stored
        .map_err(|error| unavailable(&error))?
        .map(|stored| stored.order);
    let lines = order.as_ref().map(|order| order.lines.len()).unwrap_or_default();
    for line in 0..u16::try_from(lines).unwrap_or(u16::MAX) {
        if waits_for(order.as_ref(), line, &kept.sku) {
            let delivery = Delivery {
                kept_id: kept.kept_id,
                source: Source::Cache,
                partner_id,
                order_id,
                line,
            };
            order = deliver(engine, delivery).await?;
        }
    }
    let waits_on = |line| waits_for(order.as_ref(), line, &kept.sku);
    Ok(Served {
        waits_on: (0..u16::MAX).take(lines).any(waits_on),
    })
}

fn waits_for(order: Option<&Order>, line: u16, sku: &Sku) -> bool {
    let order = order.filter(|order| !order.closed);
    let line = order.and_then(|order| order.lines.get(usize::from(line)));
    line.is_some_and(|line| line.pending() > 0 && line.sku() == *sku)
}
