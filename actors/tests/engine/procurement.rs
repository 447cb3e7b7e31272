//! Buying what orders wait for: by whom, how many at once, in which order, and what becomes of it when somebody dies.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::domain::order::{Order, OrderStatus, Source};
use vouchsafe_actors::flows::{CancelOrder, cancel_order};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::vendors::vendor_of;
use vouchsafe_actors::testing::world::{Ask, Node, World};

use crate::in_a_world;
use crate::panics::quietly;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, shop, wants};

/// How many purchases may be under way with the vendor of `bought`.
const AT_ONCE: usize = 3;

/// The only order of its partner.
fn order_of(world: &World, partner_id: vouchsafe_actors::domain::ids::PartnerId) -> Order {
    let mut orders = world.db.orders();
    orders.retain(|order| order.partner_id == partner_id);
    assert_eq!(orders.len(), 1);
    orders.remove(0)
}

/// A node that buys from a vendor who takes a second for every answer.
async fn slow_vendor() -> (World, Node) {
    let (world, node) = shop().await;
    world.market.slow_down(SECOND);
    node.looks();
    (world, node)
}

fn nothing_is_loose(world: &World) {
    assert_eq!(world.market.loose_ends(), Vec::<String>::new());
    assert_eq!(world.market.wrongs(), Vec::<String>::new());
}

in_a_world! {
    async fn an_order_that_waits_is_bought_and_delivered() {
        let (world, node) = slow_vendor().await;
        assert!(node.places(&wants(ALICE, "k", "bought", 2)).await.fresh().starts_with("PENDING"));
        sleep(2 * SECOND).await;
        let order = order_of(&world, ALICE);
        assert_eq!((order.status, order.vouchers.len()), (OrderStatus::Delivered, 2));
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }

    async fn ten_lines_do_not_hold_up_one_and_no_more_are_asked_about_at_once_than_may_be() {
        let (world, node) = slow_vendor().await;
        let lines = [("bought", "10.00", 1); 10];
        node.places(&Ask::new(ALICE, "many", &lines)).await.fresh();
        sleep(Duration::from_millis(500)).await;
        node.places(&wants(BOB, "one", "bought", 1)).await.fresh();
        sleep(Duration::from_millis(2_600)).await;
        let (many, one) = (order_of(&world, ALICE), order_of(&world, BOB));
        assert_eq!(one.status, OrderStatus::Delivered, "{one:?}");
        assert_eq!(many.status, OrderStatus::PartiallyDelivered, "{many:?}");
        all_is_settled(&world, &node).await;
        assert_eq!(order_of(&world, ALICE).status, OrderStatus::Delivered);
        assert_eq!(world.market.most_at_once(), AT_ONCE);
        nothing_is_loose(&world);
    }

    async fn who_dies_while_it_buys_is_rebuilt_and_what_it_claimed_is_asked_about_at_once() {
        quietly();
        let (world, node) = slow_vendor().await;
        node.places(&wants(ALICE, "k", "bought", 2)).await.fresh();
        sleep(Duration::from_millis(800)).await;
        node.buyer_panics(&vendor_of(&build::sku("bought", 1_000))).await;
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&world, ALICE).status, OrderStatus::Delivered);
        assert_eq!(node.procurement.total().restarts, 1);
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }

    async fn a_claim_that_could_not_be_given_back_is_given_back_as_soon_as_it_can_be() {
        let (world, node) = slow_vendor().await;
        node.places(&wants(ALICE, "k", "bought", 1)).await.fresh();
        // It is claimed, and its vendor is thinking, when the books go; they come back before the claim ends by itself.
        sleep(Duration::from_millis(600)).await;
        world.market.close_books(true);
        sleep(2 * SECOND).await;
        assert_ne!(order_of(&world, ALICE).status, OrderStatus::Refunded);
        world.market.close_books(false);
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&world, ALICE).status, OrderStatus::Delivered);
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }

    async fn a_node_that_dies_while_it_buys_goes_on_at_its_next_start() {
        let (world, node) = slow_vendor().await;
        node.places(&wants(ALICE, "k", "bought", 2)).await.fresh();
        sleep(Duration::from_millis(800)).await;
        drop(node);
        let node = world.start("one").await;
        node.looks();
        sleep(3 * SECOND).await;
        assert_eq!(order_of(&world, ALICE).status, OrderStatus::Delivered);
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }

    async fn what_is_bought_for_nobody_any_more_goes_to_who_waits_and_then_to_the_shelf() {
        let (world, node) = shop().await;
        world.market.slow_down(2 * SECOND);
        node.looks();
        node.places(&wants(ALICE, "k", "bought", 2)).await.fresh();
        sleep(SECOND).await;
        let cancelled = CancelOrder {
            partner_id: ALICE,
            order_id: order_of(&world, ALICE).order_id,
            reason: None,
            window: time::Duration::HOUR,
        };
        cancel_order(&node.engine, cancelled, |_| true).await.unwrap();
        node.places(&wants(BOB, "k", "bought", 2)).await.fresh();
        sleep(2 * SECOND).await;
        let order = order_of(&world, BOB);
        assert_eq!((order.status, order.fulfilled_from), (OrderStatus::Delivered, Some(Source::Cache)));
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
        assert_eq!(world.db.free(&build::sku("bought", 1_000)).len(), 2, "what was bought for Bob himself");
    }

    async fn what_is_wanted_no_more_before_the_vendor_heard_of_it_is_not_bought() {
        let (world, node) = shop().await;
        node.places(&wants(ALICE, "k", "bought", 2)).await.fresh();
        let order_id = order_of(&world, ALICE).order_id;
        node.procurement.take_up(ALICE, order_id).await.unwrap();
        assert_eq!(world.market.open_purchases_of(order_id).len(), 1, "written down, and not asked for");
        let cancelled = CancelOrder {
            partner_id: ALICE,
            order_id,
            reason: None,
            window: time::Duration::HOUR,
        };
        cancel_order(&node.engine, cancelled, |_| true).await.unwrap();
        node.looks();
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
        assert_eq!(world.market.most_at_once(), 0, "nobody was asked");
    }

    async fn what_nobody_buys_is_paid_back_when_the_rest_came_into_stock_before_anybody_was_asked() {
        let (world, node) = shop().await;
        node.imports(&build::sku("gift", 1_000), &[1]);
        let both = Ask::new(ALICE, "both", &[("bought", "10.00", 1), ("gift", "10.00", 1)]);
        assert!(node.places(&both).await.fresh().starts_with("PENDING"));
        assert!(node.places(&wants(BOB, "k", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        node.imports(&build::sku("bought", 1_000), &[1]);
        node.looks();
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
        let order = order_of(&world, ALICE);
        let counts: Vec<_> = order.lines.iter().map(|line| (line.delivered, line.failed)).collect();
        assert_eq!((order.status, order.closed), (OrderStatus::PartiallyDelivered, true));
        assert_eq!((counts, order.refunded), (vec![(1, 0), (0, 1)], build::minor(1_000)));
    }

    async fn what_comes_in_goes_to_the_oldest_who_waits_and_a_new_order_finds_none() {
        let (world, node) = shop().await;
        node.places(&wants(ALICE, "older", "bought", 3)).await.fresh();
        sleep(SECOND).await;
        node.places(&wants(BOB, "younger", "bought", 2)).await.fresh();
        node.imports(&build::sku("bought", 1_000), &[1; 4]);
        let newest = node.begins(&wants(BOB, "newest", "bought", 1).cache_only());
        sleep(SECOND).await;
        assert!(!newest.is_finished(), "what those who wait leave is not known yet");
        world.market.slow_down(60 * SECOND);
        node.looks();
        assert!(newest.await.unwrap().fresh().starts_with("INSUFFICIENT_INVENTORY"));
        let (older, younger) = (order_of(&world, ALICE), order_of(&world, BOB));
        assert_eq!((older.status, older.vouchers.len()), (OrderStatus::Delivered, 3));
        assert_eq!((younger.status, younger.vouchers.len()), (OrderStatus::PartiallyDelivered, 1));
        sleep(120 * SECOND).await;
        assert_eq!(order_of(&world, BOB).status, OrderStatus::Delivered, "the rest is bought");
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }
    async fn what_those_who_wait_leave_is_sold_to_who_came_meanwhile() {
        let (world, node) = shop().await;
        node.imports(&build::sku("gift", 1_000), &[1]);
        let both = Ask::new(ALICE, "both", &[("bought", "10.00", 1), ("gift", "10.00", 1)]);
        assert!(node.places(&both).await.fresh().starts_with("PENDING"));
        assert!(node.places(&wants(BOB, "k", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        node.imports(&build::sku("gift", 1_000), &[1, 1]);
        let newest = node.begins(&wants(BOB, "newest", "gift", 1));
        sleep(SECOND).await;
        assert!(!newest.is_finished(), "what Alice leaves is not known yet");
        node.looks();
        assert!(newest.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
        assert_eq!(order_of(&world, ALICE).status, OrderStatus::Delivered);
    }
}
