//! Actor panics: actors are rebuilt from the store, and nothing is sold or paid twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::flows::FlowError;
use vouchsafe_actors::inventory::Supply;
use vouchsafe_actors::supervisor::DecisionDeadline;
use vouchsafe_actors::wallet::Funds;
use vouchsafe_actors::wallet::purse::ReserveRequest;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_simulation::walk::{Node, Simulation};
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, BOB, SECOND, assert_settled, gift, order_request, setup, top_up_command};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

/// Suppresses the output of intended panics.
pub(crate) fn silence_intended_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload_as_str().unwrap_or_default();
            if !text.contains("panics on request of a test") {
                default_hook(panic);
            }
        }));
    });
}

fn restarts(node: &Node) -> (u32, u32) {
    let wallets = node
        .engine
        .wallets
        .stats()
        .into_iter()
        .map(|(_, r)| r.restarts)
        .sum();
    let shelves = node
        .engine
        .inventory
        .stats()
        .into_iter()
        .map(|(_, r)| r.restarts)
        .sum();
    (wallets, shelves)
}

async fn setup_with_order() -> (Simulation, Node) {
    silence_intended_panics();
    let (sim, node) = setup().await;
    sim.import(&gift(), &[1; 6]);
    node.place_order(&order_request(ALICE, "warm", "gift", 1))
        .await
        .expect_new();
    (sim, node)
}

async fn panic_both_actors(node: &Node) {
    node.panic_wallet(ALICE).await;
    node.panic_shelf(&gift()).await;
}

simulation_tests! {
    async fn idle_actors_panicking_are_rebuilt_by_next_request() {
        let (sim, node) = setup_with_order().await;
        for round in 1..=3 {
            panic_both_actors(&node).await;
            let reply = node.place_order(&order_request(ALICE, &format!("k{round}"), "gift", 1)).await;
            assert!(reply.expect_new().starts_with("DELIVERED"), "{}", reply.describe());
            assert_eq!(restarts(&node), (round, round));
        }
        assert_settled(&sim, &node).await;
        assert!(node.has_current_balance(ALICE).await);
        assert_eq!((sim.balance(ALICE), sim.db.free_vouchers(&gift()).len()), (6_000, 2));
    }

    async fn rebuild_waits_for_holds_of_dead_actor() {
        for (fault, left) in [(Fault::Slow(SECOND), 8_000), (Fault::ResponseLost, 8_000), (Fault::Delayed, 8_000)] {
            let (sim, node) = setup_with_order().await;
            sim.db.fail_commit("one", fault);
            sim.db.fail_calls("one", FaultKind::RecoveryError, 4);
            let in_flight = node.start_order(&order_request(ALICE, "k1", "gift", 1));
            sleep(MOMENT).await;
            panic_both_actors(&node).await;
            let started = Instant::now();
            let next = node.place_order(&order_request(ALICE, "k2", "gift", 4)).await;
            assert!(next.expect_new().starts_with("DELIVERED"), "{fault:?}: {}", next.describe());
            assert!(started.elapsed() > 50 * MOMENT, "{fault:?}: it waited");
            in_flight.await.unwrap().expect_new();
            assert_settled(&sim, &node).await;
            assert_eq!((sim.balance(ALICE), sim.db.free_vouchers(&gift()).len()), (left - 4_000, 0), "{fault:?}");
            assert!(node.has_current_balance(ALICE).await);
        }
    }

    async fn rebuilt_actor_decides_nothing_before_old_holds_settle() {
        let (sim, node) = setup_with_order().await;
        // No lock is held in the store: only the node itself knows that the outcome is open.
        sim.db.fail_commit("one", Fault::NeverSent);
        sim.db.fail_calls("one", FaultKind::RecoveryError, 8);
        let in_flight = node.start_order(&order_request(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        panic_both_actors(&node).await;
        let (wallet, shelf) = (Arc::clone(&node.engine), Arc::clone(&node.engine));
        let money = node.spawn(async move {
            let (least, timeout) = (ReserveRequest::Debit(build::minor(1)), DecisionDeadline::start());
            wallet.wallets.hold(ALICE, build::usd(), least, &timeout).await
        });
        let voucher = node.spawn(async move {
            shelf.inventory.hold(&gift(), 1, Expiry::PAST, &DecisionDeadline::start()).await
        });
        sleep(SECOND / 2).await;
        assert!(!money.is_finished() && !voucher.is_finished());
        in_flight.await.unwrap().expect_new();
        assert!(matches!(money.await.unwrap(), Ok(Funds::Held(_))));
        assert!(matches!(voucher.await.unwrap(), Ok(Supply::Held(_))));
        assert_settled(&sim, &node).await;
    }

    async fn request_timing_out_on_rebuild_is_unavailable() {
        let (sim, node) = setup_with_order().await;
        sim.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let in_flight = node.start_order(&order_request(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        panic_both_actors(&node).await;
        let started = Instant::now();
        let (alice, bob) = (order_request(ALICE, "k2", "gift", 1), order_request(BOB, "k", "gift", 1));
        assert_eq!(node.place_order(&alice).await.error(), Some(&FlowError::Unavailable));
        assert_eq!(started.elapsed(), 2 * SECOND);
        assert_eq!(node.place_order(&bob).await.error(), Some(&FlowError::Unavailable));
        in_flight.await.unwrap().expect_new();
        node.place_order(&alice).await.expect_new();
        node.place_order(&bob).await.expect_new();
        assert_settled(&sim, &node).await;
    }

    async fn holds_of_dead_actor_are_released_when_commit_fails() {
        let (sim, node) = setup_with_order().await;
        sim.db.fail_commit("one", Fault::NeverSent);
        sim.db.fail_calls("one", FaultKind::RecoveryError, 4);
        sim.db.fail_commit("one", Fault::Busy);
        let in_flight = node.start_order(&order_request(ALICE, "k1", "gift", 5));
        sleep(MOMENT).await;
        panic_both_actors(&node).await;
        let next = node.place_order(&order_request(ALICE, "k2", "gift", 5)).await;
        assert!(next.expect_new().starts_with("DELIVERED"), "{}", next.describe());
        assert_eq!(in_flight.await.unwrap().error(), Some(&FlowError::Unavailable));
        assert_settled(&sim, &node).await;
        assert_eq!(sim.balance(ALICE), 4_000);
    }

    async fn actor_panicking_while_loading_is_rebuilt_for_waiters() {
        silence_intended_panics();
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 3]);
        sim.db.fail_calls("one", FaultKind::ReadError, 4);
        sim.db.fail_calls("one", FaultKind::ClaimResponseLost, 1);
        let waiting = node.start_order(&order_request(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        panic_both_actors(&node).await;
        panic_both_actors(&node).await;
        assert!(waiting.await.unwrap().expect_new().starts_with("DELIVERED"));
        node.top_up(top_up_command(ALICE, "b", 100)).await.unwrap();
        assert_settled(&sim, &node).await;
        assert_eq!((sim.balance(ALICE), sim.db.free_vouchers(&gift()).len()), (9_100, 2));
    }
}
