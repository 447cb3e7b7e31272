//! When a partner may cancel: each reason against it, by itself.

use time::macros::datetime;

use super::*;
use crate::domain::ids::{ChunkId, StockId, VoucherId};
use crate::domain::voucher::{Allocation, Shelved};
use crate::testing::build;

const DAY: Duration = Duration::hours(24);

/// An order of one voucher that expires on this day, accepted at [`build::NOW`].
fn delivered(expiry: Expiry) -> StoredOrder {
    let sku = build::sku("gift", 1_000);
    let voucher = Allocation {
        voucher_id: VoucherId::generate(),
        line: 0,
        sku: sku.clone(),
        voucher: Shelved {
            expiry,
            stock_id: StockId(1),
            chunk_id: ChunkId(1),
        },
    };
    let priced = build::priced(&[(&sku, 1)]);
    let (order_id, partner_id) = (build::order_id("k"), build::partner(1));
    StoredOrder {
        order: Order::delivered(order_id, partner_id, &priced, vec![voucher], build::NOW),
        last_sequence: 3,
        retrieved: Vec::new(),
    }
}

fn verdict(stored: &StoredOrder, now: OffsetDateTime) -> Result<(), NotCancelled> {
    may_cancel(stored, DAY, now, &|_| false)
}

#[test]
fn an_order_is_cancelled_within_its_time_and_no_later() {
    let stored = delivered(Expiry::NEVER);
    let until = build::NOW + DAY;
    assert_eq!(verdict(&stored, until), Ok(()));
    let late = until + Duration::microseconds(1);
    assert_eq!(verdict(&stored, late), Err(NotCancelled::TooLate(until)));
}

#[test]
fn a_voucher_that_expires_today_may_come_back_and_one_of_yesterday_not() {
    let now = datetime!(2030-01-01 12:00 UTC);
    assert_eq!(verdict(&delivered(Expiry::on(now.date())), now), Ok(()));
    let yesterday = Expiry::on(now.date().previous_day().unwrap());
    assert_eq!(verdict(&delivered(yesterday), now), Err(NotCancelled::Expired));
}

#[test]
fn what_was_read_or_bought_for_good_or_is_over_stays() {
    let mut read = delivered(Expiry::NEVER);
    read.retrieved = vec![read.order.vouchers[0].voucher_id];
    assert_eq!(verdict(&read, build::NOW), Err(NotCancelled::Retrieved));
    let mut bought = delivered(Expiry::NEVER);
    bought.order.lines[0].bought = 1;
    let product = bought.order.lines[0].product_id.clone();
    assert_eq!(
        verdict(&bought, build::NOW),
        Err(NotCancelled::NotReturnable(product))
    );
    assert_eq!(may_cancel(&bought, DAY, build::NOW, &|_| true), Ok(()));
    let mut over = delivered(Expiry::NEVER);
    over.order.status = OrderStatus::Refunded;
    assert_eq!(verdict(&over, build::NOW), Err(NotCancelled::Over));
}
