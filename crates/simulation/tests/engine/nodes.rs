//! Several nodes over one database, restarts, lease expiry, shutdown.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::flows::{CancelOrder, FlowError, cancel_order};
use vouchsafe_domain::order::OrderStatus;
use vouchsafe_simulation::Fault;
use vouchsafe_simulation::walk::{Node, OrderReply, Simulation};

use crate::fixture::{ALICE, BOB, SECOND, assert_settled, gift, order_request, setup, top_up_command};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

/// Two nodes that share stock.
async fn setup_nodes() -> (Simulation, Node, Node) {
    let (sim, one) = setup().await;
    let two = sim.start("two").await;
    one.start_stock_sharing();
    two.start_stock_sharing();
    (sim, one, two)
}

simulation_tests! {
    async fn restarted_node_has_its_stock_at_once() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 3]);
        node.place_order(&order_request(ALICE, "k1", "gift", 1)).await.expect_new();
        drop(node);
        let node = sim.start("one").await;
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 2)).await.expect_new().starts_with("DELIVERED"));
        assert_settled(&sim, &node).await;
    }

    async fn node_sells_what_another_node_owns() {
        let (sim, one, two) = setup_nodes().await;
        sim.import(&gift(), &[1; 3]);
        one.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        assert!(two.place_order(&order_request(BOB, "k", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        sim.import(&gift(), &[2]);
        let more = order_request(ALICE, "more", "gift", 2);
        assert!(one.place_order(&more).await.expect_new().starts_with("DELIVERED"), "one voucher is here, one is there");
        let refusal = two.place_order(&order_request(BOB, "none", "gift", 1)).await;
        assert_eq!(refusal.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn nodes_that_each_need_more_than_half_serve_the_older_demand_first() {
        let (sim, one, two) = setup_nodes().await;
        sim.import(&gift(), &[1; 4]);
        sim.import(&gift(), &[2; 4]);
        one.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        two.place_order(&order_request(BOB, "k", "gift", 1)).await.expect_new();
        let (first, second) = tokio::join!(
            one.start_order(&order_request(ALICE, "more", "gift", 6)),
            two.start_order(&order_request(BOB, "more", "gift", 6)),
        );
        let replies = [first.unwrap().expect_new().to_owned(), second.unwrap().expect_new().to_owned()];
        assert!(replies.iter().any(|reply| reply.starts_with("DELIVERED")), "{replies:?}");
        assert!(replies.iter().any(|reply| *reply == "INSUFFICIENT_INVENTORY gift/1000 6 of 0"), "{replies:?}");
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn shortfall_with_an_open_hold_elsewhere_waits_for_its_commit() {
        let (sim, one, two) = setup_nodes().await;
        sim.import(&gift(), &[1; 8]);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let whole_stock = one.start_order(&order_request(ALICE, "k", "gift", 8));
        sleep(MOMENT).await;
        let short = two.place_order(&order_request(BOB, "short", "gift", 5)).await;
        whole_stock.await.unwrap().expect_new();
        assert_eq!(short.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 5 of 0");
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn vendor_product_is_sold_from_stock_of_another_node_before_it_is_bought() {
        let (sim, one, two) = setup_nodes().await;
        sim.import(&vouchsafe_simulation::build::sku("bought", 1_000), &[1; 2]);
        one.place_order(&order_request(ALICE, "k", "bought", 1)).await.expect_new();
        assert!(two.place_order(&order_request(BOB, "k", "bought", 1)).await.expect_new().starts_with("DELIVERED"));
        assert!(two.place_order(&order_request(BOB, "k2", "bought", 1)).await.expect_new().starts_with("PENDINGVENDOR"));
        assert_settled(&sim, &two).await;
    }

    async fn stock_of_a_killed_node_is_taken_over() {
        let (sim, one) = setup().await;
        sim.import(&gift(), &[1; 4]);
        one.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        drop(one);
        let two = sim.start("two").await;
        assert!(two.place_order(&order_request(BOB, "k", "gift", 3)).await.expect_new().starts_with("DELIVERED"));
        assert_settled(&sim, &two).await;
    }

    async fn node_paused_past_its_lease_sells_none_of_its_stock() {
        let (sim, one, two) = setup_nodes().await;
        sim.import(&gift(), &[1; 4]);
        one.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        sim.db.expire_lease("one");
        assert!(two.place_order(&order_request(BOB, "k1", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        let request = order_request(ALICE, "k2", "gift", 1);
        assert!(one.place_order(&request).await.expect_new().starts_with("DELIVERED"), "the other node releases it");
        assert!(two.place_order(&order_request(BOB, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        let refusal = one.place_order(&order_request(ALICE, "k3", "gift", 1)).await;
        assert_eq!(refusal.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        assert_settled(&sim, &one).await;
        assert_settled(&sim, &two).await;
    }

    async fn superseded_incarnation_writes_nothing_and_reports_it() {
        let (sim, old) = setup().await;
        sim.import(&gift(), &[1; 4]);
        old.place_order(&order_request(ALICE, "k1", "gift", 1)).await.expect_new();
        let new = sim.start("one").await;
        let reply = old.place_order(&order_request(ALICE, "k2", "gift", 1)).await;
        assert_eq!(reply.error(), Some(&FlowError::OutcomeUnknown));
        tokio::time::timeout(SECOND, old.engine.wait_until_superseded()).await.unwrap();
        assert!(new.place_order(&order_request(ALICE, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (2, 8_000));
        assert_settled(&sim, &new).await;
    }

    async fn drained_engine_has_settled_and_admits_nothing() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 4]);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let last = node.start_order(&order_request(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        let (drained, late) = tokio::join!(node.engine.drain(), async {
            sleep(MOMENT).await;
            node.place_order(&order_request(ALICE, "k2", "gift", 1)).await
        });
        let () = drained;
        assert_eq!(late.error(), Some(&FlowError::Overloaded));
        assert_eq!(sim.db.orders().len(), 1);
        last.await.unwrap().expect_new();
        assert_eq!(node.place_order(&order_request(ALICE, "k3", "gift", 1)).await.error(), Some(&FlowError::Overloaded));
    }

    async fn order_that_the_store_has_lost_is_placed_again_and_not_replayed(sim, node, gifts: 1) {
        let lagging = sim.db.backup();
        let request = order_request(ALICE, "k", "gift", 1);
        let lost = node.place_order(&request).await;
        sim.db.restore(&lagging);
        assert_ne!(node.place_order(&request).await, lost);
        let order = node.place_order(&request).await;
        assert_eq!(sim.db.orders().len(), 1, "the voucher of the lost order is free again");
        assert_eq!(order, OrderReply::Replayed(sim.db.stored_key(request.key_hash()).unwrap().known.response));
    }

    async fn cancellation_that_the_store_has_lost_is_made_again(sim, node, gifts: 1) {
        node.place_order(&order_request(ALICE, "k", "gift", 1)).await.expect_new();
        let order_id = sim.db.orders()[0].order_id;
        let lagging = sim.db.backup();
        for _ in 0..2 {
            let command = CancelOrder { caps: None, partner_id: ALICE, order_id, reason: None, window: time::Duration::HOUR };
            cancel_order(&node.engine, command, |_| true).await.unwrap();
            assert_eq!(sim.db.order(order_id).unwrap().status, OrderStatus::Refunded);
            sim.db.restore(&lagging);
        }
    }

    async fn wallet_ahead_of_restored_store_adopts_its_balance() {
        for (booked, quantity, expected) in [
            (5_000, 11, "INSUFFICIENT_FUNDS 110.00 of 10000"),
            (-9_500, 2, "DELIVERED"),
        ] {
            let (sim, node) = setup().await;
            sim.import(&gift(), &[1; 20]);
            let lagging = sim.db.backup();
            node.top_up(top_up_command(ALICE, "b", booked)).await.unwrap();
            sim.db.restore(&lagging);
            let reply = node.place_order(&order_request(ALICE, "k", "gift", quantity)).await;
            assert!(reply.expect_new().starts_with(expected), "{}", reply.describe());
            assert_settled(&sim, &node).await;
            assert!(node.has_current_balance(ALICE).await);
        }
    }
}
