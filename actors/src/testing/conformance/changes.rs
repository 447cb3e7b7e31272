//! What is there already moves on: orders with their vouchers and money, and payouts.

use uuid::Uuid;

use super::desk::{Desk, FUNDS, GONE, MOVED, PRICE, gift};
use super::subject::Subject;
use crate::domain::ids::{OrderId, StockId, VoucherId};
use crate::domain::order::{Actor, Order, OrderStatus, PendingReason, Source, StoredOrder};
use crate::domain::payout::{Payout, PayoutEnd};
use crate::domain::progress::{Cause, Progress};
use crate::domain::stock::{ClaimedStock, Elsewhere};
use crate::domain::voucher::{Allocation, Shelved};
use crate::journal::{PayoutChange, Record, Verdict};
use crate::testing::build;
use crate::testing::facts::Holder;

impl<S: Subject> Desk<'_, S> {
    /// An order of so many gifts that waits for a vendor, committed.
    async fn waiting(&mut self, name: &str, quantity: u32) -> StoredOrder {
        let priced = build::priced(&[(&gift(), quantity)]);
        let order = Order::pending(
            build::order_id(name),
            self.partner,
            &priced,
            PendingReason::Vendor,
            build::NOW,
        );
        let record = build::accepted(
            self.partner,
            name,
            order,
            build::minor(PRICE * i64::from(quantity)),
        );
        self.line.must_commit(&record).await;
        self.stored(build::order_id(name)).await
    }

    async fn stored(&self, order_id: OrderId) -> StoredOrder {
        let stored = self.store.load_order(self.partner, order_id).await.unwrap();
        stored.expect("the order is there")
    }

    async fn numbers(&self, count: usize) -> Vec<StockId> {
        self.store.number_stock(count).await.unwrap()
    }

    /// Checks that the order is as the record leaves it, for whoever reads it next, too.
    async fn assert_moved(&self, record: &Record) {
        self.assert_present(record).await;
        let after = &record.change.as_ref().unwrap().after;
        let last = record.events.as_ref().unwrap().last_sequence();
        let stored = self.stored(after.order_id).await;
        assert_eq!((&stored.order, stored.last_sequence), (after, last));
        assert_eq!(self.subject.order(after.order_id).await.as_ref(), Some(after));
    }

    async fn payout_of(&self, record: &Record) -> Option<Payout> {
        let (PayoutChange::Requested(payout) | PayoutChange::Decided(payout)) = record.payout.as_ref()?;
        let stored = self
            .store
            .load_payout(self.partner, payout.payout_id)
            .await
            .unwrap();
        assert_eq!(stored.as_ref(), Some(payout), "it reads back whole");
        stored
    }
}

/// The order with these vouchers for its one line.
fn issue(stored: &StoredOrder, name: &str, vouchers: &[Shelved]) -> Record {
    let mut progress = progress(stored, name);
    progress.process(&Cause::SERVICE, Some(PendingReason::Vendor));
    let allocations = vouchers.iter().map(|voucher| Allocation {
        voucher_id: VoucherId::generate(),
        line: 0,
        sku: gift(),
        voucher: *voucher,
    });
    progress.issue(allocations.collect(), Source::Cache);
    build::progressed(name, stored.last_sequence, progress, &[])
}

fn cancel(stored: &StoredOrder, name: &str, numbers: &[StockId]) -> Record {
    let mut progress = progress(stored, name);
    progress.cancel(&Cause {
        by: Actor::Partner,
        reason: Some("wrong \"card\"".to_owned()),
    });
    build::progressed(name, stored.last_sequence, progress, numbers)
}

fn progress(stored: &StoredOrder, name: &str) -> Progress {
    Progress::of(stored.order.clone(), build::transaction_id(name), build::NOW)
}

/// From pending to delivered: the order, its vouchers, what is pending, what is told.
pub async fn an_order_moves_on_and_reads_back_whole<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let waiting = desk.waiting("k", 2).await;
    assert_eq!((waiting.last_sequence, waiting.retrieved.len()), (1, 0));
    assert_eq!(
        subject.pending_orders(desk.wallet()).await,
        build::minor(2 * PRICE)
    );
    let record = issue(&waiting, "delivered", &gifts);
    assert_eq!(desk.line.commit_one(&record).await, Verdict::Committed(None));
    desk.assert_moved(&record).await;
    let holder = Holder::Order(waiting.order.order_id);
    assert_eq!(
        subject.allocations().await,
        [(gifts[0].stock_id, holder), (gifts[1].stock_id, holder)]
    );
    assert_eq!(subject.pending_orders(desk.wallet()).await, build::minor(0));
    assert_eq!(
        subject.ledger(desk.wallet()).await.len(),
        2,
        "nothing was paid twice"
    );
}

/// What is delivered of an order is no longer pending, and each part has its own commit.
pub async fn a_part_leaves_the_rest_pending<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let waiting = desk.waiting("k", 3).await;
    for (name, voucher) in [("first", gifts[0]), ("second", gifts[1])] {
        let stored = desk.stored(waiting.order.order_id).await;
        let record = issue(&stored, name, &[voucher]);
        desk.line.must_commit(&record).await;
        desk.assert_moved(&record).await;
    }
    assert_eq!(subject.pending_orders(desk.wallet()).await, build::minor(PRICE));
    let mut rest = progress(&desk.stored(waiting.order.order_id).await, "rest");
    rest.give_up_rest(&Cause::SERVICE);
    let since = desk.stored(waiting.order.order_id).await.last_sequence;
    let record = build::progressed("rest", since, rest, &[]);
    let receipt = desk.line.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(FUNDS - 2 * PRICE));
    desk.assert_moved(&record).await;
    assert_eq!(subject.pending_orders(desk.wallet()).await, build::minor(0));
}

/// Money and vouchers of a cancelled order are back, and it holds nothing.
pub async fn a_cancelled_order_gives_everything_back<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let sold = desk.order("k", &gifts);
    desk.line.must_commit(&sold).await;
    let stored = desk.stored(build::order_id("k")).await;
    let numbers = desk.numbers(2).await;
    let record = cancel(&stored, "cancelled", &numbers);
    let receipt = desk.line.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(FUNDS));
    desk.assert_moved(&record).await;
    assert_eq!(subject.allocations().await, []);
    let order = subject.order(build::order_id("k")).await.unwrap();
    assert_eq!(
        (order.status, order.refunded),
        (OrderStatus::Refunded, order.total.amount)
    );
    assert!(order.vouchers.is_empty());
}

/// A voucher that came back is claimed with its expiry, under its new row, and sold once more.
pub async fn what_came_back_is_sold_again<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(3).await;
    let sold = desk.order("k", &gifts);
    desk.line.must_commit(&sold).await;
    let stored = desk.stored(build::order_id("k")).await;
    let numbers = desk.numbers(3).await;
    desk.line
        .must_commit(&cancel(&stored, "cancelled", &numbers))
        .await;
    let claimed = desk.claim(&[]).await;
    let back: Vec<Shelved> = claimed
        .chunks
        .iter()
        .flat_map(|chunk| {
            chunk.vouchers.iter().map(|(stock_id, expiry)| Shelved {
                expiry: *expiry,
                stock_id: *stock_id,
                chunk_id: chunk.chunk_id,
            })
        })
        .collect();
    let came_in: Vec<_> = gifts.iter().map(|gift| gift.expiry).collect();
    let came_back: Vec<_> = back.iter().map(|gift| gift.expiry).collect();
    assert_eq!(came_back, came_in);
    let ids: Vec<_> = back.iter().map(|gift| gift.stock_id).collect();
    assert_eq!(ids, numbers);
    let again = desk.order("again", &back);
    desk.line.must_commit(&again).await;
    desk.assert_present(&again).await;
}

/// Who decided on an older state of an order writes nothing, whatever its key.
pub async fn an_order_that_moved_meanwhile_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let waiting = desk.waiting("k", 2).await;
    let first = issue(&waiting, "first", &gifts[..1]);
    desk.line.must_commit(&first).await;
    let late = issue(&waiting, "late", &gifts[1..]);
    assert_eq!(desk.line.commit_one(&late).await, MOVED);
    assert_eq!(subject.kept(late.claim.key).await, None, "its key is free");
    assert_eq!(subject.allocations().await.len(), 1);
    let next = issue(&desk.stored(waiting.order.order_id).await, "next", &gifts[1..]);
    desk.line.must_commit(&next).await;
    desk.assert_moved(&next).await;
}

/// Two who take the same step under its key: the second one finds it taken.
pub async fn a_step_is_taken_once<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let waiting = desk.waiting("k", 1).await;
    let first = build::under_key("step", cancel(&waiting, "one", &[]));
    let second = build::under_key("step", cancel(&waiting, "other", &[]));
    desk.line.must_commit(&first).await;
    let verdict = desk.line.commit_one(&second).await;
    assert!(matches!(verdict, Verdict::KeyKnown(_)), "{verdict:?}");
    assert_eq!(
        subject.ledger(desk.wallet()).await.len(),
        3,
        "funds, debit, one refund"
    );
}

/// A code that somebody has read is not sold again.
pub async fn a_voucher_that_was_read_does_not_come_back<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    desk.line.must_commit(&desk.order("k", &gifts)).await;
    let stored = desk.stored(build::order_id("k")).await;
    let numbers = desk.numbers(1).await;
    subject.retrieve(desk.partner, build::order_id("k")).await;
    let record = cancel(&stored, "cancelled", &numbers);
    assert_eq!(desk.line.commit_one(&record).await, MOVED);
    assert_eq!(subject.allocations().await.len(), 1);
    let stored = desk.stored(build::order_id("k")).await;
    assert_eq!(stored.retrieved, [stored.order.vouchers[0].voucher_id]);
}

/// A payout takes its money when it is accepted, and is pending until it is paid.
pub async fn a_payout_reads_back_whole_and_leaves_the_wallet<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = build::payout(desk.wallet(), "payout", 700);
    let receipt = desk.line.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(FUNDS - 700));
    desk.assert_present(&record).await;
    let payout = desk.payout_of(&record).await.unwrap();
    assert_eq!(subject.pending_payouts(desk.wallet()).await, build::minor(700));
    let paid = build::payout_decided("paid", &payout, PayoutEnd::Paid);
    assert_eq!(desk.line.commit_one(&paid).await, Verdict::Committed(None));
    desk.payout_of(&paid).await.unwrap();
    assert_eq!(subject.pending_payouts(desk.wallet()).await, build::minor(0));
    assert_eq!(subject.ledger(desk.wallet()).await.len(), 2, "funds and payout");
}

/// The money of a payout that is not made is back in the wallet.
pub async fn a_payout_that_is_refused_comes_back<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = build::payout(desk.wallet(), "payout", 700);
    desk.line.must_commit(&record).await;
    let payout = desk.payout_of(&record).await.unwrap();
    let failed = build::payout_decided("failed", &payout, PayoutEnd::Failed);
    let receipt = desk.line.must_commit(&failed).await.unwrap();
    assert_eq!(receipt.balance, build::minor(FUNDS));
    desk.assert_present(&failed).await;
    assert_eq!(subject.pending_payouts(desk.wallet()).await, build::minor(0));
}

/// Of two decisions on a payout the second one writes nothing.
pub async fn a_payout_is_decided_once<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = build::payout(desk.wallet(), "payout", 700);
    desk.line.must_commit(&record).await;
    let payout = desk.payout_of(&record).await.unwrap();
    let rejected = build::payout_decided("rejected", &payout, PayoutEnd::Rejected);
    desk.line.must_commit(&rejected).await;
    let late = build::payout_decided("late", &payout, PayoutEnd::Failed);
    assert_eq!(desk.line.commit_one(&late).await, MOVED);
    assert_eq!(
        subject.ledger(desk.wallet()).await.len(),
        3,
        "funds, payout, one reversal"
    );
}

/// What was bought for an order is claimed for it alone, until it is kept for nobody any more.
pub async fn what_was_bought_for_an_order_is_on_no_shelf<S: Subject>(subject: &S) {
    let desk = Desk::open(subject).await;
    let purchase_id = Uuid::from_u128(7);
    let bought = subject.add_chunk(&gift(), &[build::day(2), build::day(1)]).await;
    subject.keep_for(&bought, Some(purchase_id)).await;
    let shelf = desk.claim(&[]).await;
    assert_eq!(shelf, ClaimedStock::default());
    let kept = desk.store.claim_bought(purchase_id).await.unwrap();
    assert_eq!(kept, [bought[1], bought[0]], "first to expire first");
    assert_eq!(
        desk.store.claim_bought(purchase_id).await.unwrap(),
        kept,
        "asking again is harmless"
    );
    assert_eq!(desk.store.claim_bought(Uuid::from_u128(8)).await.unwrap(), []);
    subject.keep_for(&bought, None).await;
    assert_eq!(desk.store.claim_bought(purchase_id).await.unwrap(), []);
    assert_eq!(desk.claim(&[]).await.chunks.len(), 1);
}

/// What was bought is issued by a commit that finds it still there, and once.
pub async fn what_was_bought_for_an_order_is_sold_to_it<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let purchase_id = Uuid::from_u128(7);
    let bought = subject.add_chunk(&gift(), &[build::day(1), build::day(2)]).await;
    subject.keep_for(&bought, Some(purchase_id)).await;
    let waiting = desk.waiting("k", 2).await;
    let kept = desk.store.claim_bought(purchase_id).await.unwrap();
    let record = issue(&waiting, "delivered", &kept);
    desk.line.must_commit(&record).await;
    desk.assert_moved(&record).await;
    assert_eq!(desk.store.claim_bought(purchase_id).await.unwrap(), []);
    let thief = desk.order("thief", &kept);
    assert_eq!(desk.line.commit_one(&thief).await, GONE);
    subject.keep_for(&bought, None).await;
}

/// What comes back goes to the shelf only where no order waits for it.
pub async fn what_comes_back_while_somebody_waits_for_it_is_on_no_shelf<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let mut holders = Vec::new();
    for (name, gift) in ["first", "second"].into_iter().zip(&gifts) {
        let waiting = desk.waiting(name, 1).await;
        let issued = issue(&waiting, &format!("{name} delivered"), std::slice::from_ref(gift));
        desk.line.must_commit(&issued).await;
        holders.push(desk.stored(waiting.order.order_id).await);
    }
    let waiting = desk.waiting("waiting", 1).await;
    let numbers = desk.numbers(1).await;
    desk.line
        .must_commit(&cancel(&holders[0], "first back", &numbers))
        .await;
    let shelf = desk.claim(&[]).await;
    assert!(shelf.chunks.is_empty() && shelf.next.is_none(), "{shelf:?}");
    assert_eq!(shelf.elsewhere, Elsewhere::Kept, "who waits may leave some");
    desk.line
        .must_commit(&cancel(&waiting, "waits no more", &[]))
        .await;
    let numbers = desk.numbers(1).await;
    desk.line
        .must_commit(&cancel(&holders[1], "second back", &numbers))
        .await;
    assert_eq!(desk.claim(&[]).await.chunks.len(), 1, "nobody waits for this one");
}
