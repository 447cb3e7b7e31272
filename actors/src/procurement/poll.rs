//! Procurement poller: periodically finds pending work in the store, including work left unfinished by a
//! crash.
//!
//! All nodes serve waiting orders at once: an order is claimed by one of them, and the reserved stock of a
//! SKU is distributed by one at a time. They do so in rounds: each SKU gets its share of a round, so a
//! backlog of one SKU delays no other. While a round leaves work behind, the next one follows at once.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::Procurement;
use crate::flows;
use crate::ports::vendors::{ReservedStock, SkuLocks, WaitingOrder};
use vouchsafe_domain::store_error::Unavailable;

/// Poll interval; bounds the delay before an order's purchase starts.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Number of orders per round: some tenths of a second, after which newer orders of other SKUs have their
/// turn.
const ROUND_ORDERS: usize = 256;

/// Number of reservations per round, in equal shares for each SKU; bounds memory.
const ROUND_RESERVATIONS: usize = 256;

/// SKUs whose reserved stock a node distributes concurrently: one that blocks delays few others.
const DISTRIBUTION_CONCURRENCY: usize = 8;

/// How many orders advance concurrently: many share a commit, and their statements queue for the connections
/// of jobs.
const ORDER_CONCURRENCY: usize = 64;

/// What a round has left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Finished,
    /// Work was done, and more may be due.
    Continues,
}

impl Round {
    fn of(continues: bool) -> Self {
        if continues {
            Self::Continues
        } else {
            Self::Finished
        }
    }
}

impl Procurement {
    /// Polls until dropped. Every step is complete or has no effect, so dropping the future is safe.
    pub async fn run(&self) -> Infallible {
        let (never, _) = tokio::join!(self.poll_vendors(), self.poll_orders());
        never
    }

    /// Notifies the vendors' actors, independently of the progress of orders.
    async fn poll_vendors(&self) -> Infallible {
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
    /// While another node distributes stock of a SKU, this one may end an order that waits for it; the commit
    /// of one of them then finds the order changed.
    async fn poll_orders(&self) -> Infallible {
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut locks, mut round) = (None, Round::Finished);
        loop {
            if round == Round::Finished {
                tick.tick().await;
            }
            round = match self.distribute_reserved_stock(&mut locks).await {
                Ok(distributed) => distributed,
                Err(error) => {
                    warn!(error.message = %error, "cannot read reserved stock");
                    Round::Finished
                }
            };
            match self.advance_waiting_orders().await {
                Ok(Round::Finished) => {}
                Ok(Round::Continues) => round = Round::Continues,
                Err(error) => warn!(error.message = %error, "cannot read orders waiting for vendors"),
            }
        }
    }

    /// Distributes the reserved stock of the SKUs that no other node serves now. Keeps the locks' connection
    /// while there is such stock.
    async fn distribute_reserved_stock(
        &self,
        kept: &mut Option<Box<dyn SkuLocks>>,
    ) -> Result<Round, Unavailable> {
        let opened = kept.take();
        let mut reserved = self.vendors.list_reserved_stock(ROUND_RESERVATIONS).await?;
        if reserved.is_empty() {
            return Ok(Round::Finished);
        }
        let mut locks = match opened {
            Some(locks) => locks,
            None => self.vendors.open_sku_locks().await?,
        };
        let skus = reserved.iter().map(|stock| stock.sku.clone()).collect();
        let locked = locks.lock(skus).await?;
        reserved.retain(|stock| locked.contains(&stock.sku));
        let share = (ROUND_ORDERS / reserved.len().max(1)).max(1);
        let distribute = async |reserved: ReservedStock| {
            let distributed =
                flows::distribute_reserved_stock(&self.engine, &*self.vendors, &reserved, share).await;
            if let Err(error) = &distributed {
                warn!(sku = %reserved.sku, error.message = %error, "cannot distribute reserved stock; it stays reserved");
            }
            distributed.is_ok()
        };
        let distributed: Vec<_> = stream::iter(reserved)
            .map(distribute)
            .buffer_unordered(DISTRIBUTION_CONCURRENCY)
            .collect()
            .await;
        locks.lock(Vec::new()).await?;
        *kept = Some(locks);
        Ok(Round::of(distributed.contains(&true)))
    }

    /// Advances waiting orders: starts them, or ends them if nothing more will come.
    async fn advance_waiting_orders(&self) -> Result<Round, Unavailable> {
        let waiting = self.vendors.claim_waiting_orders(ROUND_ORDERS).await?;
        let round = Round::of(!waiting.is_empty());
        let advance = async |order: WaitingOrder| {
            if let Err(error) = flows::advance_waiting_order(&self.engine, &*self.vendors, order).await {
                warn!(order.id = %order.order_id, error.message = %error, "cannot advance order waiting for a vendor");
            }
        };
        stream::iter(waiting)
            .for_each_concurrent(ORDER_CONCURRENCY, advance)
            .await;
        Ok(round)
    }
}
