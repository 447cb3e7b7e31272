//! Caps of partners: when their counters are read.

use vouchsafe_actors::flows::{FlowError, PlaceOrderError};
use vouchsafe_domain::partner::caps::Caps;
use vouchsafe_simulation::build;
use vouchsafe_simulation::walk::{OrderReply, OrderRequest};

use crate::fixture::{ALICE, assert_settled, order_request, setup};
use crate::simulation_tests;

simulation_tests! {
    async fn delivered_order_reads_no_pending_counters(sim, node, gifts: 9) {
        let request = capped_request("k", "gift", 0);
        assert!(node.place_order(&request).await.expect_new().starts_with("DELIVERED"));
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (0, 1));
    }

    async fn pending_order_beyond_the_cap_is_refused_before_its_commit(sim, node, gifts: 9) {
        let placed = node.place_order(&capped_request("k1", "bought", 1)).await;
        assert!(placed.expect_new().starts_with("PENDINGVENDOR"));
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (1, 1));
        let refused = node.place_order(&capped_request("k2", "bought", 1)).await;
        let OrderReply::Rejected(PlaceOrderError::Cap(exceeded)) = refused else {
            panic!("{}", refused.describe());
        };
        assert_eq!(exceeded.used, 1);
        assert_eq!((sim.db.cap_reads(), sim.db.commits_sent()), (2, 1));
    }

    async fn failed_read_of_pending_counters_releases_the_holds() {
        let (sim, node) = setup().await;
        sim.db.fail_cap_reads(1);
        let request = capped_request("k", "bought", 1);
        let failed = node.place_order(&request).await;
        assert_eq!(failed.error(), Some(&FlowError::Unavailable), "{}", failed.describe());
        assert_settled(&sim, &node).await;
        assert!(node.place_order(&request).await.expect_new().starts_with("PENDINGVENDOR"));
        assert_eq!(sim.balance(ALICE), 9_000);
        assert_eq!(sim.db.wallet(build::usd_wallet(ALICE)).unwrap().pending_orders, build::minor(1_000));
    }
}

fn capped_request(key: &str, product: &str, pending_orders: u32) -> OrderRequest {
    order_request(ALICE, key, product, 1).with_caps(Caps {
        pending_orders: Some(pending_orders),
        ..Caps::default()
    })
}
