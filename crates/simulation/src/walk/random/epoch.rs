//! End of an epoch: every unanswered key is resolved by a retry, replies are compared with the rows, and all
//! keys expire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vouchsafe_actors::flows::OrderResponseEncoder as _;
use vouchsafe_domain::order::{Actor, FulfilmentSource, Order, OrderStatus};

use super::{MINUTES_TO_SETTLE, NAMES, Node, PARTNERS, Walk};
use crate::build;
use crate::conformance::EndpointChange;
use crate::walk::{OrderRequest, PlainTextResponses};

/// More than the lifetime of a key.
const MORE_THAN_A_DAY: Duration = Duration::from_secs(25 * 60 * 60);

impl Walk {
    /// Crashes both nodes, resolves all keys on a new one, and waits until they expire.
    pub(super) async fn end_epoch(&mut self) {
        self.heal();
        self.nodes = [None, None];
        self.check().await;
        NAMES
            .iter()
            .for_each(|name| self.simulation.db.expire_lease(name));
        self.nodes[0] = Some(self.simulation.start(NAMES[0]).await);
        self.resolve_keys().await;
        self.finish_purchases().await;
        self.finish_deliveries().await;
        self.compare_with_rows();
        self.check_balances().await;
        self.note(format!("end of epoch {}: {}", self.epoch, self.summary()));
        tokio::time::sleep(MORE_THAN_A_DAY).await;
        self.history.clear();
        (self.epoch, self.keys) = (self.epoch + 1, 0);
        self.nodes[1] = Some(self.simulation.start(NAMES[1]).await);
        self.nodes.iter().flatten().for_each(Node::start_background);
        self.inject_faults();
    }

    /// Completes the purchases of waiting orders, then stops procurement so that the simulated day is cheap.
    async fn finish_purchases(&mut self) {
        let procurement = Arc::clone(&self.random_node().procurement);
        let procurement_task = self.random_node().spawn(async move { procurement.run().await });
        self.settle().await;
        procurement_task.abort();
        self.check().await;
    }

    /// Completes the deliveries, and checks that every event was delivered in sequence.
    async fn finish_deliveries(&mut self) {
        let endpoints = self.simulation.db.endpoints();
        for (webhook_id, _) in &endpoints {
            // A failing endpoint would wait for hours.
            let enable = EndpointChange::EnableByOperator;
            self.simulation.db.change_endpoint(*webhook_id, enable);
        }
        let delivery_task = self.random_node().start_deliveries();
        for _ in 0..MINUTES_TO_SETTLE {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let mut webhook_ids = endpoints.iter().map(|(webhook_id, _)| *webhook_id);
            if webhook_ids.all(|webhook_id| self.simulation.db.is_delivered(webhook_id)) {
                break;
            }
        }
        delivery_task.abort();
        self.check().await;
        let violations = self.simulation.receivers.violations(&self.simulation.db);
        self.assert_empty("deliveries", violations);
    }

    /// Counts outcomes of this epoch's orders that waited for a vendor.
    fn count_outcomes(&mut self, orders: &[Order]) {
        for order in orders.iter().filter(|order| order.closed) {
            let by_service = order.timeline.last().is_some_and(|last| last.by == Actor::System);
            let end = match order.status {
                OrderStatus::Refunded if by_service => "refunded by service",
                OrderStatus::PartiallyDelivered if by_service => "given up",
                OrderStatus::Delivered if order.fulfilled_from == Some(FulfilmentSource::Vendor) => "bought",
                OrderStatus::Delivered if order.fulfilled_from == Some(FulfilmentSource::Mixed) => {
                    "partly bought"
                }
                _ => continue,
            };
            *self.report.replies.entry(end).or_default() += 1;
        }
    }

    /// Retries every request: open keys must get a response, others the same response as before.
    async fn resolve_keys(&mut self) {
        let stored: Vec<OrderRequest> = self
            .history
            .stored()
            .map(|(request, _)| request.clone())
            .collect();
        let open = self.history.unanswered_requests().into_iter();
        for requests in open.chain(stored.into_iter().map(|request| vec![request])) {
            let mut last_reply = String::new();
            let mut certain = false;
            for request in &requests {
                let reply = self.random_node().place_order(request).await;
                self.history.record(request, &reply);
                certain |= reply.response().is_some() || reply.is_unpriced();
                last_reply = reply.describe();
            }
            assert!(certain, "{requests:?} got no response: {last_reply}");
        }
        self.check().await;
    }

    /// Checks that every accepted response has exactly one order with that content, and that no other orders
    /// exist.
    fn compare_with_rows(&mut self) {
        let suffix = format!("@{}", self.epoch);
        let mut orders: BTreeMap<_, Vec<Order>> = BTreeMap::new();
        let all = self.simulation.db.orders();
        let of_epoch = |order: &&Order| {
            order
                .reference
                .as_ref()
                .is_some_and(|text| text.ends_with(&suffix))
        };
        self.count_outcomes(&all.iter().filter(of_epoch).cloned().collect::<Vec<_>>());
        for order in all {
            let reference = order.reference.clone().unwrap_or_default();
            if reference.ends_with(&suffix) {
                orders
                    .entry((order.partner_id, reference))
                    .or_default()
                    .push(order);
            }
        }
        for (request, response) in self.history.stored() {
            let reference = request.reference.clone().unwrap_or_default();
            let found = orders
                .remove(&(request.partner_id, reference))
                .unwrap_or_default();
            let accepted = response.status < 300;
            assert_eq!(
                found.len(),
                usize::from(accepted),
                "{request:?} got {:?}",
                response.body
            );
            // An order that has changed since its response is covered by the invariants.
            for order in found.into_iter().filter(|order| order.timeline.len() == 1) {
                assert_eq!(
                    PlainTextResponses.accepted(&order),
                    *response,
                    "the order matches its response"
                );
            }
        }
        assert!(orders.is_empty(), "orders without a response: {orders:?}");
    }

    /// The only node agrees with the database on every balance.
    async fn check_balances(&self) {
        for node in self.nodes.iter().flatten() {
            self.assert_empty(node.name, node.leaks().await);
            for (partner_id, _) in PARTNERS {
                assert!(node.has_current_balance(partner_id).await, "{partner_id}");
            }
        }
    }

    /// Summary of the rows without random ids.
    fn summary(&self) -> String {
        let balances = PARTNERS.map(|(partner_id, _)| self.simulation.balance(partner_id));
        let orders = self.simulation.db.orders();
        let sold = orders.iter().flat_map(|order| &order.vouchers);
        let mut sold: Vec<i64> = sold.map(|sold| sold.voucher.stock_id.0).collect();
        sold.sort_unstable();
        let attempts = self.simulation.receivers.attempts();
        format!(
            "{balances:?} {} orders, {attempts} delivery attempts, sold {sold:?}",
            orders.len()
        )
    }

    /// Sells all remaining stock, to check that every free voucher is sellable.
    pub(super) async fn sell_out(&mut self) {
        self.heal();
        self.nodes[1] = None;
        NAMES
            .iter()
            .for_each(|name| self.simulation.db.expire_lease(name));
        let (rich, _) = PARTNERS[0];
        for denomination in ["10.00", "25.00"] {
            loop {
                self.keys += 1;
                let key = format!("all {denomination} {}", self.keys);
                let request = OrderRequest::new(rich, &key, &[("gift", denomination, 1)]);
                let reply = self.random_node().place_order(&request).await;
                if reply.expect_new().starts_with("INSUFFICIENT_INVENTORY") {
                    break;
                }
            }
        }
        for sku in [build::sku("gift", 1_000), build::sku("gift", 2_500)] {
            let today = self.simulation.today();
            let left = self.simulation.db.free_vouchers(&sku);
            let left: Vec<_> = left.iter().filter(|voucher| voucher.expiry >= today).collect();
            assert!(left.is_empty(), "{sku} is sold out, but {left:?} are free");
        }
        self.assert_empty("invariants", self.simulation.db.invariants());
    }
}
