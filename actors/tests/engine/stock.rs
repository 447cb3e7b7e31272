//! Which vouchers an order gets: what expires first, as long as it is good for long enough.

use std::time::Duration;

use time::Duration as Days;
use vouchsafe_actors::domain::order::Order;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::voucher::{Expiry, Shelved};
use vouchsafe_actors::testing::world::{Node, World};
use vouchsafe_actors::testing::{Fault, FaultKind, build};

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, gift, shop, wants};

const MOMENT: Duration = Duration::from_millis(1);

/// Needs 30 days of validity, unless a test says otherwise.
fn strict() -> Sku {
    build::sku("strict", 1_000)
}

/// Today, in days after the first of 2031.
fn today() -> i64 {
    (build::NOW.date() - build::day(0).date().unwrap()).whole_days()
}

fn needs_days(world: &World, days: u16) {
    let mut product = world
        .catalogue()
        .get(&strict().product_id)
        .unwrap()
        .as_ref()
        .clone();
    product.min_validity_days = days;
    world.set_catalogue(world.catalogue().with(product));
}

/// Sells so many; gives the days (after the first of 2031) on which their vouchers expire.
async fn sells(world: &World, node: &Node, product: &str, quantity: u32) -> Vec<i64> {
    let before = world.db.orders();
    let key = format!("order {}", before.len());
    let heard = node.places(&wants(ALICE, &key, product, quantity)).await;
    assert!(heard.fresh().starts_with("DELIVERED"), "{}", heard.in_words());
    // Time may stand still here, and ids of one moment are in no order.
    let placed = world
        .db
        .orders()
        .into_iter()
        .find(|order| !before.contains(order))
        .unwrap();
    let day_zero = build::day(0).date().unwrap();
    let day = |expiry: Expiry| (expiry.date().unwrap() - day_zero).whole_days();
    placed.vouchers.iter().map(|v| day(v.voucher.expiry)).collect()
}

/// A shelf with ten chunks of one voucher each, first to expire first.
async fn of_ten_chunks(world: &World, node: &Node) -> Vec<Shelved> {
    let chunks = (1..=10).flat_map(|day| world.import(&gift(), &[day])).collect();
    world.import(&gift(), &[0]);
    assert_eq!(sells(world, node, "gift", 1).await, [0]);
    chunks
}

in_a_world! {
    async fn what_expires_first_goes_first_over_all_chunks() {
        let (world, node) = shop().await;
        world.import(&gift(), &[5, 1, 9]);
        world.import(&gift(), &[3, 2]);
        assert_eq!(sells(&world, &node, "gift", 3).await, [1, 2, 3]);
        assert_eq!(sells(&world, &node, "gift", 2).await, [5, 9]);
        all_is_settled(&world, &node).await;
    }

    async fn an_import_that_expires_sooner_is_sold_next() {
        let (world, node) = shop().await;
        world.import(&gift(), &[7, 7, 7]);
        assert_eq!(sells(&world, &node, "gift", 1).await, [7]);
        node.imports(&gift(), &[4]);
        node.imports(&gift(), &[9]);
        assert_eq!(sells(&world, &node, "gift", 1).await, [4]);
        assert_eq!(sells(&world, &node, "gift", 3).await, [7, 7, 9]);
        all_is_settled(&world, &node).await;
    }

    async fn what_is_not_good_for_long_enough_is_not_sold() {
        let (world, node) = shop().await;
        world.import(&strict(), &[today() + 29, today() + 30, today() + 31]);
        assert_eq!(sells(&world, &node, "strict", 1).await, [today() + 30]);
        let heard = node.places(&wants(BOB, "k", "strict", 2)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY strict/1000 2 of 1");
        all_is_settled(&world, &node).await;
    }

    async fn a_voucher_is_sold_until_its_last_day_is_over_and_not_a_second_longer() {
        let (world, node) = shop().await;
        world.import(&gift(), &[today(), today(), today() + 1]);
        // It was noon; the day ends at midnight of UTC.
        world.clock.jump(Days::hours(12) - Days::SECOND);
        assert_eq!(sells(&world, &node, "gift", 1).await, [today()]);
        world.clock.jump(Days::SECOND);
        assert_eq!(sells(&world, &node, "gift", 1).await, [today() + 1], "of what the shelf holds, too");
        let heard = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn what_was_set_aside_before_midnight_and_swept_since_is_decided_again() {
        let (world, node) = shop().await;
        let shelved = world.import(&gift(), &[today(), today(), today() + 1]);
        world.clock.jump(Days::hours(12) - Days::MINUTE);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let slow = node.begins(&wants(ALICE, "slow", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        let late = node.begins(&wants(ALICE, "late", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        world.clock.jump(Days::MINUTE);
        assert!(world.db.void(shelved[1].stock_id).await, "as the sweep takes it");
        slow.await.unwrap().fresh();
        assert!(late.await.unwrap().fresh().starts_with("DELIVERED"));
        let good = |order: &Order| order.vouchers[0].voucher.expiry == build::day(today() + 1);
        assert_eq!(world.db.orders().iter().filter(|order| good(order)).count(), 1);
        all_is_settled(&world, &node).await;
    }

    async fn a_clock_that_was_wrong_for_a_while_loses_no_stock() {
        let (world, node) = shop().await;
        world.import(&gift(), &[today(), today() + 1, today() + 60]);
        world.clock.jump(Days::days(2));
        let heard = node.places(&wants(BOB, "k", "gift", 2)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 2 of 1");
        world.clock.jump(Days::days(-2));
        assert_eq!(sells(&world, &node, "gift", 3).await, [today(), today() + 1, today() + 60]);
        all_is_settled(&world, &node).await;
    }

    async fn a_product_that_needs_less_validity_than_before_loses_no_stock() {
        let (world, node) = shop().await;
        world.import(&strict(), &[today() + 10, today() + 40]);
        let heard = node.places(&wants(BOB, "k", "strict", 2)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY strict/1000 2 of 1");
        needs_days(&world, 5);
        assert_eq!(sells(&world, &node, "strict", 2).await, [today() + 10, today() + 40]);
        all_is_settled(&world, &node).await;
    }

    async fn who_needs_less_validity_and_who_needs_more_do_not_keep_each_other_waiting() {
        let (world, node) = shop().await;
        world.import(&strict(), &[today() + 60, today() + 60]);
        // Both come before the shelf knows anything, so both ask for more when it does.
        world.db.fail_calls("one", FaultKind::ClaimLost, 1);
        needs_days(&world, 5);
        let less = node.begins(&wants(ALICE, "less", "strict", 3));
        tokio::time::sleep(MOMENT).await;
        needs_days(&world, 30);
        let more = node.begins(&wants(BOB, "more", "strict", 3));
        for heard in [less.await.unwrap(), more.await.unwrap()] {
            assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY strict/1000 3 of 2");
        }
        all_is_settled(&world, &node).await;
    }

    async fn a_voucher_that_was_taken_out_costs_no_order() {
        let (world, node) = shop().await;
        let shelved = world.import(&gift(), &[1, 2, 3, 4]);
        assert_eq!(sells(&world, &node, "gift", 1).await, [1]);
        assert!(world.db.void(shelved[1].stock_id).await);
        assert_eq!(sells(&world, &node, "gift", 1).await, [3]);
        assert!(world.db.void(shelved[3].stock_id).await);
        let heard = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn a_chunk_that_was_refuted_is_whole_again_once_nothing_of_it_is_under_way() {
        let (world, node) = shop().await;
        let shelved = world.import(&gift(), &[1; 9]);
        assert_eq!(sells(&world, &node, "gift", 1).await, [1]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let slow = node.begins(&wants(ALICE, "slow", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        assert!(world.db.void(shelved[2].stock_id).await);
        let heard = node.places(&wants(BOB, "k", "gift", 6)).await;
        assert!(heard.fresh().starts_with("DELIVERED"), "all six are there: {}", heard.in_words());
        slow.await.unwrap().fresh();
        all_is_settled(&world, &node).await;
    }

    async fn what_was_taken_out_chunk_by_chunk_costs_no_order() {
        let (world, node) = shop().await;
        let chunks = of_ten_chunks(&world, &node).await;
        for voucher in &chunks[..9] {
            assert!(world.db.void(voucher.stock_id).await);
        }
        let heard = node.places(&wants(BOB, "k1", "gift", 1)).await;
        assert!(heard.fresh().starts_with("DELIVERED"), "the tenth is good: {}", heard.in_words());
        let heard = node.places(&wants(BOB, "k2", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn a_sku_that_was_taken_out_whole_is_sold_out_at_once() {
        let (world, node) = shop().await;
        for voucher in of_ten_chunks(&world, &node).await {
            assert!(world.db.void(voucher.stock_id).await);
        }
        let heard = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn a_shelf_that_was_told_of_it_sells_nothing_that_was_taken_out() {
        let (world, node) = shop().await;
        let chunks = of_ten_chunks(&world, &node).await;
        for voucher in &chunks[..9] {
            assert!(world.db.void(voucher.stock_id).await);
        }
        node.engine.inventory.doubt(&gift());
        let commits = world.db.commits();
        assert_eq!(sells(&world, &node, "gift", 1).await, [10]);
        assert_eq!(world.db.commits() - commits, 1, "none was refused");
        all_is_settled(&world, &node).await;
    }
}
