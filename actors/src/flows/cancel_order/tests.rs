//! Conditions for a partner's cancellation, one at a time.

use time::macros::datetime;
use vouchsafe_domain::fixtures;
use vouchsafe_domain::ids::{ChunkId, StockId, VoucherId};
use vouchsafe_domain::voucher::{Allocation, StockVoucher};

use super::*;

const DAY: Duration = Duration::hours(24);

/// An order of one voucher with this expiry, accepted at [`fixtures::NOW`].
fn delivered(expiry: Expiry) -> Order {
    let sku = fixtures::sku("gift", 1_000);
    let stocked = StockVoucher {
        expiry,
        stock_id: StockId(1),
        chunk_id: ChunkId(1),
    };
    let voucher = Allocation::new(VoucherId::generate(), 0, sku.clone(), stocked);
    let priced = fixtures::priced_order(&[(&sku, 1)]);
    let (order_id, partner_id) = (fixtures::order_id("k"), fixtures::partner(1));
    Order::delivered(order_id, partner_id, &priced, vec![voucher], fixtures::NOW)
}

fn verdict(order: &Order, now: OffsetDateTime) -> Result<(), CancelError> {
    check_cancellable(order, DAY, now, &|_| false)
}

#[test]
fn order_is_cancellable_until_its_window_ends() {
    let order = delivered(Expiry::NEVER);
    let until = fixtures::NOW + DAY;
    assert_eq!(verdict(&order, until), Ok(()));
    let late = until + Duration::microseconds(1);
    assert_eq!(verdict(&order, late), Err(CancelError::TooLate(until)));
}

#[test]
fn voucher_is_returnable_on_its_last_valid_day_only() {
    let now = datetime!(2030-01-01 12:00 UTC);
    assert_eq!(verdict(&delivered(Expiry::on(now.date())), now), Ok(()));
    let yesterday = Expiry::on(now.date().previous_day().unwrap());
    assert_eq!(verdict(&delivered(yesterday), now), Err(CancelError::Expired));
}

#[test]
fn retrieved_unreturnable_or_refunded_order_is_not_cancellable() {
    let mut read = delivered(Expiry::NEVER);
    // One of two codes suffices.
    read.vouchers.push(read.vouchers[0].clone());
    read.vouchers[0].first_retrieved_at = Some(fixtures::NOW);
    assert_eq!(verdict(&read, fixtures::NOW), Err(CancelError::Retrieved));
    let mut bought = delivered(Expiry::NEVER);
    bought.lines[0].bought = 1;
    let product = bought.lines[0].product_id.clone();
    assert_eq!(
        verdict(&bought, fixtures::NOW),
        Err(CancelError::NotReturnable(product))
    );
    assert_eq!(check_cancellable(&bought, DAY, fixtures::NOW, &|_| true), Ok(()));
    let mut over = delivered(Expiry::NEVER);
    over.status = OrderStatus::Refunded;
    assert_eq!(verdict(&over, fixtures::NOW), Err(CancelError::NothingToCancel));
}
