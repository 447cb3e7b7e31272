//! Rejections of orders: only on the store's state, and only if no operation in flight could still change it.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::flows::FlowError;
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, BOB, SECOND, gift, order_request, top_up_command};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

simulation_tests! {
    async fn insufficient_funds_rejection_is_stored(sim, node, gifts: 20) {
        let request = order_request(ALICE, "k", "gift", 11);
        assert_eq!(node.place_order(&request).await.expect_new(), "INSUFFICIENT_FUNDS 110.00 of 10000");
        sim.top_up(ALICE, 100_000).await;
        assert_eq!(node.place_order(&request).await.expect_replay(), "INSUFFICIENT_FUNDS 110.00 of 10000");
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 11)).await.expect_new().starts_with("DELIVERED"));
    }

    async fn missing_wallet_has_insufficient_funds(sim, node, gifts: 1) {
        let partner = build::partner(9);
        let reply = node.place_order(&order_request(partner, "k", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_FUNDS 10.00 of 0");
        sim.top_up(partner, 1_000).await;
        assert!(node.place_order(&order_request(partner, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
    }

    async fn insufficient_stock_rejection_is_stored_and_names_product(sim, node) {
        sim.import(&gift(), &[1, 2]);
        let request = order_request(ALICE, "k", "gift", 3);
        let refusal = "INSUFFICIENT_INVENTORY gift/1000 3 of 2";
        assert_eq!(node.place_order(&request).await.expect_new(), refusal);
        node.import(&gift(), &[1, 2]);
        assert_eq!(node.place_order(&request).await.expect_replay(), refusal);
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 3)).await.expect_new().starts_with("DELIVERED"));
        assert_eq!(sim.balance(ALICE), 7_000);
    }

    async fn cache_only_order_is_rejected_though_vendor_sells_it(sim, node) {
        let request = order_request(ALICE, "k", "bought", 1).cache_only();
        assert_eq!(node.place_order(&request).await.expect_new(), "INSUFFICIENT_INVENTORY bought/1000 1 of 0");
    }

    async fn import_without_notification_is_found_before_rejection(sim, node, gifts: 1) {
        node.place_order(&order_request(ALICE, "k1", "gift", 1)).await.expect_new();
        sim.import(&gift(), &[1]);
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
    }

    async fn last_voucher_is_sold_out_only_after_commit(sim, node, gifts: 1) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let (started, alice) = (Instant::now(), node.start_order(&order_request(ALICE, "k", "gift", 1)));
        sleep(MOMENT).await;
        let bob = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(bob.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        assert_eq!(started.elapsed(), SECOND);
        assert!(alice.await.unwrap().expect_new().starts_with("DELIVERED"));
    }

    async fn last_voucher_is_sold_to_next_order_when_commit_fails(sim, node, gifts: 1) {
        fail_commit_slowly(&sim);
        let alice = node.start_order(&order_request(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        let bob = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert!(bob.expect_new().starts_with("DELIVERED"), "{}", bob.describe());
        assert_eq!(alice.await.unwrap().error(), Some(&FlowError::Unavailable));
    }

    async fn funds_are_insufficient_only_after_commit(sim, node, gifts: 20) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.start_order(&order_request(ALICE, "k1", "gift", 9));
        sleep(MOMENT).await;
        let second = node.place_order(&order_request(ALICE, "k2", "gift", 2)).await;
        assert_eq!(second.expect_new(), "INSUFFICIENT_FUNDS 20.00 of 1000");
        assert!(first.await.unwrap().expect_new().starts_with("DELIVERED"));
    }

    async fn funds_are_released_when_commit_fails(sim, node, gifts: 20) {
        fail_commit_slowly(&sim);
        let first = node.start_order(&order_request(ALICE, "k1", "gift", 9));
        sleep(MOMENT).await;
        let second = node.place_order(&order_request(ALICE, "k2", "gift", 2)).await;
        assert!(second.expect_new().starts_with("DELIVERED"), "{}", second.describe());
        assert_eq!(first.await.unwrap().error(), Some(&FlowError::Unavailable));
        assert_eq!(sim.balance(ALICE), 8_000);
    }

    async fn order_waiting_too_long_is_unavailable_and_not_stored(sim, node, gifts: 1) {
        sim.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let alice = node.start_order(&order_request(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        let (started, request) = (Instant::now(), order_request(BOB, "k", "gift", 1));
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Unavailable));
        assert_eq!((started.elapsed(), sim.db.stored_key(request.key_hash())), (2 * SECOND, None));
        assert!(alice.await.unwrap().expect_new().starts_with("DELIVERED"));
        assert_eq!(node.place_order(&request).await.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn shortage_is_not_reported_while_store_is_unavailable(sim, node) {
        sim.db.fail_calls("one", FaultKind::ReadError, 3);
        let reply = node.place_order(&order_request(ALICE, "k", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        sim.db.fail_calls("one", FaultKind::ReadError, 1_000);
        let request = order_request(ALICE, "k2", "gift", 1);
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Unavailable));
        sim.db.heal();
        assert_eq!(node.place_order(&request).await.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn actor_without_waiters_does_not_poll_unavailable_store(sim, node, gifts: 9) {
        let before = node.place_order(&order_request(BOB, "before", "gift", 1)).await;
        assert!(before.expect_new().starts_with("DELIVERED"));
        sim.db.fail_calls("one", FaultKind::ReadError, 1_000_000);
        for request in [order_request(ALICE, "new partner", "gift", 1), order_request(BOB, "short", "gift", 99)] {
            assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Unavailable));
        }
        assert!(node.start_order(&order_request(BOB, "new shelf", "bought", 1)).await.unwrap().error().is_some());
        sleep(SECOND).await;
        let reads = || sim.db.fault_counts()[&FaultKind::ReadError];
        let reads_before = reads();
        sleep(600 * SECOND).await;
        assert_eq!(reads() - reads_before, 0);
        sim.db.heal();
        assert!(node.place_order(&order_request(ALICE, "new partner", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        assert!(node.place_order(&order_request(BOB, "new shelf", "bought", 1)).await.expect_new().starts_with("PENDINGVENDOR"));
    }

    async fn requests_beyond_admission_limit_are_rejected(sim, node, gifts: 3) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let permits = node.engine.occupy_admission(ALICE, 1);
        let first = node.start_order(&order_request(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        let request = order_request(ALICE, "k2", "gift", 1);
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Overloaded));
        assert!(first.await.unwrap().expect_new().starts_with("DELIVERED"));
        assert!(node.place_order(&request).await.expect_new().starts_with("DELIVERED"), "the permit is free again");
        drop(permits);
    }

    async fn full_lane_takes_nothing_from_the_others(sim, node, gifts: 1) {
        let permits = node.engine.occupy_admission(ALICE, 0);
        let other = (2..).map(build::partner).find(|partner| !node.engine.occupy_admission(*partner, 0).is_empty());
        let other = other.unwrap();
        assert_eq!(node.place_order(&order_request(ALICE, "k1", "gift", 1)).await.error(), Some(&FlowError::Overloaded));
        sim.top_up(other, 10_000).await;
        assert!(!node.engine.is_full());
        assert!(node.place_order(&order_request(other, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        drop(permits);
    }

    async fn stale_balance_is_reread_before_next_decision(sim, node, gifts: 30) {
        node.place_order(&order_request(ALICE, "k0", "gift", 1)).await.expect_new();
        let other = sim.start("two").await;
        other.top_up(top_up_command(ALICE, "elsewhere", -8_500)).await.unwrap();
        // The read after the rejected commit takes several attempts; no decision is made meanwhile.
        sim.db.fail_calls("one", FaultKind::ReadError, 5);
        let started = Instant::now();
        let reply = node.place_order(&order_request(ALICE, "k1", "gift", 2)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_FUNDS 20.00 of 500");
        assert_eq!(started.elapsed(), SECOND / 2);
        other.top_up(top_up_command(ALICE, "more", 1_500)).await.unwrap();
        let reply = node.place_order(&order_request(ALICE, "k2", "gift", 2)).await;
        assert!(reply.expect_new().starts_with("DELIVERED"), "{}", reply.describe());
    }
}

/// Makes the next commit get lost, be recovered as not written after a while, and then fail as busy.
fn fail_commit_slowly(sim: &vouchsafe_simulation::walk::Simulation) {
    sim.db.fail_commit("one", Fault::NeverSent);
    sim.db.fail_calls("one", FaultKind::RecoveryError, 5);
    sim.db.fail_commit("one", Fault::Busy);
}
