//! Operations on existing orders and payouts, their initial states, and the observed result.
//!
//! A simulation has one order or one payout, of Alice's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use time::Duration;
use uuid::Uuid;
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::flows::{
    CancelOrder, DecideOrder, DecidePayout, DecidePayoutError, IdempotentResponse, RequestPayout,
    RevokeOrder, cancel_order, decide_order, decide_payout, deliver_reserved, end_fulfilment, request_payout,
    revoke_order, start_fulfilment,
};
use vouchsafe_actors::ports::vendors::ReservedDelivery;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::{FulfilmentSource, Order};
use vouchsafe_domain::payout::{Payout, PayoutDecision, PayoutDestination, PayoutOutcome};
use vouchsafe_domain::product::Sku;
use vouchsafe_simulation::build;
use vouchsafe_simulation::walk::{Node, PlainTextResponses, Simulation};

use crate::fixture::{ALICE, gift, order_request, setup_in};

const PURCHASE: Uuid = Uuid::from_u128(7);

const WINDOW: Duration = Duration::hours(24);

/// A running operation; yields the label of its outcome.
pub(crate) type OperationFuture = Pin<Box<dyn Future<Output = String>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Cancel,
    /// Alice retrieves the codes.
    Retrieve,
    /// An operator revokes unretrieved vouchers.
    Revoke,
    Approve,
    Reject,
    /// The service allocates available stock to the order.
    Advance,
    /// The service delivers vouchers bought for the order.
    Deliver,
    /// The service gives up the remainder.
    GiveUp,
    /// Alice requests a payout.
    RequestPayout,
    /// An operator or the partner decides on the payout.
    DecidePayout(PayoutOutcome),
}

impl Operation {
    /// Starts the operation on a node.
    pub(crate) fn start(self, sim: &Simulation, node: &Node) -> OperationFuture {
        let engine = Arc::clone(&node.engine);
        let sim = sim.clone();
        match self {
            Self::Cancel => Box::pin(async move { cancel(&engine, order_of(&sim)).await }),
            Self::Retrieve => Box::pin(async move {
                let held = sim.db.retrieve(order_of(&sim)).await;
                if held { "retrieved" } else { "nothing to retrieve" }.to_owned()
            }),
            Self::Revoke => Box::pin(async move { revoke(&engine, order_of(&sim)).await }),
            Self::Approve => Box::pin(async move { decide(&engine, order_of(&sim), true).await }),
            Self::Reject => Box::pin(async move { decide(&engine, order_of(&sim), false).await }),
            Self::Advance => Box::pin(async move {
                label(
                    start_fulfilment(&engine, ALICE, order_of(&sim), true)
                        .await
                        .map(expect_order),
                )
            }),
            Self::Deliver => Box::pin(async move {
                label(
                    deliver_reserved(&engine, delivery(order_of(&sim)))
                        .await
                        .map(expect_order),
                )
            }),
            Self::GiveUp => Box::pin(async move {
                label(
                    end_fulfilment(&engine, ALICE, order_of(&sim))
                        .await
                        .map(expect_order),
                )
            }),
            Self::RequestPayout => Box::pin(async move { request_test_payout(&engine).await }),
            Self::DecidePayout(outcome) => Box::pin(async move {
                match decide_test_payout(&engine, &sim, ALICE, outcome).await {
                    Ok(payout) => payout.status.into_str().to_owned(),
                    Err(reason) => format!("{reason:?}"),
                }
            }),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialState {
    /// A balance, and no order or payout.
    Funded,
    /// An order of two, delivered from stock; three more are in stock.
    Delivered,
    /// An order of two that waits for approval; this many are in stock, and the rest may be bought.
    AwaitingApproval(usize),
    /// The same, but the rest may not be bought.
    AwaitingApprovalStockOnly(usize),
    /// An order of three that waits for its vendor; this many arrived in stock.
    AwaitingVendor(usize),
    /// One of three is delivered; `bought` more are reserved for the order.
    PartiallyDelivered {
        bought: usize,
        retrieved: bool,
    },
    PayoutPending,
}

impl InitialState {
    /// Creates a simulation in this state.
    pub(crate) async fn create(self) -> (Simulation, Node) {
        self.create_in(Simulation::new()).await
    }

    /// Same, in a given simulation.
    pub(crate) async fn create_in(self, sim: Simulation) -> (Simulation, Node) {
        let (sim, node) = setup_in(sim).await;
        match self {
            Self::Funded => {}
            Self::Delivered => {
                sim.import(&gift(), &[1; 5]);
                place_order(&node, "gift", 2, false).await;
            }
            Self::AwaitingApproval(stock) => {
                place_order(&node, "checked", 2, false).await;
                node.import(&sku("checked"), &vec![1; stock]);
            }
            Self::AwaitingApprovalStockOnly(stock) => {
                let shelved = sim.import(&sku("checked"), &[1; 2]);
                place_order(&node, "checked", 2, true).await;
                for voucher in &shelved[stock..] {
                    assert!(sim.db.void(voucher.stock_id).await);
                }
            }
            Self::AwaitingVendor(stock) => {
                place_order(&node, "bought", 3, false).await;
                import_unreserved(&sim, &node, stock);
            }
            Self::PartiallyDelivered { bought, retrieved } => {
                place_order(&node, "bought", 3, false).await;
                import_unreserved(&sim, &node, 1);
                run_operation(&sim, &node, Operation::Advance).await;
                if retrieved {
                    run_operation(&sim, &node, Operation::Retrieve).await;
                }
                sim.db
                    .add_reserved_stock(&sku("bought"), &vec![build::day(1); bought], PURCHASE);
            }
            Self::PayoutPending => drop(run_operation(&sim, &node, Operation::RequestPayout).await),
        }
        (sim, node)
    }
}

/// Imports stock without a reservation for waiting orders.
fn import_unreserved(sim: &Simulation, node: &Node, stock: usize) {
    sim.import(&sku("bought"), &vec![1; stock]);
    for (kept_id, _) in sim.db.reserved_stock() {
        sim.db.release_reservation(kept_id);
    }
    node.engine
        .inventory
        .notify_restocked(&sku("bought"), build::day(1));
}

/// Runs an operation to completion.
pub(crate) async fn run_operation(sim: &Simulation, node: &Node, operation: Operation) -> String {
    node.spawn(operation.start(sim, node)).await.unwrap()
}

/// The observable state, in one line.
pub(crate) fn observe(sim: &Simulation) -> String {
    let wallet = build::usd_wallet(ALICE);
    let stored = sim.db.wallet(wallet).unwrap();
    let pending = stored.pending_orders.minor() + stored.pending_payouts.minor();
    let entries = sim.db.ledger(wallet).len();
    let money = format!("{}+{pending} after {entries} entries", sim.balance(ALICE));
    let payouts = sim.db.payouts().into_iter();
    let payouts = payouts.map(|payout| format!("{} {}", payout.status.into_str(), payout.timeline.len()));
    let orders = sim
        .db
        .orders()
        .into_iter()
        .map(|order| observe_order(sim, &order));
    orders
        .chain(payouts)
        .chain([money])
        .collect::<Vec<_>>()
        .join(", ")
}

/// Status; delivered, pending and failed quantities; number of events; number of free vouchers.
fn observe_order(sim: &Simulation, order: &Order) -> String {
    let line = &order.lines[0];
    let events = sim.db.events(ALICE).into_iter();
    let events: u32 = events.map(|events| events.bundle.count()).sum();
    format!(
        "{} {}/{}/{}{}, {events} events, {} free",
        order.status.into_str(),
        line.delivered,
        line.pending(),
        line.failed,
        if order.closed { " closed" } else { "" },
        sim.db.free_vouchers(&line.sku()).len(),
    )
}

fn sku(product: &str) -> Sku {
    build::sku(product, 1_000)
}

async fn place_order(node: &Node, product: &str, quantity: u32, cache_only: bool) {
    let request = order_request(ALICE, "k", product, quantity);
    let request = if cache_only { request.cache_only() } else { request };
    node.place_order(&request).await.expect_new();
}

fn order_of(sim: &Simulation) -> OrderId {
    sim.db.orders()[0].order_id
}

fn delivery(order_id: OrderId) -> ReservedDelivery {
    ReservedDelivery {
        reservation_id: PURCHASE,
        source: FulfilmentSource::Vendor,
        partner_id: ALICE,
        order_id,
        line: 0,
    }
}

/// Label of an outcome: the order's status or the error's name.
fn label<E: std::fmt::Debug>(outcome: Result<Order, E>) -> String {
    outcome.map_or_else(
        |error| format!("{error:?}"),
        |order| order.status.into_str().to_owned(),
    )
}

fn expect_order(order: Option<Order>) -> Order {
    order.expect("the order exists")
}

async fn cancel(engine: &Engine, order_id: OrderId) -> String {
    let command = CancelOrder {
        caps: None,
        partner_id: ALICE,
        order_id,
        reason: None,
        window: WINDOW,
    };
    label(cancel_order(engine, command, |_| true).await)
}

async fn revoke(engine: &Engine, order_id: OrderId) -> String {
    let command = RevokeOrder {
        partner_id: ALICE,
        order_id,
        reason: "test".to_owned(),
        operator: build::operator(),
    };
    label(revoke_order(engine, command).await)
}

async fn decide(engine: &Engine, order_id: OrderId, approved: bool) -> String {
    let command = DecideOrder {
        partner_id: ALICE,
        order_id,
        approved,
        reason: "test".to_owned(),
        operator: build::operator(),
    };
    label(decide_order(engine, command).await)
}

async fn request_test_payout(engine: &Engine) -> String {
    let command = RequestPayout {
        partner_id: ALICE,
        key: build::key("payout"),
        fingerprint: build::fingerprint("payout"),
        money: build::minor(700).of(build::usd()),
        destination: PayoutDestination {
            masked: r#"{"type":"other"}"#.into(),
            sealed: b"sealed".as_slice().into(),
        },
        reference: None,
    };
    match request_payout(engine, command, &PlainTextResponses).await {
        Ok(IdempotentResponse::Fresh(_)) => "requested".to_owned(),
        Ok(IdempotentResponse::Replayed(_)) => "replayed".to_owned(),
        Err(reason) => format!("{reason:?}"),
    }
}

/// Decides on the only payout, as if it were this partner's.
pub(crate) async fn decide_test_payout(
    engine: &Engine,
    sim: &Simulation,
    partner_id: PartnerId,
    outcome: PayoutOutcome,
) -> Result<Payout, DecidePayoutError> {
    let command = DecidePayout {
        partner_id,
        payout_id: sim.db.payouts()[0].payout_id,
        decision: PayoutDecision {
            outcome,
            reason: Some("test".to_owned()),
            reference: None,
        },
        author: build::operator(),
    };
    decide_payout(engine, command).await
}
