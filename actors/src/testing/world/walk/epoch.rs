//! The end of a day of all keys: every open key is closed by asking again, and what was heard is held against the rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{NAMES, Node, PARTNERS, Walk};
use crate::domain::order::{Actor, Order, OrderStatus, Source};
use crate::flows::Wording as _;
use crate::testing::build;
use crate::testing::world::{Ask, Plain};

/// A little more than keys live.
const MORE_THAN_A_DAY: Duration = Duration::from_secs(25 * 60 * 60);

impl Walk {
    /// Everybody dies, one node starts anew, closes all keys, and lives through their last day.
    pub(super) async fn end_epoch(&mut self) {
        self.heal();
        self.nodes = [None, None];
        self.look().await;
        NAMES.iter().for_each(|name| self.world.db.lapse_lease(name));
        self.nodes[0] = Some(self.world.start(NAMES[0]).await);
        self.close_keys().await;
        self.buy_the_rest().await;
        self.hold_against_rows();
        self.know_balances().await;
        self.note(format!("end of epoch {}: {}", self.epoch, self.summary()));
        tokio::time::sleep(MORE_THAN_A_DAY).await;
        self.history.forget_keys();
        (self.epoch, self.keys) = (self.epoch + 1, 0);
        self.nodes[1] = Some(self.world.start(NAMES[1]).await);
        self.nodes.iter().flatten().for_each(Node::looks);
        self.make_trouble();
    }

    /// What the orders wait for that were asked for again is bought; and then nobody looks any more, so that a day is short.
    async fn buy_the_rest(&mut self) {
        let procurement = Arc::clone(&self.any_node().procurement);
        let looking = self
            .any_node()
            .spawn(async move { procurement.keep_looking().await });
        self.settle().await;
        looking.abort();
        self.look().await;
    }

    /// How the orders of this epoch ended that waited for a vendor.
    fn count_ends(&mut self, orders: &[Order]) {
        for order in orders.iter().filter(|order| order.closed) {
            let by_itself = order.timeline.last().is_some_and(|last| last.by == Actor::System);
            let end = match order.status {
                OrderStatus::Refunded if by_itself => "never delivered",
                OrderStatus::PartiallyDelivered if by_itself => "given up",
                OrderStatus::Delivered if order.fulfilled_from == Some(Source::Vendor) => "bought",
                OrderStatus::Delivered if order.fulfilled_from == Some(Source::Mixed) => "bought in part",
                _ => continue,
            };
            *self.walked.answers.entry(end).or_default() += 1;
        }
    }

    /// Whoever heard nothing certain asks again, and whoever did hears the same.
    async fn close_keys(&mut self) {
        let kept: Vec<Ask> = self.history.kept().map(|(ask, _)| ask.clone()).collect();
        let open = self.history.open().into_iter();
        for asks in open.chain(kept.into_iter().map(|ask| vec![ask])) {
            let mut last_words = String::new();
            let mut certain = false;
            for ask in &asks {
                let heard = self.any_node().places(ask).await;
                self.history.hear(ask, &heard);
                certain |= heard.answer().is_some() || heard.is_unpriced();
                last_words = heard.in_words();
            }
            assert!(certain, "{asks:?} is not answered: {last_words}");
        }
        self.look().await;
    }

    /// Every order was asked for once, and every answer that promised one has it, to the byte.
    fn hold_against_rows(&mut self) {
        let suffix = format!("@{}", self.epoch);
        let mut orders: BTreeMap<_, Vec<Order>> = BTreeMap::new();
        let all = self.world.db.orders();
        let of_epoch = |order: &&Order| {
            order
                .reference
                .as_ref()
                .is_some_and(|text| text.ends_with(&suffix))
        };
        self.count_ends(&all.iter().filter(of_epoch).cloned().collect::<Vec<_>>());
        for order in all {
            let reference = order.reference.clone().unwrap_or_default();
            if reference.ends_with(&suffix) {
                orders
                    .entry((order.partner_id, reference))
                    .or_default()
                    .push(order);
            }
        }
        for (ask, answer) in self.history.kept() {
            let reference = ask.reference.clone().unwrap_or_default();
            let found = orders.remove(&(ask.partner_id, reference)).unwrap_or_default();
            let promised = answer.status < 300;
            assert_eq!(
                found.len(),
                usize::from(promised),
                "{ask:?} was answered {:?}",
                answer.body
            );
            // What has moved on since is another one than was promised, and is held against the other rows.
            for order in found.into_iter().filter(|order| order.timeline.len() == 1) {
                assert_eq!(
                    Plain.accepted(&order),
                    *answer,
                    "what is there is what was promised"
                );
            }
        }
        assert!(orders.is_empty(), "nobody was told of these: {orders:?}");
    }

    /// The only node knows every balance.
    async fn know_balances(&self) {
        for node in self.nodes.iter().flatten() {
            self.expect_nothing(node.name, node.leaks().await);
            for (partner_id, _) in PARTNERS {
                assert!(node.knows_balance(partner_id).await, "{partner_id}");
            }
        }
    }

    /// What the rows say, without the ids that differ each time.
    fn summary(&self) -> String {
        let balances = PARTNERS.map(|(partner_id, _)| self.world.balance(partner_id));
        let orders = self.world.db.orders();
        let sold = orders.iter().flat_map(|order| &order.vouchers);
        let mut sold: Vec<i64> = sold.map(|sold| sold.voucher.stock_id.0).collect();
        sold.sort_unstable();
        format!("{balances:?} {} orders, sold {sold:?}", orders.len())
    }

    /// Whatever is free can be sold, to the last voucher.
    pub(super) async fn sell_out(&mut self) {
        self.heal();
        self.nodes[1] = None;
        NAMES.iter().for_each(|name| self.world.db.lapse_lease(name));
        let (rich, _) = PARTNERS[0];
        for denomination in ["10.00", "25.00"] {
            loop {
                self.keys += 1;
                let key = format!("all {denomination} {}", self.keys);
                let ask = Ask::new(rich, &key, &[("gift", denomination, 1)]);
                let heard = self.any_node().places(&ask).await;
                if heard.fresh().starts_with("INSUFFICIENT_INVENTORY") {
                    break;
                }
            }
        }
        for sku in [build::sku("gift", 1_000), build::sku("gift", 2_500)] {
            let today = self.world.today();
            let left = self.world.db.free(&sku);
            let left: Vec<_> = left.iter().filter(|voucher| voucher.expiry >= today).collect();
            assert!(left.is_empty(), "{sku} is sold out, and there is {left:?}");
        }
        self.expect_nothing("the rows", self.world.db.invariants());
    }
}
