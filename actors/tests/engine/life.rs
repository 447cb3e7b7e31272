//! What can be done to an order or a payout that is there, each under one name; what it is done to; what is seen of it.
//!
//! Rule: a world has one order or one payout, Alice's, so that what is seen is all that there is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use time::Duration;
use uuid::Uuid;
use vouchsafe_actors::domain::answer::Answer;
use vouchsafe_actors::domain::ids::{OrderId, PayoutId};
use vouchsafe_actors::domain::money::{Amount, Money};
use vouchsafe_actors::domain::order::{Order, Source};
use vouchsafe_actors::domain::payout::{Destination, Payout, PayoutDecision, PayoutEnd};
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::flows::{
    CancelOrder, DecideOrder, DecidePayout, Delivery, PayoutWording, Placed, RequestPayout, RevokeOrder,
    cancel_order, decide_order, decide_payout, deliver, give_up, request_payout, revoke_order, take_up,
};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::{Node, World};

use crate::shop::{ALICE, gift, shop_in, wants};

/// Under which purchase something was bought for the order.
const PURCHASE: Uuid = Uuid::from_u128(7);

/// How long Alice may cancel.
const WINDOW: Duration = Duration::hours(24);

/// Something on its way; what came of it is one word.
pub(crate) type Doing = Pin<Box<dyn Future<Output = String>>>;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Cancel,
    /// Alice reads the codes.
    Read,
    /// An operator takes back what was not read.
    Revoke,
    Approve,
    Reject,
    /// The service takes the order up.
    TakeUp,
    /// The service delivers what was bought for it.
    Deliver,
    /// The service gives the rest up.
    GiveUp,
    /// Alice asks for a payout.
    Ask,
    /// An operator says what became of the payout.
    End(PayoutEnd),
}

impl Act {
    /// Does it on a node.
    pub(crate) fn on(self, world: &World, node: &Node) -> Doing {
        let engine = Arc::clone(&node.engine);
        let world = world.clone();
        match self {
            Self::Cancel => Box::pin(async move { cancelled(&engine, order_of(&world)).await }),
            Self::Read => Box::pin(async move {
                let held = world.db.retrieve(order_of(&world)).await;
                if held { "read" } else { "nothing to read" }.to_owned()
            }),
            Self::Revoke => Box::pin(async move { revoked(&engine, order_of(&world)).await }),
            Self::Approve => Box::pin(async move { decided(&engine, order_of(&world), true).await }),
            Self::Reject => Box::pin(async move { decided(&engine, order_of(&world), false).await }),
            Self::TakeUp => {
                Box::pin(
                    async move { word(take_up(&engine, ALICE, order_of(&world), true).await.map(there)) },
                )
            }
            Self::Deliver => {
                Box::pin(async move { word(deliver(&engine, delivery(order_of(&world))).await.map(there)) })
            }
            Self::GiveUp => {
                Box::pin(async move { word(give_up(&engine, ALICE, order_of(&world)).await.map(there)) })
            }
            Self::Ask => Box::pin(async move { asked(&engine).await }),
            Self::End(end) => Box::pin(async move { ended(&engine, payout_of(&world).payout_id, end).await }),
        }
    }
}

/// What it is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Nothing: there is money.
    Money,
    /// An order of two, delivered from stock; three more are there.
    Delivered,
    /// An order of two that waits for approval; so many are there, and the rest may be bought.
    Waiting(usize),
    /// The same, where the rest may not be bought.
    WaitingForStock(usize),
    /// An order of three that waits for its vendor; so many came into stock.
    Missed(usize),
    /// One of three delivered and, perhaps, read; so many were bought since and are kept for it.
    Partly { bought: usize, read: bool },
    /// A payout that waits.
    Payout,
}

impl Scene {
    /// A world in which it is so.
    pub(crate) async fn set(self) -> (World, Node) {
        self.set_in(World::new()).await
    }

    /// The same in a world of the caller's making.
    pub(crate) async fn set_in(self, world: World) -> (World, Node) {
        let (world, node) = shop_in(world).await;
        match self {
            Self::Money => {}
            Self::Delivered => {
                world.import(&gift(), &[1; 5]);
                places(&node, "gift", 2, false).await;
            }
            Self::Waiting(stock) => {
                places(&node, "checked", 2, false).await;
                node.imports(&sku("checked"), &vec![1; stock]);
            }
            Self::WaitingForStock(stock) => {
                let shelved = world.import(&sku("checked"), &[1; 2]);
                places(&node, "checked", 2, true).await;
                for voucher in &shelved[stock..] {
                    assert!(world.db.void(voucher.stock_id).await);
                }
            }
            Self::Missed(stock) => {
                places(&node, "bought", 3, false).await;
                imports_for_anybody(&world, &node, stock);
            }
            Self::Partly { bought, read } => {
                places(&node, "bought", 3, false).await;
                imports_for_anybody(&world, &node, 1);
                does(&world, &node, Act::TakeUp).await;
                if read {
                    does(&world, &node, Act::Read).await;
                }
                world
                    .db
                    .add_bought(&sku("bought"), &vec![build::day(1); bought], PURCHASE);
            }
            Self::Payout => drop(does(&world, &node, Act::Ask).await),
        }
        (world, node)
    }
}

/// Imports what is bought otherwise, and saw nobody wait for it: it is on the shelf, and not kept.
fn imports_for_anybody(world: &World, node: &Node, stock: usize) {
    world.import(&sku("bought"), &vec![1; stock]);
    for (kept_id, _) in world.db.kept_stock() {
        world.db.release_bought(kept_id);
    }
    node.engine.inventory.restocked(&sku("bought"), build::day(1));
}

/// Does something to its end.
pub(crate) async fn does(world: &World, node: &Node, act: Act) -> String {
    node.spawn(act.on(world, node)).await.unwrap()
}

/// Everything that can be seen of it, in one line.
pub(crate) fn seen(world: &World) -> String {
    let wallet = build::usd_of(ALICE);
    let waits = world.db.pending_orders(wallet).minor() + world.db.pending_payouts(wallet).minor();
    let entries = world.db.ledger(wallet).len();
    let money = format!("{}+{waits} after {entries} entries", world.balance(ALICE));
    let payouts = world.db.payouts().into_iter();
    let payouts = payouts.map(|payout| format!("{} {}", payout.status.as_str(), payout.timeline.len()));
    let orders = world.db.orders().into_iter().map(|order| seen_of(world, &order));
    orders
        .chain(payouts)
        .chain([money])
        .collect::<Vec<_>>()
        .join(", ")
}

/// Status; how many are delivered, pending, failed; how many events; how many vouchers nobody has.
fn seen_of(world: &World, order: &Order) -> String {
    let line = &order.lines[0];
    let told = world.db.events(ALICE).into_iter();
    let told: u32 = told.map(|told| told.bundle.count()).sum();
    format!(
        "{} {}/{}/{}{}, {told} events, {} free",
        order.status.as_str(),
        line.delivered,
        line.pending(),
        line.failed,
        if order.closed { " closed" } else { "" },
        world.db.free(&line.sku()).len(),
    )
}

fn sku(product: &str) -> Sku {
    build::sku(product, 1_000)
}

async fn places(node: &Node, product: &str, quantity: u32, cache_only: bool) {
    let ask = wants(ALICE, "k", product, quantity);
    let ask = if cache_only { ask.cache_only() } else { ask };
    node.places(&ask).await.fresh();
}

fn order_of(world: &World) -> OrderId {
    world.db.orders()[0].order_id
}

fn payout_of(world: &World) -> Payout {
    world.db.payouts().remove(0)
}

fn delivery(order_id: OrderId) -> Delivery {
    Delivery {
        kept_id: PURCHASE,
        source: Source::Vendor,
        partner_id: ALICE,
        order_id,
        line: 0,
    }
}

/// The word of an order is its status, that of a refusal its name.
fn word<E: std::fmt::Debug>(came: Result<Order, E>) -> String {
    came.map_or_else(
        |error| format!("{error:?}"),
        |order| order.status.as_str().to_owned(),
    )
}

fn there(order: Option<Order>) -> Order {
    order.expect("the order is there")
}

async fn cancelled(engine: &Engine, order_id: OrderId) -> String {
    let command = CancelOrder {
        partner_id: ALICE,
        order_id,
        reason: None,
        window: WINDOW,
    };
    word(cancel_order(engine, command, |_| true).await)
}

async fn revoked(engine: &Engine, order_id: OrderId) -> String {
    let command = RevokeOrder {
        partner_id: ALICE,
        order_id,
        reason: "so it is".to_owned(),
        by: build::somebody(),
    };
    word(revoke_order(engine, command).await)
}

async fn decided(engine: &Engine, order_id: OrderId, approved: bool) -> String {
    let command = DecideOrder {
        partner_id: ALICE,
        order_id,
        approved,
        reason: "so it is".to_owned(),
        by: build::somebody(),
    };
    word(decide_order(engine, command).await)
}

/// Answers of payouts, of which no test reads more than that they are there.
struct Plain;

impl PayoutWording for Plain {
    fn accepted(&self, payout: &Payout) -> Answer {
        build::answer(&payout.payout_id.to_string())
    }

    fn short(&self, needed: Money, available: Amount) -> Answer {
        build::answer(&format!("{needed} of {}", available.minor()))
    }
}

async fn asked(engine: &Engine) -> String {
    let command = RequestPayout {
        partner_id: ALICE,
        key: build::key("payout"),
        fingerprint: build::fingerprint("payout"),
        money: build::minor(700).of(build::usd()),
        destination: Destination {
            shown: r#"{"type":"other"}"#.into(),
            sealed: b"sealed".as_slice().into(),
        },
        reference: None,
    };
    match request_payout(engine, command, &Plain).await {
        Ok(Placed::Fresh(_)) => "asked".to_owned(),
        Ok(Placed::Replayed(_)) => "asked before".to_owned(),
        Err(reason) => format!("{reason:?}"),
    }
}

async fn ended(engine: &Engine, payout_id: PayoutId, end: PayoutEnd) -> String {
    let command = DecidePayout {
        partner_id: ALICE,
        payout_id,
        decision: PayoutDecision {
            end,
            reason: Some("so it was".to_owned()),
            reference: None,
        },
        by: build::somebody(),
    };
    match decide_payout(engine, command).await {
        Ok(payout) => payout.status.as_str().to_owned(),
        Err(reason) => format!("{reason:?}"),
    }
}
