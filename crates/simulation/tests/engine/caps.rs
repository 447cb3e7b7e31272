//! Caps of partners: when their counters are read.

use vouchsafe_actors::flows::{FlowError, PlaceOrderError};
use vouchsafe_actors::supervisor::DECISION_TIMEOUT;
use vouchsafe_domain::partner::approval_rule::Thresholds;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_simulation::walk::{OrderReply, OrderRequest};
use vouchsafe_simulation::{Fault, build};

use crate::fixture::{ALICE, assert_settled, order_request, setup};
use crate::simulation_tests;

simulation_tests! {
    async fn delivered_order_reads_no_pending_counters(sim, node, gifts: 9) {
        let request = capped_request("k", "gift", 0);
        assert!(node.place_order(&request).await.expect_new().starts_with("DELIVERED"));
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (0, 1));
    }

    async fn counters_are_read_only_after_a_commit_found_a_cap_exceeded(sim, node, gifts: 9) {
        let placed = node.place_order(&capped_request("k1", "bought", 1)).await;
        assert!(placed.expect_new().starts_with("PENDINGVENDOR"));
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (0, 1));
        let refused = node.place_order(&capped_request("k2", "bought", 1)).await;
        assert_eq!(cap_use(&refused), 1);
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (1, 2));
        // From now on without a commit, until an order is within the caps.
        let refused = node.place_order(&capped_request("k3", "bought", 1)).await;
        assert_eq!(cap_use(&refused), 1);
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (2, 2));
        for (key, reads) in [("k4", 3), ("k5", 3)] {
            let placed = node.place_order(&capped_request(key, "bought", 9)).await;
            assert!(placed.expect_new().starts_with("PENDINGVENDOR"));
            assert_eq!(sim.db.cap_reads(), reads);
        }
    }

    async fn slow_commit_that_finds_a_cap_exceeded_leaves_time_to_decide(sim, node, gifts: 9) {
        let placed = node.place_order(&capped_request("k1", "bought", 1)).await;
        assert!(placed.expect_new().starts_with("PENDINGVENDOR"));
        sim.db.fail_commit("one", Fault::Slow(2 * DECISION_TIMEOUT));
        let refused = node.place_order(&capped_request("k2", "bought", 1)).await;
        assert_eq!(cap_use(&refused), 1);
    }

    async fn cap_comes_before_a_refusal_that_is_stored(sim, node, gifts: 9) {
        let request = |key, quantity| order_request(ALICE, key, "gift", quantity).with_caps(PartnerCaps {
            spend_per_day: Thresholds([(build::usd(), build::minor(2_000))].into()),
            ..PartnerCaps::default()
        });
        assert!(node.place_order(&request("k1", 1)).await.expect_new().starts_with("DELIVERED"));
        assert_eq!(sim.db.cap_reads(), 0);
        // More than the stock: the refusal would be stored under the key, and the cap is the earlier reason.
        let refused = node.place_order(&request("k2", 10)).await;
        assert_eq!(cap_use(&refused), 1_000);
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (1, 1));
    }

    async fn failed_read_of_pending_counters_releases_the_holds() {
        let (sim, node) = setup().await;
        assert!(node.place_order(&capped_request("k1", "bought", 1)).await.expect_new().starts_with("PENDINGVENDOR"));
        sim.db.fail_cap_reads(1);
        let failed = node.place_order(&capped_request("k2", "bought", 1)).await;
        assert_eq!(failed.error(), Some(&FlowError::Unavailable), "{}", failed.describe());
        assert_settled(&sim, &node).await;
        let placed = node.place_order(&capped_request("k2", "bought", 2)).await;
        assert!(placed.expect_new().starts_with("PENDINGVENDOR"));
        assert_eq!(sim.balance(ALICE), 8_000);
        assert_eq!(sim.db.wallet(build::usd_wallet(ALICE)).unwrap().pending_orders, build::minor(2_000));
    }
}

/// What the partner had used of the cap that refused the order.
fn cap_use(refused: &OrderReply) -> i64 {
    let OrderReply::Rejected(PlaceOrderError::Cap(exceeded)) = refused else {
        panic!("{}", refused.describe());
    };
    exceeded.used
}

fn capped_request(key: &str, product: &str, pending_orders: u32) -> OrderRequest {
    order_request(ALICE, key, product, 1).with_caps(PartnerCaps {
        pending_orders: Some(pending_orders),
        ..PartnerCaps::default()
    })
}
