//! Selection of vouchers: earliest expiry first, minimum validity, voided stock.

use std::time::Duration;

use time::Duration as Days;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::walk::{Node, Simulation};
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, BOB, SECOND, gift, order_request};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

/// SKU with a minimum validity of 30 days, unless a test changes it.
fn strict() -> Sku {
    build::sku("strict", 1_000)
}

/// Today, in days after 2031-01-01.
fn today() -> i64 {
    (build::NOW.date() - build::day(0).date().unwrap()).whole_days()
}

fn set_min_validity_days(sim: &Simulation, days: u16) {
    let mut product = sim
        .catalogue()
        .get(&strict().product_id)
        .unwrap()
        .as_ref()
        .clone();
    product.min_validity_days = days;
    sim.set_catalogue(sim.catalogue().with_product(product));
}

/// Sells `quantity` vouchers; returns their expiries in days after 2031-01-01.
async fn sell(sim: &Simulation, node: &Node, product: &str, quantity: u32) -> Vec<i64> {
    let before = sim.db.orders();
    let key = format!("order {}", before.len());
    let reply = node
        .place_order(&order_request(ALICE, &key, product, quantity))
        .await;
    assert!(
        reply.expect_new().starts_with("DELIVERED"),
        "{}",
        reply.describe()
    );
    // The clock may not advance, and ids of the same instant are unordered.
    let placed = sim
        .db
        .orders()
        .into_iter()
        .find(|order| !before.contains(order))
        .unwrap();
    let day_zero = build::day(0).date().unwrap();
    let day = |expiry: Expiry| (expiry.date().unwrap() - day_zero).whole_days();
    placed.vouchers.iter().map(|v| day(v.voucher.expiry)).collect()
}

/// Loads a shelf with ten chunks of one voucher each, sorted by expiry.
async fn add_ten_chunks(sim: &Simulation, node: &Node) -> Vec<StockVoucher> {
    let chunks = (1..=10).flat_map(|day| sim.import(&gift(), &[day])).collect();
    sim.import(&gift(), &[0]);
    assert_eq!(sell(sim, node, "gift", 1).await, [0]);
    chunks
}

simulation_tests! {
    async fn vouchers_are_sold_by_expiry_across_chunks(sim, node) {
        sim.import(&gift(), &[5, 1, 9]);
        sim.import(&gift(), &[3, 2]);
        assert_eq!(sell(&sim, &node, "gift", 3).await, [1, 2, 3]);
        assert_eq!(sell(&sim, &node, "gift", 2).await, [5, 9]);
    }

    async fn import_expiring_sooner_is_sold_next(sim, node) {
        sim.import(&gift(), &[7, 7, 7]);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [7]);
        node.import(&gift(), &[4]);
        node.import(&gift(), &[9]);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [4]);
        assert_eq!(sell(&sim, &node, "gift", 3).await, [7, 7, 9]);
    }

    async fn voucher_below_minimum_validity_is_not_sold(sim, node) {
        sim.import(&strict(), &[today() + 29, today() + 30, today() + 31]);
        assert_eq!(sell(&sim, &node, "strict", 1).await, [today() + 30]);
        let reply = node.place_order(&order_request(BOB, "k", "strict", 2)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY strict/1000 2 of 1");
    }

    async fn voucher_is_sold_until_end_of_its_last_day(sim, node) {
        sim.import(&gift(), &[today(), today(), today() + 1]);
        // The simulation starts at noon; the day ends at midnight UTC.
        sim.clock.jump(Days::hours(12) - Days::SECOND);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [today()]);
        sim.clock.jump(Days::SECOND);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [today() + 1], "also for vouchers on the shelf");
        let reply = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn hold_on_voucher_expired_at_midnight_is_decided_again(sim, node) {
        let shelved = sim.import(&gift(), &[today(), today(), today() + 1]);
        sim.clock.jump(Days::hours(12) - Days::MINUTE);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let slow = node.start_order(&order_request(ALICE, "slow", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        let late = node.start_order(&order_request(ALICE, "late", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        sim.clock.jump(Days::MINUTE);
        assert!(sim.db.void(shelved[1].stock_id).await, "as the expiry job does");
        slow.await.unwrap().expect_new();
        assert!(late.await.unwrap().expect_new().starts_with("DELIVERED"));
        let expires_tomorrow = |order: &Order| order.vouchers[0].voucher.expiry == build::day(today() + 1);
        assert_eq!(sim.db.orders().iter().filter(|order| expires_tomorrow(order)).count(), 1);
    }

    async fn clock_skew_loses_no_stock(sim, node) {
        sim.import(&gift(), &[today(), today() + 1, today() + 60]);
        sim.clock.jump(Days::days(2));
        let reply = node.place_order(&order_request(BOB, "k", "gift", 2)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 2 of 1");
        sim.clock.jump(Days::days(-2));
        assert_eq!(sell(&sim, &node, "gift", 3).await, [today(), today() + 1, today() + 60]);
    }

    async fn lowered_minimum_validity_makes_stock_sellable(sim, node) {
        sim.import(&strict(), &[today() + 10, today() + 40]);
        let reply = node.place_order(&order_request(BOB, "k", "strict", 2)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY strict/1000 2 of 1");
        set_min_validity_days(&sim, 5);
        assert_eq!(sell(&sim, &node, "strict", 2).await, [today() + 10, today() + 40]);
    }

    async fn requests_with_different_validity_do_not_block_each_other(sim, node) {
        sim.import(&strict(), &[today() + 60, today() + 60]);
        // Both requests arrive before the shelf has loaded anything, so both request more stock afterwards.
        sim.db.fail_calls("one", FaultKind::ClaimResponseLost, 1);
        set_min_validity_days(&sim, 5);
        let less = node.start_order(&order_request(ALICE, "less", "strict", 3));
        tokio::time::sleep(MOMENT).await;
        set_min_validity_days(&sim, 30);
        let more = node.start_order(&order_request(BOB, "more", "strict", 3));
        for reply in [less.await.unwrap(), more.await.unwrap()] {
            assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY strict/1000 3 of 2");
        }
    }

    async fn voided_voucher_fails_no_order(sim, node) {
        let shelved = sim.import(&gift(), &[1, 2, 3, 4]);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [1]);
        assert!(sim.db.void(shelved[1].stock_id).await);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [3]);
        assert!(sim.db.void(shelved[3].stock_id).await);
        let reply = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn chunk_with_stale_voucher_is_reloaded_after_holds_settle(sim, node) {
        let shelved = sim.import(&gift(), &[1; 9]);
        assert_eq!(sell(&sim, &node, "gift", 1).await, [1]);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let slow = node.start_order(&order_request(ALICE, "slow", "gift", 1));
        tokio::time::sleep(MOMENT).await;
        assert!(sim.db.void(shelved[2].stock_id).await);
        let reply = node.place_order(&order_request(BOB, "k", "gift", 6)).await;
        assert!(reply.expect_new().starts_with("DELIVERED"), "all six are in stock: {}", reply.describe());
        slow.await.unwrap().expect_new();
    }

    async fn voided_chunks_fail_no_order(sim, node) {
        let chunks = add_ten_chunks(&sim, &node).await;
        for voucher in &chunks[..9] {
            assert!(sim.db.void(voucher.stock_id).await);
        }
        let reply = node.place_order(&order_request(BOB, "k1", "gift", 1)).await;
        assert!(reply.expect_new().starts_with("DELIVERED"), "the tenth is good: {}", reply.describe());
        let reply = node.place_order(&order_request(BOB, "k2", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn sku_voided_completely_is_sold_out_at_once(sim, node) {
        for voucher in add_ten_chunks(&sim, &node).await {
            assert!(sim.db.void(voucher.stock_id).await);
        }
        let reply = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn shelf_notified_of_void_sells_no_voided_stock(sim, node) {
        let chunks = add_ten_chunks(&sim, &node).await;
        for voucher in &chunks[..9] {
            assert!(sim.db.void(voucher.stock_id).await);
        }
        node.engine.inventory.invalidate(&gift());
        let commits = sim.db.commits_sent();
        assert_eq!(sell(&sim, &node, "gift", 1).await, [10]);
        assert_eq!(sim.db.commits_sent() - commits, 1, "no commit was rejected");
    }
}
