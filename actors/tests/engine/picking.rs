//! What an order that is there already gets of a shelf on which others stand: a rest is given up only if it stands with all
//! that is set aside given back.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::domain::voucher::Expiry;
use vouchsafe_actors::inventory::{StockHold, Supply};
use vouchsafe_actors::journal::Hold as _;
use vouchsafe_actors::supervisor::Patience;
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::Node;

use crate::in_a_world;
use crate::life::{Act, Scene, does, seen};
use crate::shop::{ALICE, all_is_settled, shop, wants};

const MOMENT: Duration = Duration::from_millis(10);

/// Somebody else sets vouchers of the SKU aside, one by one.
async fn set_aside(node: &Node, count: usize) -> Vec<StockHold> {
    let sku = build::sku("checked", 1_000);
    // What was taken out of stock is looked for.
    node.engine.inventory.doubt(&sku);
    let mut holds = Vec::new();
    for _ in 0..count {
        let patience = Patience::begin();
        let asked = node.engine.inventory.set_aside(&sku, 1, Expiry::PAST, &patience);
        match asked.await {
            Ok(Supply::Held(hold)) => holds.push(hold),
            other => panic!("there are more: {other:?}"),
        }
    }
    holds
}

in_a_world! {
    async fn a_rest_is_not_given_up_while_somebody_may_bring_it_back() {
        let (world, node) = Scene::WaitingForStock(1).set().await;
        let anothers = set_aside(&node, 1).await;
        let approval = node.spawn(Act::Approve.on(&world, &node));
        sleep(MOMENT).await;
        drop(anothers);
        assert_eq!(approval.await.unwrap(), "PARTIALLY_DELIVERED");
        assert_eq!(seen(&world), "PARTIALLY_DELIVERED 1/0/1 closed, 6 events, 0 free, 9000+0 after 3 entries");
        all_is_settled(&world, &node).await;
    }

    async fn a_rest_is_given_up_once_somebody_has_it() {
        let (world, node) = Scene::WaitingForStock(1).set().await;
        let anothers = set_aside(&node, 1).await;
        let approval = node.spawn(Act::Approve.on(&world, &node));
        sleep(MOMENT).await;
        for hold in anothers {
            assert!(world.db.void(hold.vouchers()[0].stock_id).await);
            Box::new(hold).settle(None);
        }
        assert_eq!(approval.await.unwrap(), "REFUNDED");
        assert_eq!(seen(&world), "REFUNDED 0/0/2 closed, 4 events, 0 free, 10000+0 after 3 entries");
        all_is_settled(&world, &node).await;
    }

    async fn an_order_that_is_outrun_again_and_again_is_not_given_up() {
        let (world, node) = shop().await;
        world.import(&build::sku("checked", 1_000), &[1; 7]);
        node.places(&wants(ALICE, "k", "checked", 7).cache_only()).await.fresh();
        let mut anothers = set_aside(&node, 7).await;
        let approval = node.spawn(Act::Approve.on(&world, &node));
        for hold in anothers.drain(..5) {
            sleep(MOMENT).await;
            assert!(world.db.void(hold.vouchers()[0].stock_id).await);
            Box::new(hold).settle(None);
        }
        assert_eq!(approval.await.unwrap(), "Unanswered(Unavailable)");
        drop(anothers);
        assert_eq!(does(&world, &node, Act::Approve).await, "PARTIALLY_DELIVERED");
        assert_eq!(seen(&world), "PARTIALLY_DELIVERED 2/0/5 closed, 7 events, 0 free, 8000+0 after 3 entries");
        all_is_settled(&world, &node).await;
    }
}
