//! Conformance cases: changes to existing orders and payouts.

use uuid::Uuid;
use vouchsafe_actors::ports::record::{PayoutChange, Record, Verdict};
use vouchsafe_domain::ids::{OrderId, StockId, VoucherId};
use vouchsafe_domain::order::{Actor, FulfilmentSource, Order, OrderStatus, PendingReason, StoredOrder};
use vouchsafe_domain::payout::{Payout, PayoutOutcome};
use vouchsafe_domain::stock::{ClaimedStock, UnclaimableStock};
use vouchsafe_domain::transition::{Cause, OrderTransition};
use vouchsafe_domain::voucher::{Allocation, StockVoucher};

use super::fixture::{Fixture, INITIAL_BALANCE, PRICE, STALE_STATE, STALE_STOCK, claimed_vouchers, gift};
use super::subject::Subject;
use crate::build;
use crate::rows::Holder;

impl<S: Subject> Fixture<'_, S> {
    /// Commits an order of `quantity` gifts that waits for a vendor.
    async fn create_pending_order(&mut self, name: &str, quantity: u32) -> StoredOrder {
        let priced = build::priced_order(&[(&gift(), quantity)]);
        let order = Order::pending(
            build::order_id(name),
            self.partner,
            &priced,
            PendingReason::Vendor,
            build::NOW,
        );
        let record = build::accepted_order(
            self.partner,
            name,
            order,
            build::minor(PRICE * i64::from(quantity)),
        );
        self.lane.must_commit(&record).await;
        self.load_order(build::order_id(name)).await
    }

    async fn load_order(&self, order_id: OrderId) -> StoredOrder {
        let stored = self.store.load_order(self.partner, order_id).await.unwrap();
        stored.expect("the order exists")
    }

    async fn allocate_stock_ids(&self, count: usize) -> Vec<StockId> {
        self.store.allocate_stock_ids(count).await.unwrap()
    }

    /// Checks the order as the record leaves it, both by lane and by read.
    async fn assert_changed(&self, record: &Record) {
        self.assert_present(record).await;
        let after = &record.change.as_ref().unwrap().after;
        let last = record.events.as_ref().unwrap().last_sequence();
        let stored = self.load_order(after.order_id).await;
        assert_eq!((&stored.order, stored.last_sequence), (after, last));
        assert_eq!(self.subject.order(after.order_id).await.as_ref(), Some(after));
    }

    async fn load_payout(&self, record: &Record) -> Option<Payout> {
        let (PayoutChange::Requested(payout) | PayoutChange::Decided(payout)) = record.payout.as_ref()?;
        let stored = self
            .store
            .load_payout(self.partner, payout.payout_id)
            .await
            .unwrap();
        assert_eq!(stored.as_ref(), Some(payout), "the payout reads back as written");
        stored
    }
}

/// Record that issues these vouchers for the order's only line.
fn issue_vouchers(stored: &StoredOrder, name: &str, vouchers: &[StockVoucher]) -> Record {
    let mut progress = progress(stored, name);
    progress.start_processing(&Cause::SYSTEM, Some(PendingReason::Vendor));
    let allocations = vouchers
        .iter()
        .map(|voucher| Allocation::new(VoucherId::generate(), 0, gift(), *voucher));
    progress.issue(allocations.collect(), FulfilmentSource::Cache);
    build::order_change(name, stored.last_sequence, progress, &[])
}

/// Record of the partner's cancellation of an order, whose vouchers get the stock ids `numbers`.
#[must_use]
pub fn cancel_order(stored: &StoredOrder, name: &str, numbers: &[StockId]) -> Record {
    let mut progress = progress(stored, name);
    progress.cancel(&Cause {
        by: Actor::Partner,
        reason: Some("wrong \"card\"".to_owned()),
    });
    build::order_change(name, stored.last_sequence, progress, numbers)
}

fn progress(stored: &StoredOrder, name: &str) -> OrderTransition {
    OrderTransition::new(stored.order.clone(), build::transaction_id(name), build::NOW)
}

pub async fn order_change_reads_back_complete<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let waiting = fixture.create_pending_order("k", 2).await;
    assert_eq!((waiting.last_sequence, waiting.order.vouchers.len()), (1, 0));
    assert_eq!(fixture.pending().await.0, 2 * PRICE);
    let record = issue_vouchers(&waiting, "delivered", &gifts);
    assert_eq!(fixture.commit_one(&record).await, Verdict::Committed(None));
    fixture.assert_changed(&record).await;
    let holder = Holder::Order(waiting.order.order_id);
    assert_eq!(
        fixture.subject.allocations().await,
        [(gifts[0].stock_id, holder), (gifts[1].stock_id, holder)]
    );
    assert_eq!(fixture.pending().await.0, 0);
    assert_eq!(fixture.count_entries().await, 2, "initial balance and one debit");
}

pub async fn partial_delivery_leaves_remainder_pending<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let waiting = fixture.create_pending_order("k", 3).await;
    for (name, voucher) in [("first", gifts[0]), ("second", gifts[1])] {
        let stored = fixture.load_order(waiting.order.order_id).await;
        let record = issue_vouchers(&stored, name, &[voucher]);
        fixture.must_commit(&record).await;
        fixture.assert_changed(&record).await;
        assert_eq!(fixture.count_pending_orders().await, 1, "its rest is pending");
    }
    assert_eq!(fixture.pending().await.0, PRICE);
    let mut remainder = progress(&fixture.load_order(waiting.order.order_id).await, "rest");
    remainder.fail_pending(&Cause::SYSTEM);
    let since = fixture.load_order(waiting.order.order_id).await.last_sequence;
    let record = build::order_change("rest", since, remainder, &[]);
    let receipt = fixture.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(INITIAL_BALANCE - 2 * PRICE));
    fixture.assert_changed(&record).await;
    assert_eq!(fixture.pending().await.0, 0);
    assert_eq!(fixture.count_pending_orders().await, 0);
}

pub async fn cancelled_order_returns_money_and_vouchers<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let sold = fixture.delivered_order("k", &gifts);
    fixture.must_commit(&sold).await;
    let stored = fixture.load_order(build::order_id("k")).await;
    let numbers = fixture.allocate_stock_ids(2).await;
    let record = cancel_order(&stored, "cancelled", &numbers);
    let receipt = fixture.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(INITIAL_BALANCE));
    fixture.assert_changed(&record).await;
    assert_eq!(fixture.subject.allocations().await, []);
    let order = fixture.subject.order(build::order_id("k")).await.unwrap();
    assert_eq!(
        (order.status, order.refunded),
        (OrderStatus::Refunded, order.total.amount)
    );
    assert!(order.vouchers.is_empty());
}

/// A returned voucher is claimed under its new stock id with its old expiry, and sold again.
pub async fn returned_voucher_is_sold_again<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(3).await;
    let sold = fixture.delivered_order("k", &gifts);
    fixture.must_commit(&sold).await;
    let stored = fixture.load_order(build::order_id("k")).await;
    let numbers = fixture.allocate_stock_ids(3).await;
    fixture
        .must_commit(&cancel_order(&stored, "cancelled", &numbers))
        .await;
    let claimed = fixture.claim(&[]).await;
    let returned = claimed_vouchers(&claimed);
    let imported: Vec<_> = gifts.iter().map(|gift| gift.expiry).collect();
    let expiries: Vec<_> = returned.iter().map(|gift| gift.expiry).collect();
    assert_eq!(expiries, imported);
    let ids: Vec<_> = returned.iter().map(|gift| gift.stock_id).collect();
    assert_eq!(ids, numbers);
    let again = fixture.delivered_order("again", &returned);
    fixture.must_commit(&again).await;
    fixture.assert_present(&again).await;
}

/// Guard `order-moved`: a change decided on an older state of the order writes nothing.
pub async fn change_of_outdated_order_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(3).await;
    let waiting = fixture.create_pending_order("k", 2).await;
    let first = issue_vouchers(&waiting, "first", &gifts[..1]);
    fixture.must_commit(&first).await;
    // Another change than the first: it would leave the order delivered.
    let late = issue_vouchers(&waiting, "late", &gifts[1..]);
    assert_eq!(fixture.commit_one(&late).await, STALE_STATE);
    assert_eq!(
        fixture.subject.stored_key(late.claim.key).await,
        None,
        "the key is free"
    );
    assert_eq!(fixture.subject.allocations().await.len(), 1);
    fixture.assert_changed(&first).await;
    let next = issue_vouchers(
        &fixture.load_order(waiting.order.order_id).await,
        "next",
        &gifts[1..2],
    );
    fixture.must_commit(&next).await;
    fixture.assert_changed(&next).await;
}

pub async fn change_key_is_executed_once<S: Subject>(mut fixture: Fixture<'_, S>) {
    let waiting = fixture.create_pending_order("k", 1).await;
    let first = build::with_key("step", cancel_order(&waiting, "one", &[]));
    let second = build::with_key("step", cancel_order(&waiting, "other", &[]));
    fixture.must_commit(&first).await;
    let verdict = fixture.commit_one(&second).await;
    assert!(matches!(verdict, Verdict::KeyKnown(_)), "{verdict:?}");
    assert_eq!(fixture.count_entries().await, 3, "top-up, debit, one refund");
}

/// Guard `retrieved`: a voucher whose code was retrieved is not returned to stock.
pub async fn retrieved_voucher_is_not_returned<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    fixture.must_commit(&fixture.delivered_order("k", &gifts)).await;
    let stored = fixture.load_order(build::order_id("k")).await;
    let numbers = fixture.allocate_stock_ids(1).await;
    fixture
        .subject
        .retrieve(fixture.partner, build::order_id("k"))
        .await;
    let record = cancel_order(&stored, "cancelled", &numbers);
    assert_eq!(fixture.commit_one(&record).await, STALE_STATE);
    assert_eq!(fixture.subject.allocations().await.len(), 1);
    let stored = fixture.load_order(build::order_id("k")).await;
    assert!(stored.order.vouchers[0].first_retrieved_at.is_some());
}

pub async fn payout_reads_back_complete_and_debits_wallet<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = build::payout_request(fixture.wallet(), "payout", 700);
    let receipt = fixture.must_commit(&record).await.unwrap();
    assert_eq!(receipt.balance, build::minor(INITIAL_BALANCE - 700));
    fixture.assert_present(&record).await;
    let payout = fixture.load_payout(&record).await.unwrap();
    assert_eq!(fixture.pending().await.1, 700);
    let paid = build::payout_decision("paid", &payout, PayoutOutcome::Paid);
    assert_eq!(fixture.commit_one(&paid).await, Verdict::Committed(None));
    fixture.load_payout(&paid).await.unwrap();
    assert_eq!(fixture.pending().await.1, 0);
    assert_eq!(fixture.count_entries().await, 2, "top-up and payout");
}

pub async fn rejected_payout_is_credited_back<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = build::payout_request(fixture.wallet(), "payout", 700);
    fixture.must_commit(&record).await;
    let payout = fixture.load_payout(&record).await.unwrap();
    let failed = build::payout_decision("failed", &payout, PayoutOutcome::Failed);
    let receipt = fixture.must_commit(&failed).await.unwrap();
    assert_eq!(receipt.balance, build::minor(INITIAL_BALANCE));
    fixture.assert_present(&failed).await;
    assert_eq!(fixture.pending().await.1, 0);
}

/// Guard `payout-pending`: the second of two decisions on a payout writes nothing.
pub async fn payout_is_decided_once<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = build::payout_request(fixture.wallet(), "payout", 700);
    fixture.must_commit(&record).await;
    let payout = fixture.load_payout(&record).await.unwrap();
    let rejected = build::payout_decision("rejected", &payout, PayoutOutcome::Rejected);
    fixture.must_commit(&rejected).await;
    let late = build::payout_decision("late", &payout, PayoutOutcome::Failed);
    assert_eq!(fixture.commit_one(&late).await, STALE_STATE);
    assert_eq!(fixture.count_entries().await, 3, "top-up, payout, one reversal");
}

/// Stock reserved for a purchase is claimed for its order only, until the reservation is released.
pub async fn reserved_stock_is_not_claimable<S: Subject>(fixture: Fixture<'_, S>) {
    let purchase_id = Uuid::from_u128(7);
    let bought = fixture
        .subject
        .add_chunk(&gift(), &[build::day(2), build::day(1)])
        .await;
    fixture.subject.reserve_for(&bought, Some(purchase_id)).await;
    let shelf = fixture.claim(&[]).await;
    assert_eq!(shelf, ClaimedStock::default());
    let reserved = fixture.store.claim_reserved(purchase_id).await.unwrap();
    assert_eq!(reserved, [bought[1], bought[0]], "sorted by expiry");
    assert_eq!(
        fixture.store.claim_reserved(purchase_id).await.unwrap(),
        reserved,
        "a repeated claim returns the same"
    );
    assert_eq!(
        fixture.store.claim_reserved(Uuid::from_u128(8)).await.unwrap(),
        []
    );
    fixture.subject.reserve_for(&bought, None).await;
    assert_eq!(fixture.store.claim_reserved(purchase_id).await.unwrap(), []);
    assert_eq!(fixture.claim(&[]).await.chunks.len(), 1);
}

pub async fn reserved_stock_is_sold_to_its_order<S: Subject>(mut fixture: Fixture<'_, S>) {
    let purchase_id = Uuid::from_u128(7);
    let bought = fixture
        .subject
        .add_chunk(&gift(), &[build::day(1), build::day(2)])
        .await;
    fixture.subject.reserve_for(&bought, Some(purchase_id)).await;
    let waiting = fixture.create_pending_order("k", 2).await;
    let reserved = fixture.store.claim_reserved(purchase_id).await.unwrap();
    let record = issue_vouchers(&waiting, "delivered", &reserved);
    fixture.must_commit(&record).await;
    fixture.assert_changed(&record).await;
    assert_eq!(fixture.store.claim_reserved(purchase_id).await.unwrap(), []);
    let competitor = fixture.delivered_order("thief", &reserved);
    assert_eq!(fixture.commit_one(&competitor).await, STALE_STOCK);
    fixture.subject.reserve_for(&bought, None).await;
}

/// Returned stock goes to the shelf only if no order waits for its SKU.
pub async fn returned_stock_is_reserved_for_waiting_order<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let mut holders = Vec::new();
    for (name, gift) in ["first", "second"].into_iter().zip(&gifts) {
        let waiting = fixture.create_pending_order(name, 1).await;
        let issued = issue_vouchers(&waiting, &format!("{name} delivered"), std::slice::from_ref(gift));
        fixture.must_commit(&issued).await;
        holders.push(fixture.load_order(waiting.order.order_id).await);
    }
    let waiting = fixture.create_pending_order("waiting", 1).await;
    let numbers = fixture.allocate_stock_ids(1).await;
    fixture
        .must_commit(&cancel_order(&holders[0], "first cancelled", &numbers))
        .await;
    let shelf = fixture.claim(&[]).await;
    assert!(
        shelf.chunks.is_empty() && shelf.next_expiry.is_none(),
        "{shelf:?}"
    );
    assert_eq!(
        shelf.unclaimable,
        UnclaimableStock::Reserved,
        "the waiting order may leave a remainder"
    );
    fixture
        .must_commit(&cancel_order(&waiting, "waiting cancelled", &[]))
        .await;
    let numbers = fixture.allocate_stock_ids(1).await;
    fixture
        .must_commit(&cancel_order(&holders[1], "second cancelled", &numbers))
        .await;
    assert_eq!(
        fixture.claim(&[]).await.chunks.len(),
        1,
        "no order waits for this voucher"
    );
}
