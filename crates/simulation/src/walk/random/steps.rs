//! Steps of a walk: actions of partners and operators, and faults.

use std::sync::Arc;
use std::time::Duration;

use vouchsafe_domain::product::Sku;

use super::{Call, NAMES, PARTNERS, Walk};
use crate::walk::vendors::vendor_of;
use crate::walk::{Node, OrderRequest};
use crate::{Fault, FaultKind, build};

/// Kinds of step with their weights. Each occurs in some walk.
pub const STEPS: [(&str, u32); 26] = [
    ("order", 30),
    ("vendor order", 16),
    ("duplicate", 12),
    ("other body", 4),
    ("burst", 10),
    ("top-up", 8),
    ("direct top-up", 2),
    ("import", 12),
    ("void", 6),
    ("wallet panic", 4),
    ("shelf panic", 4),
    ("procurement panic", 4),
    ("outage", 3),
    ("poison", 2),
    ("overload", 2),
    ("restart", 4),
    ("takeover", 2),
    ("clock", 2),
    ("cancel", 8),
    ("revoke", 3),
    ("decide", 8),
    ("retrieve", 4),
    ("fulfil", 8),
    ("payout", 6),
    ("payout decision", 6),
    ("replay", 4),
];

/// Baskets of orders; the first three are the most frequent.
const BASKETS: [&[(&str, &str, u32)]; 10] = [
    &[("gift", "10.00", 1)],
    &[("gift", "10.00", 2)],
    &[("gift", "10.00", 3), ("gift", "25.00", 1), ("gift", "10.00", 1)],
    &[("gift", "25.00", 2), ("strict", "10.00", 1)],
    &[("bought", "10.00", 2)],
    &[("bought", "10.00", 1), ("gift", "10.00", 1)],
    &[("checked", "10.00", 1)],
    &[("strict", "10.00", 2)],
    &[("gift", "10.00", 40)],
    &[("old", "10.00", 1)],
];

/// Baskets that exceed the stock, for the partner with ample funds.
const VENDOR_BASKETS: [&[(&str, &str, u32)]; 4] = [
    &[("bought", "10.00", 4)],
    &[("bought", "25.00", 3)],
    &[
        ("bought", "25.00", 2),
        ("bought", "10.00", 3),
        ("bought", "25.00", 1),
    ],
    &[("bought", "25.00", 2), ("gift", "10.00", 1)],
];

const IMPORTED: [(&str, i64); 5] = [
    ("gift", 1_000),
    ("gift", 2_500),
    ("bought", 1_000),
    ("checked", 1_000),
    ("strict", 1_000),
];

/// Start of the walk, in days relative to 2031-01-01.
const TODAY: i64 = -365;

impl Walk {
    pub(super) async fn step(&mut self) {
        let all: u32 = STEPS.iter().map(|(_, weight)| weight).sum();
        let mut roll = self.rng.below(all);
        let chosen = STEPS.iter().find(|(_, weight)| {
            let is_hit = roll < *weight;
            roll = roll.saturating_sub(*weight);
            is_hit
        });
        let name = chosen.map_or("order", |(name, _)| *name);
        *self.report.steps.entry(name).or_default() += 1;
        self.note(name.to_owned());
        match name {
            "vendor order" => self.order_from_vendor(),
            "duplicate" => self.duplicate(),
            "other body" => self.other_body(),
            "burst" => self.burst().await,
            "top-up" => self.top_up(),
            "direct top-up" => self.top_up_directly().await,
            "import" => self.import(),
            "void" => self.void().await,
            "wallet panic" => self.panic_wallet().await,
            "shelf panic" => self.panic_shelf().await,
            "procurement panic" => self.panic_procurement().await,
            "outage" => self.outage().await,
            "poison" => (0..3).for_each(|_| self.simulation.db.fail_commit(NAMES[0], Fault::Poisoned)),
            "overload" => self.occupy_admission().await,
            "restart" => self.restart().await,
            "takeover" => self.simulation.db.expire_lease(NAMES[self.rng.below(2) as usize]),
            "clock" => self.clock(),
            "cancel" => self.cancel(),
            "revoke" => self.revoke(),
            "decide" => self.decide(),
            "retrieve" => self.retrieve(),
            "fulfil" => self.fulfil(),
            "payout" => self.request_payout(),
            "payout decision" => self.decide_payout(),
            "replay" => self.replay(),
            _ => self.order(),
        }
        let pause_ms = self.rng.choose(&[0, 0, 1, 5, 20, 80, 300, 1_500]);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }

    /// Index of a running node; at least one runs at any time.
    fn random_live_node(&mut self) -> usize {
        let index = self.rng.below(2) as usize;
        if self.nodes[index].is_some() {
            index
        } else {
            1 - index
        }
    }

    pub(super) fn random_node(&mut self) -> &Node {
        let index = self.random_live_node();
        self.nodes[index].as_ref().expect("at least one node is running")
    }

    fn send_order(&mut self, request: OrderRequest) {
        let task = self.random_node().start_order(&request);
        self.calls.push(Call::Order(request, task));
    }

    fn new_request(&mut self) -> OrderRequest {
        self.keys += 1;
        let (partner_id, _) = self.rng.choose(&PARTNERS);
        let max = if self.rng.percent(60) { 3 } else { BASKETS.len() };
        let basket = self.rng.choose(&BASKETS[..max]);
        let request = OrderRequest::new(partner_id, &format!("key {}", self.keys), basket);
        let request = request.with_reference(&format!("key {}@{}", self.keys, self.epoch));
        if self.rng.percent(10) {
            request.cache_only()
        } else {
            request
        }
    }

    /// An earlier request of this epoch.
    fn earlier_request(&mut self) -> Option<OrderRequest> {
        let requests = self.history.first_requests();
        (!requests.is_empty())
            .then(|| requests[self.rng.below(requests.len().try_into().unwrap_or(1)) as usize].clone())
    }

    fn order(&mut self) {
        let request = self.new_request();
        self.send_order(request);
    }

    /// An order that usually exceeds the stock.
    fn order_from_vendor(&mut self) {
        self.keys += 1;
        let ((rich, _), basket) = (PARTNERS[0], self.rng.choose(&VENDOR_BASKETS));
        let request = OrderRequest::new(rich, &format!("key {}", self.keys), basket);
        let request = request.with_reference(&format!("key {}@{}", self.keys, self.epoch));
        self.send_order(request);
    }

    fn duplicate(&mut self) {
        if let Some(request) = self.earlier_request() {
            self.send_order(request);
        }
    }

    fn other_body(&mut self) {
        if let Some(mut request) = self.earlier_request() {
            request.lines[0].2 += 1;
            self.send_order(request);
        }
    }

    /// A burst of requests, about half of which disconnect before their reply.
    async fn burst(&mut self) {
        let before = self.calls.len();
        for _ in 0..4 + self.rng.below(20) {
            if self.rng.percent(30) {
                self.duplicate()
            } else {
                self.order()
            }
        }
        let pause_ms = self.rng.choose(&[0, 1, 3, 50]);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        for call in &self.calls[before..] {
            if self.rng.percent(50) {
                match call {
                    Call::Order(_, task) => task.abort(),
                    Call::TopUp(_, task) => task.abort(),
                    Call::Change(_, task) => task.abort(),
                }
            }
        }
    }

    fn top_up(&mut self) {
        let (partner_id, _) = self.rng.choose(&PARTNERS);
        let reference = format!("{partner_id} {}", self.rng.below(8));
        let amount = self.rng.choose(&[5_000, 20_000, -3_000, -900_000]);
        let command = build::top_up_command(partner_id, &reference, amount);
        let task = self.random_node().start_top_up(command.clone());
        if self.rng.percent(20) {
            task.abort();
        }
        self.calls.push(Call::TopUp(command, task));
    }

    /// Credits a wallet directly in the database.
    async fn top_up_directly(&mut self) {
        let (partner_id, _) = self.rng.choose(&PARTNERS);
        let simulation = self.simulation.clone();
        // Not joined: a slow commit may hold the wallet's lock.
        #[allow(clippy::disallowed_methods)]
        drop(tokio::task::spawn_local(async move {
            simulation.top_up(partner_id, 2_000).await
        }));
        tokio::task::yield_now().await;
    }

    fn import(&mut self) {
        let (product, denomination) = self.rng.choose(&IMPORTED);
        let sku = build::sku(product, denomination);
        let first = self.rng.choose(&[TODAY, TODAY + 20, 0, 30, 200, 4_000]);
        let count = i64::from(1 + self.rng.below(80));
        let days: Vec<i64> = (0..count).map(|n| first + n % 7).collect();
        self.simulation.import(&sku, &days);
        for node in self.nodes.iter().flatten() {
            node.engine.inventory.notify_restocked(&sku, build::day(first));
        }
    }

    /// A partner replays some of its events.
    fn replay(&mut self) {
        let (webhook_id, partner_id) = self.rng.choose(&self.simulation.db.endpoints());
        let events = self.simulation.db.events(partner_id);
        if let Some(last) = events.last() {
            let newest = u32::try_from(last.number).unwrap_or(u32::MAX);
            let first = i64::from(1 + self.rng.below(newest));
            let numbers = first..=last.number.min(first + 3);
            self.simulation.db.replay(webhook_id, numbers);
        }
    }

    /// An operator voids a free voucher.
    async fn void(&mut self) {
        let sku = self.random_sku();
        let free = self.simulation.db.free_vouchers(&sku);
        if !free.is_empty() {
            let voucher = self.rng.choose(&free[..free.len().min(12)]);
            let simulation = self.simulation.clone();
            // Not joined: a slow commit may hold the voucher's lock.
            #[allow(clippy::disallowed_methods)]
            drop(tokio::task::spawn_local(async move {
                simulation.db.void(voucher.stock_id).await
            }));
        }
    }

    fn random_sku(&mut self) -> Sku {
        let (product, denomination) = self.rng.choose(&IMPORTED);
        build::sku(product, denomination)
    }

    async fn panic_wallet(&mut self) {
        let (partner_id, _) = self.rng.choose(&PARTNERS);
        self.random_node().panic_wallet(partner_id).await;
    }

    async fn panic_shelf(&mut self) {
        let sku = self.random_sku();
        self.random_node().panic_shelf(&sku).await;
    }

    async fn panic_procurement(&mut self) {
        let vendor_id = vendor_of(&self.random_sku());
        self.random_node().panic_procurement(&vendor_id).await;
    }

    /// The store becomes unavailable just as the commit of an order is lost, and the partner retries.
    async fn outage(&mut self) {
        let (request, index) = (self.new_request(), self.random_live_node());
        let fault = self
            .rng
            .choose(&[Fault::ResponseLost, Fault::NeverSent, Fault::Delayed]);
        self.simulation.db.fail_commit(NAMES[index], fault);
        let (recoveries, reads) = (10 + self.rng.below(30), self.rng.below(30));
        self.simulation
            .db
            .fail_calls(NAMES[index], FaultKind::RecoveryError, recoveries);
        for _ in 0..3 {
            let task = self.nodes[index].as_ref().map(|node| node.start_order(&request));
            self.calls
                .extend(task.map(|task| Call::Order(request.clone(), task)));
            tokio::time::sleep(Duration::from_millis(self.rng.choose(&[1, 500, 3_000, 11_000]))).await;
        }
        self.simulation
            .db
            .fail_calls(NAMES[index], FaultKind::ReadError, reads);
    }

    /// Exhausts the admission permits for a moment.
    async fn occupy_admission(&mut self) {
        let permits: Vec<_> = self
            .nodes
            .iter()
            .flatten()
            .flat_map(|node| PARTNERS.map(|(partner, _)| node.engine.occupy_admission(partner, 0)))
            .collect();
        for _ in 0..3 {
            self.order();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(permits);
    }

    /// A node crashes; its next incarnation starts now or at a later restart.
    async fn restart(&mut self) {
        let index = self.rng.below(2) as usize;
        self.nodes[index] = None;
        let is_other_running = self.nodes[1 - index].is_some();
        if !(is_other_running && self.rng.percent(30)) {
            let node = self.simulation.start(NAMES[index]).await;
            node.start_background();
            self.nodes[index] = Some(node);
        }
    }

    fn clock(&mut self) {
        let hours = self.rng.choose(&[-30, -1, 1, 30]);
        Arc::clone(&self.simulation.clock).jump(time::Duration::hours(hours));
    }
}
