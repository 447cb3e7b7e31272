//! Top-ups and adjustments: posted once per reference, without expiry.

use std::time::Duration;

use vouchsafe_actors::flows::{FlowError, TopUpError};
use vouchsafe_actors::wallet::purse::MAX_BALANCE;
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, SECOND, assert_settled, order_request, setup, top_up_command};
use crate::simulation_tests;

simulation_tests! {
    async fn top_up_can_be_spent_at_once(sim, node, gifts: 20) {
        assert!(node.place_order(&order_request(ALICE, "k1", "gift", 11)).await.expect_new().starts_with("INSUFFICIENT"));
        let booked = node.top_up(top_up_command(ALICE, "b", 1_000)).await.unwrap();
        assert!(!booked.replayed);
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 11)).await.expect_new().starts_with("DELIVERED"));
        assert!(node.has_current_balance(ALICE).await);
    }

    async fn first_top_up_creates_the_wallet(sim, node) {
        let new_partner = build::partner(9);
        node.top_up(top_up_command(new_partner, "b", 1_000)).await.unwrap();
        assert_eq!(sim.balance(new_partner), 1_000);
    }

    async fn reference_is_posted_once_without_expiry() {
        let (sim, node) = setup().await;
        let first = node.top_up(top_up_command(ALICE, "b", 1_000)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(400 * 24 * 60 * 60)).await;
        let again = node.top_up(top_up_command(ALICE, "b", 1_000)).await.unwrap();
        assert!(again.replayed && again.transaction_id == first.transaction_id);
        drop(node);
        let node = sim.start("one").await;
        let again = node.top_up(top_up_command(ALICE, "b", 1_000)).await.unwrap();
        assert!(again.replayed && again.transaction_id == first.transaction_id);
        let other = node.top_up(top_up_command(ALICE, "b", 2_000)).await;
        assert_eq!(other, Err(TopUpError::Flow(FlowError::KeyReused)));
        assert_eq!(sim.balance(ALICE), 11_000);
        assert_settled(&sim, &node).await;
    }

    async fn adjustment_beyond_balance_is_rejected(sim, node) {
        let refused = node.top_up(top_up_command(ALICE, "b", -10_001)).await;
        assert_eq!(refused, Err(TopUpError::InsufficientBalance(build::minor(10_000))));
        node.top_up(top_up_command(ALICE, "b", -10_000)).await.unwrap();
        assert_eq!(sim.balance(ALICE), 0);
        let again = node.top_up(top_up_command(ALICE, "b", -10_000)).await.unwrap();
        assert!(again.replayed, "the posted adjustment is replayed though the wallet is empty");
    }

    async fn adjustment_does_not_use_held_funds(sim, node, gifts: 9) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let order = node.start_order(&order_request(ALICE, "k", "gift", 9));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let refused = node.top_up(top_up_command(ALICE, "b", -2_000)).await;
        assert_eq!(refused, Err(TopUpError::InsufficientBalance(build::minor(1_000))));
        order.await.unwrap().expect_new();
    }

    async fn amount_of_i64_min_is_rejected(sim, node) {
        assert_eq!(node.top_up(top_up_command(ALICE, "b", i64::MIN)).await, Err(TopUpError::TooLarge));
    }

    async fn top_up_beyond_balance_limit_is_rejected(sim, node) {
        let remaining = MAX_BALANCE.minor() - 10_000;
        assert_eq!(node.top_up(top_up_command(ALICE, "b", remaining + 1)).await, Err(TopUpError::TooLarge));
        assert_eq!(node.top_up(top_up_command(ALICE, "huge", i64::MAX)).await, Err(TopUpError::TooLarge));
        node.top_up(top_up_command(ALICE, "c", remaining)).await.unwrap();
        assert_eq!(node.top_up(top_up_command(ALICE, "d", 1)).await, Err(TopUpError::TooLarge));
        assert!(node.top_up(top_up_command(ALICE, "c", remaining)).await.unwrap().replayed, "a replay");
        let other = sim.start("two").await;
        other.top_up(top_up_command(ALICE, "elsewhere", -1)).await.unwrap();
        node.top_up(top_up_command(ALICE, "d", 1)).await.unwrap();
        assert_eq!(sim.balance(ALICE), MAX_BALANCE.minor());
    }

    async fn top_up_of_unreadable_wallet_is_unavailable(sim, node) {
        sim.db.fail_calls("one", FaultKind::ReadError, 10_000);
        let refused = node.top_up(top_up_command(ALICE, "b", -1)).await;
        assert_eq!(refused, Err(TopUpError::Flow(FlowError::Unavailable)));
        sim.db.heal();
        node.top_up(top_up_command(ALICE, "b", -1)).await.unwrap();
    }

    async fn adjustment_with_stale_balance_is_decided_again(sim, node) {
        node.top_up(top_up_command(ALICE, "warm", 1)).await.unwrap();
        let other = sim.start("two").await;
        other.top_up(top_up_command(ALICE, "elsewhere", -9_000)).await.unwrap();
        assert_eq!(node.top_up(top_up_command(ALICE, "b", -5_000)).await, Err(TopUpError::InsufficientBalance(build::minor(1_001))));
    }
}
