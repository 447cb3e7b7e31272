//! The count of a partner's earlier orders, which an approval rule for first orders needs.

use std::collections::BTreeMap;

use tokio::time::sleep;
use vouchsafe_actors::flows::FlowError;
use vouchsafe_domain::approval::ApprovalRule;
use vouchsafe_simulation::walk::OrderRequest;
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, SECOND, assert_settled, gift, order_request, setup};
use crate::simulation_tests;

simulation_tests! {
    async fn replay_and_reused_key_cost_no_order_count(sim, node, gifts: 9) {
        let request = first_order_request("k", 1);
        let first = node.place_order(&request).await.expect_new().to_owned();
        assert_eq!(sim.db.order_counts(), 1);
        assert_eq!(node.place_order(&request).await.expect_replay(), first);
        let other = node.place_order(&first_order_request("k", 2)).await;
        assert_eq!(other.error(), Some(&FlowError::KeyReused));
        assert_eq!(sim.db.order_counts(), 1);
    }

    async fn key_in_flight_costs_no_order_count(sim, node, gifts: 9) {
        sim.db.fail_commit("one", Fault::Slow(3 * SECOND));
        let request = first_order_request("k", 1);
        let first = node.start_order(&request);
        sleep(SECOND / 2).await;
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::KeyInFlight));
        assert!(first.await.unwrap().expect_new().starts_with("PENDINGAPPROVAL"));
        assert_eq!(sim.db.order_counts(), 1);
    }

    async fn rule_without_first_orders_needs_no_order_count(sim, node, gifts: 9) {
        let rule = ApprovalRule {
            amount_over: BTreeMap::from([(build::usd(), build::minor(1))]),
            ..ApprovalRule::default()
        };
        for (key, expected) in [("by amount", "PENDINGAPPROVAL"), ("no rule", "DELIVERED")] {
            let request = order_request(ALICE, key, "gift", 1);
            let request = if key == "no rule" { request } else { request.with_approval_rule(rule.clone()) };
            assert!(node.place_order(&request).await.expect_new().starts_with(expected), "{key}");
        }
        assert_eq!(sim.db.order_counts(), 0);
    }

    async fn unpriced_order_needs_no_order_count(sim, node) {
        let request = OrderRequest::new(ALICE, "k", &[("nothing", "10.00", 1)]).with_approval_rule(first_order_rule());
        assert!(node.place_order(&request).await.is_unpriced());
        assert_eq!(sim.db.order_counts(), 0);
    }

    async fn failed_order_count_holds_nothing_and_key_stays_usable(sim, node, gifts: 9) {
        sim.db.fail_calls("one", FaultKind::ReadError, 1);
        let request = first_order_request("k", 1);
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Unavailable));
        assert!(node.engine.wallets.stats().is_empty(), "no wallet was asked for a hold");
        assert!(node.engine.inventory.stats().is_empty(), "no shelf was asked for a hold");
        assert_eq!((sim.db.order_counts(), sim.db.commits_sent()), (1, 0));
        assert_settled(&sim, &node).await;
        assert!(node.place_order(&request).await.expect_new().starts_with("PENDINGAPPROVAL"));
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000));
    }

    async fn replay_after_restart_survives_failed_order_count() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 9]);
        let request = first_order_request("k", 1);
        let first = node.place_order(&request).await.expect_new().to_owned();
        drop(node);
        let node = sim.start("one").await;
        sim.db.fail_calls("one", FaultKind::ReadError, 1);
        assert_eq!(node.place_order(&request).await.expect_replay(), first);
        assert_eq!(sim.balance(ALICE), 9_000);
        assert_settled(&sim, &node).await;
    }
}

fn first_order_rule() -> ApprovalRule {
    ApprovalRule {
        first_orders: 1,
        ..ApprovalRule::default()
    }
}

fn first_order_request(key: &str, quantity: u32) -> OrderRequest {
    order_request(ALICE, key, "gift", quantity).with_approval_rule(first_order_rule())
}
