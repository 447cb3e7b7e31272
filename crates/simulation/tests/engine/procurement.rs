//! Procurement for waiting orders: concurrency limits, order, crashes, reservations.

use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;
use vouchsafe_actors::flows::{CancelOrder, cancel_order};
use vouchsafe_domain::order::{FulfilmentSource, Order, OrderStatus};
use vouchsafe_domain::product::Product;
use vouchsafe_simulation::Fault;
use vouchsafe_simulation::build;
use vouchsafe_simulation::walk::vendors::vendor_of;
use vouchsafe_simulation::walk::{Node, OrderRequest, Simulation};

use crate::fixture::{ALICE, BOB, SECOND, assert_settled, order_request, setup};
use crate::panics::silence_intended_panics;
use crate::simulation_tests;

/// Concurrency limit of the vendor of `bought`.
const VENDOR_CONCURRENCY: usize = 3;

/// The partner's only order.
fn order_of(sim: &Simulation, partner_id: vouchsafe_domain::ids::PartnerId) -> Order {
    let mut orders = sim.db.orders();
    orders.retain(|order| order.partner_id == partner_id);
    assert_eq!(orders.len(), 1);
    orders.remove(0)
}

/// A node that buys from a vendor with a latency of one second.
async fn setup_slow_vendor() -> (Simulation, Node) {
    let (sim, node) = setup().await;
    sim.vendors.set_latency(SECOND);
    node.start_procurement();
    (sim, node)
}

/// Alice cancels her order.
async fn cancel(sim: &Simulation, node: &Node) {
    let command = CancelOrder {
        caps: None,
        partner_id: ALICE,
        order_id: order_of(sim, ALICE).order_id,
        reason: None,
        window: time::Duration::HOUR,
    };
    cancel_order(&node.engine, command, |_| true).await.unwrap();
}

async fn assert_all_settled(sim: &Simulation, node: &Node) {
    assert_settled(sim, node).await;
    assert_eq!(sim.vendors.unfinished(), Vec::<String>::new());
    assert_eq!(sim.vendors.violations(), Vec::<String>::new());
}

/// Orders of Alice and then Bob that wait for their vendor, which takes ten minutes. Alice's needs this
/// validity.
async fn setup_two_waiting(min_validity_days: u16) -> (Simulation, Node) {
    let (sim, node) = setup().await;
    let catalogue = sim.catalogue();
    let product = catalogue.get(&build::sku("bought", 1_000).product_id).unwrap();
    let strict = Product {
        min_validity_days,
        ..product.as_ref().clone()
    };
    sim.set_catalogue(catalogue.with_product(strict));
    node.place_order(&order_request(ALICE, "older", "bought", 1))
        .await
        .expect_new();
    sleep(SECOND).await;
    sim.set_catalogue(catalogue.with_product(product.as_ref().clone()));
    node.place_order(&order_request(BOB, "younger", "bought", 1))
        .await
        .expect_new();
    sim.vendors.set_latency(600 * SECOND);
    node.start_procurement();
    sleep(SECOND).await;
    (sim, node)
}

/// Reserves one voucher, valid for five days, for the orders that wait, and stock of so many other SKUs that
/// each has one order per round.
fn reserve_voucher_in_round_of_many_skus(sim: &Simulation) {
    for number in 0..300 {
        let sku = build::sku(&format!("other{number}"), 1_000);
        sim.db
            .add_reserved_stock(&sku, &[build::day(1)], Uuid::from_u128(1_000 + number));
    }
    let today = (build::NOW.date() - build::day(0).date().unwrap()).whole_days();
    sim.import(&build::sku("bought", 1_000), &[today + 5]);
}

/// Asserts that Bob's order is served with a reserved voucher that Alice's older order cannot take.
async fn assert_second_order_is_served(sim: &Simulation, node: &Node) {
    reserve_voucher_in_round_of_many_skus(sim);
    sleep(SECOND).await;
    assert_eq!(order_of(sim, BOB).status, OrderStatus::Delivered);
    assert_eq!(order_of(sim, ALICE).vouchers, []);
    sleep(600 * SECOND).await;
    assert_all_settled(sim, node).await;
}

simulation_tests! {
    async fn waiting_order_is_bought_and_delivered() {
        let (sim, node) = setup_slow_vendor().await;
        assert!(node.place_order(&order_request(ALICE, "k", "bought", 2)).await.expect_new().starts_with("PENDING"));
        sleep(2 * SECOND).await;
        let order = order_of(&sim, ALICE);
        assert_eq!((order.status, order.vouchers.len()), (OrderStatus::Delivered, 2));
        assert_all_settled(&sim, &node).await;
    }

    async fn order_of_ten_lines_does_not_block_another_within_concurrency_limit() {
        let (sim, node) = setup_slow_vendor().await;
        let lines = [("bought", "10.00", 1); 10];
        node.place_order(&OrderRequest::new(ALICE, "many", &lines)).await.expect_new();
        sleep(Duration::from_millis(500)).await;
        node.place_order(&order_request(BOB, "one", "bought", 1)).await.expect_new();
        sleep(Duration::from_millis(2_600)).await;
        let (many, one) = (order_of(&sim, ALICE), order_of(&sim, BOB));
        assert_eq!(one.status, OrderStatus::Delivered, "{one:?}");
        assert_eq!(many.status, OrderStatus::PartiallyDelivered, "{many:?}");
        assert_all_settled(&sim, &node).await;
        assert_eq!(order_of(&sim, ALICE).status, OrderStatus::Delivered);
        assert_eq!(sim.vendors.max_in_flight(), VENDOR_CONCURRENCY);
    }

    async fn procurement_actor_panicking_resumes_its_claims_at_once() {
        silence_intended_panics();
        let (sim, node) = setup_slow_vendor().await;
        node.place_order(&order_request(ALICE, "k", "bought", 2)).await.expect_new();
        sleep(Duration::from_millis(800)).await;
        node.panic_procurement(&vendor_of(&build::sku("bought", 1_000))).await;
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&sim, ALICE).status, OrderStatus::Delivered);
        assert_eq!(node.procurement.totals().restarts, 1);
        assert_all_settled(&sim, &node).await;
    }

    async fn claim_release_failing_is_retried_before_it_expires() {
        let (sim, node) = setup_slow_vendor().await;
        node.place_order(&order_request(ALICE, "k", "bought", 1)).await.expect_new();
        // The records become unavailable during the vendor call and return before the claim expires.
        sleep(Duration::from_millis(600)).await;
        sim.vendors.set_records_unavailable(true);
        sleep(2 * SECOND).await;
        assert_ne!(order_of(&sim, ALICE).status, OrderStatus::Refunded);
        sim.vendors.set_records_unavailable(false);
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&sim, ALICE).status, OrderStatus::Delivered);
        assert_all_settled(&sim, &node).await;
    }

    async fn node_crashing_during_purchase_resumes_it_after_restart() {
        let (sim, node) = setup_slow_vendor().await;
        node.place_order(&order_request(ALICE, "k", "bought", 2)).await.expect_new();
        sleep(Duration::from_millis(800)).await;
        drop(node);
        let node = sim.start("one").await;
        node.start_procurement();
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&sim, ALICE).status, OrderStatus::Delivered);
        assert_all_settled(&sim, &node).await;
    }

    async fn voucher_bought_for_cancelled_order_goes_to_waiting_order_then_shelf() {
        let (sim, node) = setup().await;
        sim.vendors.set_latency(2 * SECOND);
        node.start_procurement();
        node.place_order(&order_request(ALICE, "k", "bought", 2)).await.expect_new();
        sleep(SECOND).await;
        cancel(&sim, &node).await;
        node.place_order(&order_request(BOB, "k", "bought", 2)).await.expect_new();
        sleep(2 * SECOND).await;
        let order = order_of(&sim, BOB);
        assert_eq!((order.status, order.fulfilled_from), (OrderStatus::Delivered, Some(FulfilmentSource::Cache)));
        assert_all_settled(&sim, &node).await;
        assert_eq!(sim.db.free_vouchers(&build::sku("bought", 1_000)).len(), 2, "the vouchers bought for Bob");
    }

    async fn purchase_of_cancelled_order_is_not_requested() {
        let (sim, node) = setup().await;
        node.place_order(&order_request(ALICE, "k", "bought", 2)).await.expect_new();
        let order_id = order_of(&sim, ALICE).order_id;
        node.procurement.start_order(ALICE, order_id).await.unwrap();
        assert_eq!(sim.vendors.open_purchases_of(order_id).len(), 1, "recorded but not requested");
        cancel(&sim, &node).await;
        node.start_procurement();
        assert_all_settled(&sim, &node).await;
        assert_eq!(sim.vendors.max_in_flight(), 0, "no vendor call");
    }

    async fn stock_only_line_is_refunded_when_rest_is_filled_from_stock() {
        let (sim, node) = setup().await;
        node.import(&build::sku("gift", 1_000), &[1]);
        let both = OrderRequest::new(ALICE, "both", &[("bought", "10.00", 1), ("gift", "10.00", 1)]);
        assert!(node.place_order(&both).await.expect_new().starts_with("PENDING"));
        assert!(node.place_order(&order_request(BOB, "k", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        node.import(&build::sku("bought", 1_000), &[1]);
        node.start_procurement();
        assert_all_settled(&sim, &node).await;
        let order = order_of(&sim, ALICE);
        let counts: Vec<_> = order.lines.iter().map(|line| (line.delivered, line.failed)).collect();
        assert_eq!((order.status, order.closed), (OrderStatus::PartiallyDelivered, true));
        assert_eq!((counts, order.refunded), (vec![(1, 0), (0, 1)], build::minor(1_000)));
    }

    async fn incoming_stock_goes_to_oldest_waiting_order() {
        let (sim, node) = setup().await;
        node.place_order(&order_request(ALICE, "older", "bought", 3)).await.expect_new();
        sleep(SECOND).await;
        node.place_order(&order_request(BOB, "younger", "bought", 2)).await.expect_new();
        node.import(&build::sku("bought", 1_000), &[1; 4]);
        let newest = node.start_order(&order_request(BOB, "newest", "bought", 1).cache_only());
        sleep(SECOND).await;
        assert!(!newest.is_finished(), "the remainder after waiting orders is not known yet");
        sim.vendors.set_latency(60 * SECOND);
        node.start_procurement();
        assert!(newest.await.unwrap().expect_new().starts_with("INSUFFICIENT_INVENTORY"));
        let (older, younger) = (order_of(&sim, ALICE), order_of(&sim, BOB));
        assert_eq!((older.status, older.vouchers.len()), (OrderStatus::Delivered, 3));
        assert_eq!((younger.status, younger.vouchers.len()), (OrderStatus::PartiallyDelivered, 1));
        sleep(120 * SECOND).await;
        assert_eq!(order_of(&sim, BOB).status, OrderStatus::Delivered, "the remainder is bought");
        assert_all_settled(&sim, &node).await;
    }

    async fn stock_for_a_backlog_of_one_sku_delays_no_other() {
        const BACKLOG: usize = 600;
        let (sim, node) = setup().await;
        sim.top_up(ALICE, 1_000_000).await;
        for number in 0..BACKLOG {
            node.place_order(&order_request(ALICE, &format!("k{number}"), "bought", 1)).await.expect_new();
        }
        node.place_order(&OrderRequest::new(BOB, "k", &[("bought", "25.00", 1)])).await.expect_new();
        node.import(&build::sku("bought", 1_000), &[1; BACKLOG]);
        node.import(&build::sku("bought", 2_500), &[1]);
        sim.vendors.set_latency(600 * SECOND);
        for _ in 0..BACKLOG {
            sim.db.fail_commit("one", Fault::Slow(SECOND / 10));
        }
        node.start_procurement();
        while order_of(&sim, BOB).status != OrderStatus::Delivered {
            sleep(Duration::from_millis(1)).await;
        }
        let delivered = sim.db.orders().iter().filter(|order| order.status == OrderStatus::Delivered).count() - 1;
        assert!(delivered < BACKLOG, "{delivered} orders were delivered first");
        sleep(600 * SECOND).await;
        assert_all_settled(&sim, &node).await;
        assert!(sim.db.orders().iter().all(|order| order.fulfilled_from == Some(FulfilmentSource::Cache)));
    }

    async fn reservations_of_one_sku_are_distributed_in_one_tick() {
        const RESERVATIONS: usize = 600;
        let (sim, node) = setup().await;
        node.place_order(&order_request(ALICE, "k", "bought", 1)).await.expect_new();
        node.place_order(&OrderRequest::new(BOB, "k", &[("bought", "25.00", 1)])).await.expect_new();
        for _ in 0..RESERVATIONS {
            node.import(&build::sku("bought", 1_000), &[1]);
        }
        node.import(&build::sku("bought", 2_500), &[1]);
        sim.vendors.set_latency(600 * SECOND);
        node.start_procurement();
        sleep(SECOND).await;
        assert_eq!(sim.db.reserved_stock(), []);
        for partner in [ALICE, BOB] {
            let order = order_of(&sim, partner);
            assert_eq!((order.status, order.fulfilled_from), (OrderStatus::Delivered, Some(FulfilmentSource::Cache)));
        }
        sleep(600 * SECOND).await;
        assert_all_settled(&sim, &node).await;
    }

    async fn rejected_order_does_not_block_the_next() {
        let (sim, node) = setup_two_waiting(0).await;
        // The lane repeats a rejected batch once.
        for _ in 0..2 {
            sim.db.fail_commit("one", Fault::Poisoned);
        }
        assert_second_order_is_served(&sim, &node).await;
    }

    async fn order_that_needs_a_longer_validity_does_not_block_the_next() {
        let (sim, node) = setup_two_waiting(30).await;
        assert_second_order_is_served(&sim, &node).await;
    }

    async fn remainder_of_reserved_stock_is_sold_to_new_orders() {
        let (sim, node) = setup().await;
        node.import(&build::sku("gift", 1_000), &[1]);
        let both = OrderRequest::new(ALICE, "both", &[("bought", "10.00", 1), ("gift", "10.00", 1)]);
        assert!(node.place_order(&both).await.expect_new().starts_with("PENDING"));
        assert!(node.place_order(&order_request(BOB, "k", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
        node.import(&build::sku("gift", 1_000), &[1, 1]);
        let newest = node.start_order(&order_request(BOB, "newest", "gift", 1));
        sleep(SECOND).await;
        assert!(!newest.is_finished(), "the remainder after Alice's order is not known yet");
        node.start_procurement();
        assert!(newest.await.unwrap().expect_new().starts_with("DELIVERED"));
        assert_all_settled(&sim, &node).await;
        assert_eq!(order_of(&sim, ALICE).status, OrderStatus::Delivered);
    }
}
