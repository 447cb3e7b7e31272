//! What is to be done next? Asked of the books again and again, so that whatever was left half done is found.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::Procurement;
use super::port::{KeptStock, WaitingOrder};
use crate::domain::ids::OrderId;
use crate::flows;
use crate::store::Unavailable;

/// How often a look is taken: an order that waits for its vendor begins no later than this.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How many orders, and how many pieces of kept stock, one look finds: bounds what it holds in memory.
const FOUND_AT_ONCE: usize = 50;

/// How many of them are moved on side by side: one that waits for somebody holds up few.
const MOVED_AT_ONCE: usize = 8;

impl Procurement {
    /// Looks for what is to be done for as long as it is polled. Dropped, it has done whole steps or nothing.
    pub async fn keep_looking(&self) {
        tokio::join!(self.keep_asking(), self.keep_settling());
    }

    /// The actors are told, whatever becomes of orders meanwhile.
    async fn keep_asking(&self) {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            match self.vendors.suppliers().await {
                Ok(suppliers) => suppliers.into_iter().for_each(|supplier| self.tell(supplier)),
                Err(error) => warn!(%error, "the vendors cannot be read now"),
            }
            match self.vendors.out_of_stock().await {
                Ok(skus) => self.engine.last_words.replace(skus),
                Err(error) => warn!(%error, "what vendors said last cannot be read now"),
            }
        }
    }

    /// Stock first: what is there is given out before anything is given up.
    async fn keep_settling(&self) {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut after = None;
        loop {
            tick.tick().await;
            if let Err(error) = self.serve_waiting().await {
                warn!(%error, "stock that is kept for those who wait cannot be read now");
            }
            match self.settle_some(after).await {
                Ok(last) => after = last,
                Err(error) => warn!(%error, "orders that wait for vendors cannot be read now"),
            }
        }
    }

    async fn serve_waiting(&self) -> Result<(), Unavailable> {
        let kept = self.vendors.kept_stock(FOUND_AT_ONCE).await?;
        let serve = async |kept: KeptStock| {
            let sku = kept.sku.clone();
            if let Err(error) = flows::serve_waiting(&self.engine, &*self.vendors, kept).await {
                warn!(%sku, %error, "stock stays kept for those who wait for it");
            }
        };
        // One after the other: two pieces of one SKU side by side would not go to the oldest order first.
        for kept in kept {
            serve(kept).await;
        }
        Ok(())
    }

    /// Orders for which nothing is being bought: they are taken up, or nothing more comes for them. Gives the last one, where
    /// the next look begins, so that some that cannot be moved on do not hide those behind them.
    async fn settle_some(&self, after: Option<OrderId>) -> Result<Option<OrderId>, Unavailable> {
        let waiting = self.vendors.waiting_orders(after, FOUND_AT_ONCE).await?;
        let last = waiting.get(FOUND_AT_ONCE - 1).map(|order| order.order_id);
        let settle = async |order: WaitingOrder| {
            if let Err(error) = flows::settle(&self.engine, &*self.vendors, order).await {
                warn!(order.id = %order.order_id, %error, "an order that waits for a vendor stays where it is for now");
            }
        };
        stream::iter(waiting)
            .for_each_concurrent(MOVED_AT_ONCE, settle)
            .await;
        Ok(last)
    }
}
