//! Procurement poller: periodically finds pending work in the store, including work left unfinished by a crash.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_domain::ids::OrderId;

use super::Procurement;
use crate::flows;
use crate::ports::store::Unavailable;
use crate::ports::vendors::{ReservedStock, WaitingOrder};

/// Poll interval; bounds the delay before an order's purchase starts.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of orders and of reserved stock entries per poll; bounds memory.
const POLL_LIMIT: usize = 50;

/// How many orders advance concurrently: one that blocks delays few others.
const SETTLE_CONCURRENCY: usize = 8;

impl Procurement {
    /// Polls until dropped. Every step is complete or has no effect, so dropping the future is safe.
    pub async fn run(&self) {
        tokio::join!(self.poll_vendors(), self.poll_orders());
    }

    /// Notifies the vendors' actors, independently of the progress of orders.
    async fn poll_vendors(&self) {
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            match self.vendors.list_capacities().await {
                Ok(vendors) => vendors.into_iter().for_each(|vendor| self.notify_actor(vendor)),
                Err(error) => warn!(error.message = %error, "cannot read vendors"),
            }
            match self.vendors.list_out_of_stock().await {
                Ok(skus) => self.engine.out_of_stock.replace(skus),
                Err(error) => warn!(error.message = %error, "cannot read out-of-stock SKUs"),
            }
        }
    }

    /// Distributes reserved stock before it ends orders: available stock is used before anything is refunded.
    async fn poll_orders(&self) {
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut after = None;
        loop {
            tick.tick().await;
            if let Err(error) = self.distribute_reserved_stock().await {
                warn!(error.message = %error, "cannot read reserved stock");
            }
            match self.advance_waiting_orders(after).await {
                Ok(last) => after = last,
                Err(error) => warn!(error.message = %error, "cannot read orders waiting for vendors"),
            }
        }
    }

    async fn distribute_reserved_stock(&self) -> Result<(), Unavailable> {
        let reserved = self.vendors.list_reserved_stock(POLL_LIMIT).await?;
        let distribute = async |reserved: ReservedStock| {
            let sku = reserved.sku.clone();
            if let Err(error) = flows::distribute_reserved_stock(&self.engine, &*self.vendors, reserved).await
            {
                warn!(%sku, error.message = %error, "cannot distribute reserved stock; it stays reserved");
            }
        };
        // Sequential: two entries of one SKU in parallel would not serve the oldest order first.
        for reserved in reserved {
            distribute(reserved).await;
        }
        Ok(())
    }

    /// Advances orders without open purchases: starts them, or ends them if nothing more will come. Returns the last
    /// order's id, after which the next poll continues, so that orders that cannot advance do not block those behind them.
    async fn advance_waiting_orders(&self, after: Option<OrderId>) -> Result<Option<OrderId>, Unavailable> {
        let waiting = self.vendors.list_waiting_orders(after, POLL_LIMIT).await?;
        let last = waiting.get(POLL_LIMIT - 1).map(|order| order.order_id);
        let advance = async |order: WaitingOrder| {
            if let Err(error) = flows::advance_waiting_order(&self.engine, &*self.vendors, order).await {
                warn!(order.id = %order.order_id, error.message = %error, "cannot advance order waiting for a vendor");
            }
        };
        stream::iter(waiting)
            .for_each_concurrent(SETTLE_CONCURRENCY, advance)
            .await;
        Ok(last)
    }
}
