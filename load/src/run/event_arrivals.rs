//! Events of orders that have arrived at the receiver of webhooks. A life of an order ends when its last
//! event has arrived.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Counts by order, until the order's life has ended.
#[derive(Debug, Default)]
pub struct EventArrivals(Mutex<HashMap<u128, ArrivedEvents>>);

#[derive(Debug, Default)]
struct ArrivedEvents {
    count: usize,
    /// The number of awaited events. Events may arrive before the response to their order.
    waiter: Option<(usize, oneshot::Sender<()>)>,
}

impl EventArrivals {
    /// Counts an event that arrived for the first time.
    pub fn record(&self, order_number: u128) {
        let mut orders = self.lock();
        let arrived = orders.entry(order_number).or_default();
        arrived.count += 1;
        if let Some((_, waiter)) = arrived.waiter.take_if(|(events, _)| *events <= arrived.count) {
            orders.remove(&order_number);
            // The waiter may have timed out.
            let _ = waiter.send(());
        }
    }

    /// Waits until `events` events of the order have arrived.
    pub(crate) async fn wait_for(&self, order_number: u128, events: usize) {
        let (sender, arrived) = oneshot::channel();
        {
            let mut orders = self.lock();
            let order = orders.entry(order_number).or_default();
            if order.count >= events {
                orders.remove(&order_number);
                return;
            }
            order.waiter = Some((events, sender));
        }
        // The sender is dropped with the map only, so this does not fail while a life waits.
        let _ = arrived.await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, ArrivedEvents>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn life_ends_with_the_last_event_before_or_after_the_response() {
        let arrivals = EventArrivals::default();
        arrivals.record(1);
        arrivals.record(1);
        assert_eq!(arrivals.wait_for(1, 2).now_or_never(), Some(()));

        arrivals.record(2);
        let mut waiting = Box::pin(arrivals.wait_for(2, 3));
        for order in [1, 2] {
            assert_eq!(waiting.as_mut().now_or_never(), None);
            arrivals.record(order);
        }
        assert_eq!(waiting.as_mut().now_or_never(), None, "one event is missing");
        arrivals.record(2);
        assert_eq!(waiting.now_or_never(), Some(()));
        assert_eq!(arrivals.lock().len(), 1, "only the other order is left");
    }
}
