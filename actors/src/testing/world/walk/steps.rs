//! The steps of a walk: what partners, operators and bad luck do.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, NAMES, PARTNERS, Walk};
use crate::domain::ledger::{BookedBy, LedgerKind};
use crate::domain::product::Sku;
use crate::flows::TopUp;
use crate::testing::world::vendors::vendor_of;
use crate::testing::world::{Ask, Node};
use crate::testing::{Fault, FaultKind, build};

/// The kinds of step, with how often each is made among the others. Each is made in some walk.
pub const STEPS: [(&str, u32); 25] = [
    ("order", 30),
    ("backorder", 16),
    ("duplicate", 12),
    ("other body", 4),
    ("burst", 10),
    ("booking", 8),
    ("gift", 2),
    ("import", 12),
    ("void", 6),
    ("wallet panic", 4),
    ("shelf panic", 4),
    ("buyer panic", 4),
    ("outage", 3),
    ("poison", 2),
    ("crowd", 2),
    ("restart", 4),
    ("takeover", 2),
    ("clock", 2),
    ("cancel", 8),
    ("revoke", 3),
    ("decide", 8),
    ("retrieve", 4),
    ("fulfil", 8),
    ("payout", 6),
    ("end of a payout", 6),
];

/// Baskets that are ordered; the first ones most.
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

/// What is ordered to be bought, by who can pay for it.
const BACKORDERS: [&[(&str, &str, u32)]; 4] = [
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

/// Days before the first of 2031 on which the walk begins.
const TODAY: i64 = -365;

impl Walk {
    pub(super) async fn step(&mut self) {
        let all: u32 = STEPS.iter().map(|(_, weight)| weight).sum();
        let mut roll = self.dice.roll(all);
        let chosen = STEPS.iter().find(|(_, weight)| {
            let hit = roll < *weight;
            roll = roll.saturating_sub(*weight);
            hit
        });
        let name = chosen.map_or("order", |(name, _)| *name);
        *self.walked.steps.entry(name).or_default() += 1;
        self.note(name.to_owned());
        match name {
            "backorder" => self.backorder(),
            "duplicate" => self.duplicate(),
            "other body" => self.other_body(),
            "burst" => self.burst().await,
            "booking" => self.booking(),
            "gift" => self.gift().await,
            "import" => self.import(),
            "void" => self.void().await,
            "wallet panic" => self.wallet_panics().await,
            "shelf panic" => self.shelf_panics().await,
            "buyer panic" => self.buyer_panics().await,
            "outage" => self.outage().await,
            "poison" => (0..3).for_each(|_| self.world.db.fail_commit(NAMES[0], Fault::Poisoned)),
            "crowd" => self.crowd().await,
            "restart" => self.restart().await,
            "takeover" => self.world.db.lapse_lease(NAMES[self.dice.roll(2) as usize]),
            "clock" => self.clock(),
            "cancel" => self.cancel(),
            "revoke" => self.revoke(),
            "decide" => self.decide(),
            "retrieve" => self.retrieve(),
            "fulfil" => self.fulfil(),
            "payout" => self.pay_out(),
            "end of a payout" => self.end_payout(),
            _ => self.order(),
        }
        let pause_ms = self.dice.pick(&[0, 0, 1, 5, 20, 80, 300, 1_500]);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }

    /// The place of a node that lives; one lives always.
    fn any_place(&mut self) -> usize {
        let place = self.dice.roll(2) as usize;
        if self.nodes[place].is_some() {
            place
        } else {
            1 - place
        }
    }

    pub(super) fn any_node(&mut self) -> &Node {
        let place = self.any_place();
        self.nodes[place].as_ref().expect("a restart leaves no node dead")
    }

    fn ask(&mut self, ask: Ask) {
        let task = self.any_node().begins(&ask);
        self.calls.push(Call::Order(ask, task));
    }

    fn new_ask(&mut self) -> Ask {
        self.keys += 1;
        let (partner_id, _) = self.dice.pick(&PARTNERS);
        let most = if self.dice.percent(60) { 3 } else { BASKETS.len() };
        let basket = self.dice.pick(&BASKETS[..most]);
        let ask = Ask::new(partner_id, &format!("key {}", self.keys), basket);
        let ask = ask.reference(&format!("key {}@{}", self.keys, self.epoch));
        if self.dice.percent(10) {
            ask.cache_only()
        } else {
            ask
        }
    }

    /// A request of this epoch, asked again.
    fn old_ask(&mut self) -> Option<Ask> {
        let asks = self.history.asked();
        (!asks.is_empty()).then(|| asks[self.dice.roll(asks.len().try_into().unwrap_or(1)) as usize].clone())
    }

    fn order(&mut self) {
        let ask = self.new_ask();
        self.ask(ask);
    }

    /// An order of more than is in stock as a rule.
    fn backorder(&mut self) {
        self.keys += 1;
        let ((rich, _), basket) = (PARTNERS[0], self.dice.pick(&BACKORDERS));
        let ask = Ask::new(rich, &format!("key {}", self.keys), basket);
        let ask = ask.reference(&format!("key {}@{}", self.keys, self.epoch));
        self.ask(ask);
    }

    fn duplicate(&mut self) {
        if let Some(ask) = self.old_ask() {
            self.ask(ask);
        }
    }

    fn other_body(&mut self) {
        if let Some(mut ask) = self.old_ask() {
            ask.lines[0].2 += 1;
            self.ask(ask);
        }
    }

    /// Many at once, half of whom hang up before they hear anything.
    async fn burst(&mut self) {
        let before = self.calls.len();
        for _ in 0..4 + self.dice.roll(20) {
            if self.dice.percent(30) {
                self.duplicate()
            } else {
                self.order()
            }
        }
        let pause_ms = self.dice.pick(&[0, 1, 3, 50]);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        for call in &self.calls[before..] {
            if self.dice.percent(50) {
                match call {
                    Call::Order(_, task) => task.abort(),
                    Call::Booking(_, task) => task.abort(),
                    Call::Change(_, task) => task.abort(),
                }
            }
        }
    }

    fn booking(&mut self) {
        let (partner_id, _) = self.dice.pick(&PARTNERS);
        let reference = format!("{partner_id} {}", self.dice.roll(8));
        let amount = self.dice.pick(&[5_000, 20_000, -3_000, -900_000]);
        let command = TopUp {
            partner_id,
            money: build::minor(amount).of(build::usd()),
            kind: if amount < 0 {
                LedgerKind::Adjustment
            } else {
                LedgerKind::TopUp
            },
            key: build::key(&reference),
            fingerprint: build::fingerprint(&format!("{reference} {amount}")),
            reference,
            booked_by: BookedBy {
                operator: "walk".to_owned(),
                trace_id: None,
            },
        };
        let task = self.any_node().begins_to_book(command.clone());
        if self.dice.percent(20) {
            task.abort();
        }
        self.calls.push(Call::Booking(command, task));
    }

    /// An operator adds money past every node.
    async fn gift(&mut self) {
        let (partner_id, _) = self.dice.pick(&PARTNERS);
        let world = self.world.clone();
        // A commit may hold the wallet for long: the operator waits, and nobody waits for him.
        #[allow(clippy::disallowed_methods)]
        drop(tokio::task::spawn_local(async move {
            world.give(partner_id, 2_000).await
        }));
        tokio::task::yield_now().await;
    }

    fn import(&mut self) {
        let (product, denomination) = self.dice.pick(&IMPORTED);
        let sku = build::sku(product, denomination);
        let first = self.dice.pick(&[TODAY, TODAY + 20, 0, 30, 200, 4_000]);
        let count = i64::from(1 + self.dice.roll(80));
        let days: Vec<i64> = (0..count).map(|n| first + n % 7).collect();
        self.world.import(&sku, &days);
        for node in self.nodes.iter().flatten() {
            node.engine.inventory.restocked(&sku, build::day(first));
        }
    }

    /// An operator takes a free voucher out.
    async fn void(&mut self) {
        let sku = self.any_sku();
        let free = self.world.db.free(&sku);
        if !free.is_empty() {
            let voucher = self.dice.pick(&free[..free.len().min(12)]);
            let world = self.world.clone();
            // As for a gift: a commit may hold the voucher for long.
            #[allow(clippy::disallowed_methods)]
            drop(tokio::task::spawn_local(async move {
                world.db.void(voucher.stock_id).await
            }));
        }
    }

    fn any_sku(&mut self) -> Sku {
        let (product, denomination) = self.dice.pick(&IMPORTED);
        build::sku(product, denomination)
    }

    async fn wallet_panics(&mut self) {
        let (partner_id, _) = self.dice.pick(&PARTNERS);
        self.any_node().wallet_panics(partner_id).await;
    }

    async fn shelf_panics(&mut self) {
        let sku = self.any_sku();
        self.any_node().shelf_panics(&sku).await;
    }

    async fn buyer_panics(&mut self) {
        let vendor_id = vendor_of(&self.any_sku());
        self.any_node().buyer_panics(&vendor_id).await;
    }

    /// The store is out of reach for a while, just when the commit of an order is lost; its partner asks again and again.
    async fn outage(&mut self) {
        let (ask, place) = (self.new_ask(), self.any_place());
        let fault = self
            .dice
            .pick(&[Fault::AnswerLost, Fault::NeverSent, Fault::Late]);
        self.world.db.fail_commit(NAMES[place], fault);
        let (recoveries, reads) = (10 + self.dice.roll(30), self.dice.roll(30));
        self.world
            .db
            .fail_calls(NAMES[place], FaultKind::RecoverFails, recoveries);
        for _ in 0..3 {
            let task = self.nodes[place].as_ref().map(|node| node.begins(&ask));
            self.calls.extend(task.map(|task| Call::Order(ask.clone(), task)));
            tokio::time::sleep(Duration::from_millis(self.dice.pick(&[1, 500, 3_000, 11_000]))).await;
        }
        self.world
            .db
            .fail_calls(NAMES[place], FaultKind::ReadFails, reads);
    }

    /// All places among the admitted are taken for a moment.
    async fn crowd(&mut self) {
        let crowds: Vec<_> = self.nodes.iter().flatten().map(|node| node.crowd(0)).collect();
        for _ in 0..3 {
            self.order();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(crowds);
    }

    /// A node dies, and the next start of it comes up, now or with the next restart.
    async fn restart(&mut self) {
        let place = self.dice.roll(2) as usize;
        self.nodes[place] = None;
        let other_lives = self.nodes[1 - place].is_some();
        if !(other_lives && self.dice.percent(30)) {
            let node = self.world.start(NAMES[place]).await;
            node.looks();
            self.nodes[place] = Some(node);
        }
    }

    fn clock(&mut self) {
        let hours = self.dice.pick(&[-30, -1, 1, 30]);
        Arc::clone(&self.world.clock).jump(time::Duration::hours(hours));
    }
}
