//! Buying what orders wait for: by whom, how many at once, in which order, and what becomes of it when somebody dies.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::domain::order::{Order, OrderStatus};
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

    async fn what_comes_in_goes_to_the_oldest_who_waits_and_a_new_order_finds_none() {
        let (world, node) = shop().await;
        node.places(&wants(ALICE, "older", "bought", 3)).await.fresh();
        sleep(SECOND).await;
        node.places(&wants(BOB, "younger", "bought", 2)).await.fresh();
        node.imports(&build::sku("bought", 1_000), &[1; 4]);
        let newest = wants(BOB, "newest", "bought", 1).cache_only();
        assert!(node.places(&newest).await.fresh().starts_with("INSUFFICIENT_INVENTORY"));
        world.market.slow_down(60 * SECOND);
        node.looks();
        sleep(SECOND).await;
        let (older, younger) = (order_of(&world, ALICE), order_of(&world, BOB));
        assert_eq!((older.status, older.vouchers.len()), (OrderStatus::Delivered, 3));
        assert_eq!((younger.status, younger.vouchers.len()), (OrderStatus::PartiallyDelivered, 1));
        sleep(120 * SECOND).await;
        assert_eq!(order_of(&world, BOB).status, OrderStatus::Delivered, "the rest is bought");
        all_is_settled(&world, &node).await;
        nothing_is_loose(&world);
    }
}
