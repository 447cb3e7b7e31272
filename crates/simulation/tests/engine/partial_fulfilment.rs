//! Partial fulfilment under contention: the remainder of an order is given up only if released holds could
//! not cover it.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::inventory::{StockHold, Supply};
use vouchsafe_actors::journal::Hold as _;
use vouchsafe_actors::supervisor::DecisionDeadline;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_simulation::build;
use vouchsafe_simulation::walk::Node;

use crate::fixture::{ALICE, assert_settled, order_request};
use crate::operations::{InitialState, Operation, observe, run_operation};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(10);

/// Holds vouchers of the SKU, one per hold.
async fn hold_vouchers(node: &Node, count: usize) -> Vec<StockHold> {
    let sku = build::sku("checked", 1_000);
    // Detects stock that was voided.
    node.engine.inventory.invalidate(&sku);
    let mut holds = Vec::new();
    for _ in 0..count {
        let timeout = DecisionDeadline::start();
        let pending_hold = node.engine.inventory.hold(&sku, 1, Expiry::PAST, &timeout);
        match pending_hold.await {
            Ok(Supply::Held(hold)) => holds.push(hold),
            other => panic!("expected a hold, got {other:?}"),
        }
    }
    holds
}

simulation_tests! {
    async fn remainder_coverable_by_released_holds_is_not_given_up() {
        let (sim, node) = InitialState::AwaitingApprovalStockOnly(1).create().await;
        let holds = hold_vouchers(&node, 1).await;
        let approval = node.spawn(Operation::Approve.start(&sim, &node));
        sleep(MOMENT).await;
        drop(holds);
        assert_eq!(approval.await.unwrap(), "PARTIALLY_DELIVERED");
        assert_eq!(observe(&sim), "PARTIALLY_DELIVERED 1/0/1 closed, 6 events, 0 free, 9000+0 after 3 entries");
        assert_settled(&sim, &node).await;
    }

    async fn remainder_is_given_up_once_held_stock_is_gone() {
        let (sim, node) = InitialState::AwaitingApprovalStockOnly(1).create().await;
        let holds = hold_vouchers(&node, 1).await;
        let approval = node.spawn(Operation::Approve.start(&sim, &node));
        sleep(MOMENT).await;
        for hold in holds {
            assert!(sim.db.void(hold.vouchers()[0].stock_id).await);
            Box::new(hold).settle(None);
        }
        assert_eq!(approval.await.unwrap(), "REFUNDED");
        assert_eq!(observe(&sim), "REFUNDED 0/0/2 closed, 4 events, 0 free, 10000+0 after 3 entries");
        assert_settled(&sim, &node).await;
    }

    async fn order_repeatedly_losing_races_is_not_given_up(sim, node) {
        sim.import(&build::sku("checked", 1_000), &[1; 7]);
        node.place_order(&order_request(ALICE, "k", "checked", 7).cache_only()).await.expect_new();
        let mut holds = hold_vouchers(&node, 7).await;
        let approval = node.spawn(Operation::Approve.start(&sim, &node));
        for hold in holds.drain(..5) {
            sleep(MOMENT).await;
            assert!(sim.db.void(hold.vouchers()[0].stock_id).await);
            Box::new(hold).settle(None);
        }
        assert_eq!(approval.await.unwrap(), "Flow(Unavailable)");
        drop(holds);
        assert_eq!(run_operation(&sim, &node, Operation::Approve).await, "PARTIALLY_DELIVERED");
        assert_eq!(observe(&sim), "PARTIALLY_DELIVERED 2/0/5 closed, 7 events, 0 free, 8000+0 after 3 entries");
    }
}
