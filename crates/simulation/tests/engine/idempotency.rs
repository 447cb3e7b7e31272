//! Idempotency keys: concurrent and later retries, other requests under the key, other nodes, restarts,
//! expiry.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::flows::{FlowError, PlaceOrderError};
use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_simulation::walk::{Node, OrderReply, Simulation, catalogue, discontinued};
use vouchsafe_simulation::{Fault, FaultKind};

use crate::fixture::{ALICE, BOB, SECOND, assert_settled, gift, order_request, setup, top_up_command};
use crate::simulation_tests;

const HOUR: Duration = Duration::from_secs(60 * 60);
const MOMENT: Duration = Duration::from_millis(1);

simulation_tests! {
    async fn replay_returns_stored_bytes_and_executes_nothing(sim, node, gifts: 9) {
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.place_order(&request).await;
        let stored = sim.db.stored_key(request.key_hash()).unwrap();
        for _ in 0..3 {
            assert_eq!(node.place_order(&request).await, OrderReply::Replayed(stored.known.response.clone()));
        }
        assert_eq!(first, OrderReply::New(stored.known.response));
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000));
    }

    async fn recent_response_is_replayed_while_store_is_unavailable(sim, node, gifts: 1) {
        let (order, refusal) = (order_request(ALICE, "k", "gift", 1), order_request(ALICE, "too much", "gift", 9_999));
        let first = [node.place_order(&order).await, node.place_order(&refusal).await];
        sim.db.fail_calls("one", FaultKind::ReadError, 9);
        (0..9).for_each(|_| sim.db.fail_commit("one", Fault::Busy));
        for (request, reply) in [&order, &refusal].into_iter().zip(&first) {
            assert_eq!(node.place_order(request).await.expect_replay(), reply.expect_new());
        }
        sim.db.heal();
    }

    async fn other_request_under_used_key_is_rejected() {
        let (sim, mut node) = setup().await;
        sim.import(&gift(), &[1; 9]);
        node.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        for _ in ["from memory", "from the store"] {
            let other = node.place_order(&order_request(ALICE, "k", "gift", 2)).await;
            assert_eq!(other.error(), Some(&FlowError::KeyReused));
            node = sim.start("one").await;
        }
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000));
        assert!(node.place_order(&order_request(BOB, "k", "gift", 2)).await.expect_new().starts_with("DELIVERED"), "keys are per partner");
        assert_settled(&sim, &node).await;
    }

    async fn concurrent_duplicates_execute_once_and_share_response(sim, node, gifts: 9) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let request = order_request(ALICE, "k", "gift", 1);
        let calls: Vec<_> = (0..20).map(|_| node.start_order(&request)).collect();
        let other = node.start_order(&order_request(ALICE, "k", "gift", 3));
        let mut replies = Vec::new();
        for call in calls {
            replies.push(call.await.unwrap());
        }
        let response = sim.db.stored_key(request.key_hash()).unwrap().known.response;
        assert_eq!(replies[0], OrderReply::New(response.clone()));
        assert!(replies[1..].iter().all(|reply| *reply == OrderReply::Replayed(response.clone())));
        assert_eq!(other.await.unwrap().error(), Some(&FlowError::KeyReused));
        assert_eq!(sim.db.orders().len(), 1);
    }

    async fn duplicate_of_unstored_failure_executes_itself(sim, node, gifts: 9) {
        make_store_busy(&sim);
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.start_order(&request);
        let second = node.start_order(&request);
        assert_eq!(first.await.unwrap().error(), Some(&FlowError::Unavailable));
        assert!(second.await.unwrap().expect_new().starts_with("DELIVERED"));
    }

    async fn duplicate_of_unpriced_order_is_priced_again(sim, node, gifts: 1) {
        sim.set_catalogue(Catalogue::default());
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.start_order(&request);
        sim.set_catalogue(catalogue());
        let second = node.start_order(&request);
        assert!(matches!(first.await.unwrap(), OrderReply::Rejected(PlaceOrderError::Pricing(_))));
        assert!(second.await.unwrap().expect_new().starts_with("DELIVERED"));
    }

    async fn duplicate_waits_2_s_then_key_is_busy(sim, node, gifts: 1) {
        sim.db.fail_commit("one", Fault::Slow(3 * SECOND));
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.start_order(&request);
        sleep(MOMENT).await;
        let started = Instant::now();
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::KeyInFlight));
        assert_eq!(started.elapsed(), 2 * SECOND);
        assert!(first.await.unwrap().expect_new().starts_with("DELIVERED"));
        assert!(node.place_order(&request).await.expect_replay().starts_with("DELIVERED"));
    }

    async fn replay_after_restart_ignores_current_catalogue_and_stock() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1]);
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.place_order(&request).await.expect_new().to_owned();
        type Change = fn(&Simulation);
        let nothing: Change = |_| {};
        let discontinue: Change = |sim| {
            let product = sim.catalogue().get(&gift().product_id).unwrap().as_ref().clone();
            sim.set_catalogue(sim.catalogue().with_product(discontinued(product)));
        };
        let restock: Change = |sim| {
            sim.set_catalogue(catalogue());
            sim.import(&gift(), &[1, 2, 3]);
        };
        for (today, change) in [("sold out", nothing), ("discontinued", discontinue), ("restocked", restock)] {
            change(&sim);
            let node = sim.start("one").await;
            assert_eq!(node.place_order(&request).await.expect_replay(), first, "{today}");
            assert_settled(&sim, &node).await;
        }
        let last = sim.start("one").await;
        last.top_up(top_up_command(ALICE, "whole balance", -9_000)).await.unwrap();
        assert_eq!(last.place_order(&request).await.expect_replay(), first, "the wallet is empty");
        assert_eq!((sim.db.orders().len(), sim.db.free_vouchers(&gift()).len()), (1, 3));
        assert_settled(&sim, &last).await;
        drop(node);
    }

    async fn replay_after_restart_does_not_need_the_actors() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1, 1]);
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.place_order(&request).await.expect_new().to_owned();
        node.top_up(top_up_command(ALICE, "b", 500)).await.unwrap();
        drop(node);
        let node = sim.start("one").await;
        // A slow commit of another order in the same wallet prevents the actor from being rebuilt.
        sim.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let other = node.start_order(&order_request(ALICE, "other", "gift", 1));
        sleep(MOMENT).await;
        node.panic_wallet(ALICE).await;
        assert_eq!(node.place_order(&request).await.expect_replay(), first);
        assert!(node.top_up(top_up_command(ALICE, "b", 500)).await.unwrap().replayed);
        assert!(other.await.unwrap().expect_new().starts_with("DELIVERED"));
        assert_settled(&sim, &node).await;
    }

    async fn key_expires_24_hours_after_commit(sim, node, gifts: 9) {
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.place_order(&request).await.expect_new().to_owned();
        sleep(24 * HOUR - SECOND).await;
        assert_eq!(node.place_order(&request).await.expect_replay(), first);
        sleep(SECOND).await;
        assert_ne!(node.place_order(&request).await.expect_new(), first);
        assert_eq!(sim.db.orders().len(), 2);
    }

    async fn replay_from_store_does_not_extend_key() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 9]);
        let request = order_request(ALICE, "k", "gift", 1);
        let refused = order_request(ALICE, "too much", "gift", 9_999);
        let (first, refusal) = (node.place_order(&request).await, node.place_order(&refused).await);
        drop(node);
        let node = sim.start("one").await;
        sleep(23 * HOUR).await;
        assert_eq!(node.place_order(&request).await.expect_replay(), first.expect_new());
        assert_eq!(node.place_order(&refused).await.expect_replay(), refusal.expect_new());
        sleep(HOUR).await;
        node.place_order(&request).await.expect_new();
        node.place_order(&refused).await.expect_new();
        assert_settled(&sim, &node).await;
    }

    async fn identical_rejections_by_two_nodes_are_indistinguishable() {
        let (sim, one) = setup().await;
        let two = sim.start("two").await;
        let request = order_request(ALICE, "k", "gift", 11);
        // Node one's rejection waits behind a slow commit while node two's is written. Node one then loses
        // its response and finds an identical rejection under the key, so it cannot tell whose it is.
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        sim.db.fail_commit("one", Fault::ResponseLost);
        let before = one.start_top_up(top_up_command(ALICE, "b", 500));
        sleep(MOMENT).await;
        let first = one.start_order(&request);
        sleep(MOMENT).await;
        let second = two.place_order(&request).await;
        let first = first.await.unwrap();
        assert_eq!((first.expect_new(), second.expect_new()), ("INSUFFICIENT_FUNDS 110.00 of 10000", first.expect_new()));
        before.await.unwrap().unwrap();
        assert!(sim.db.stored_key(request.key_hash()).is_some());
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (0, 10_500));
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn key_at_two_nodes_executes_once() {
        let (sim, one) = setup().await;
        let two = sim.start("two").await;
        let request = order_request(ALICE, "k", "gift", 1);
        sim.import(&gift(), &[1]);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let first = one.start_order(&request);
        sleep(MOMENT).await;
        sim.import(&gift(), &[1]);
        let second = two.place_order(&request).await;
        assert_eq!(second.expect_replay(), first.await.unwrap().expect_new());
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000));
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn key_lookup_failure_is_unavailable_not_rejected() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1]);
        let request = order_request(ALICE, "k", "gift", 1);
        node.place_order(&request).await.expect_new();
        drop(node);
        sim.set_catalogue(Catalogue::default());
        let node: Node = sim.start("one").await;
        sim.db.fail_calls("one", FaultKind::ReadError, 1);
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::Unavailable));
        assert!(node.place_order(&request).await.expect_replay().starts_with("DELIVERED"));
        assert_settled(&sim, &node).await;
    }
}

/// Makes the next two commits fail as busy.
fn make_store_busy(sim: &Simulation) {
    sim.db.fail_commit("one", Fault::Busy);
    sim.db.fail_commit("one", Fault::Busy);
}
