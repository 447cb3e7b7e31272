//! What a commit writes when nothing stands in its way, and that it writes all or nothing.

use super::desk::{Desk, FUNDS, PRICE, another_answer, gift, own_answer, request};
use super::subject::{CommitFault, OtherTransaction, Subject};
use crate::domain::ledger::Receipt;
use crate::domain::stock::StockRequest;
use crate::domain::voucher::Expiry;
use crate::journal::Verdict;
use crate::store::CommitError;
use crate::testing::build;
use crate::testing::facts::{Entry, Holder, Kept, Told};

/// Every row of a delivered order reads back as it was written: order, allocations, ledger, key, events, wallet.
pub async fn a_delivered_order_reads_back_whole<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(3).await;
    let record = desk.order("k", &gifts[..2]);
    let after = Receipt {
        sequence: 2,
        balance: build::minor(FUNDS - 2 * PRICE),
    };
    assert_eq!(desk.line.must_commit(&record).await, Some(after));

    let order = record.order.clone().unwrap();
    let holder = Holder::Order(order.order_id);
    assert_eq!(
        subject.allocations().await,
        [(gifts[0].stock_id, holder), (gifts[1].stock_id, holder)]
    );
    assert_eq!(subject.order(order.order_id).await, Some(order));
    assert_eq!(subject.wallet(desk.wallet()).await, Some(after));
    let entry = Entry {
        after,
        movement: record.movement.clone().unwrap(),
    };
    assert_eq!(subject.ledger(desk.wallet()).await[1..], [entry]);
    let kept = Kept {
        known: own_answer(&record),
        for_ever: false,
    };
    assert_eq!(subject.kept(record.claim.key).await, Some(kept));
    let told = Told {
        number: 1,
        bundle: record.events.clone().unwrap(),
    };
    assert_eq!(subject.events(desk.partner).await, [told]);
}

/// Lines of several SKUs keep their order and their vouchers.
pub async fn an_order_of_two_skus_reads_back_whole<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let toy = build::sku("toy", 250);
    let toys = subject.add_chunk(&toy, &[build::day(9), Expiry::NEVER]).await;
    let request = StockRequest {
        sku: toy.clone(),
        ..request(&[], 10)
    };
    desk.store.claim_stock(request).await.unwrap();
    let record = build::delivered(desk.partner, "k", &[(&toy, &toys), (&gift(), &gifts)]);
    desk.line.must_commit(&record).await;
    desk.assert_present(&record).await;
    let paid = Receipt {
        sequence: 2,
        balance: build::minor(FUNDS - PRICE - 500),
    };
    assert_eq!(subject.wallet(desk.wallet()).await, Some(paid));
}

/// An order that waits for the vendor is debited, told as created, and counted as pending.
pub async fn a_pending_order_reads_back_whole<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = desk.debit("k", 700);
    desk.line.must_commit(&record).await;
    desk.assert_present(&record).await;
    assert_eq!(subject.pending_orders(desk.wallet()).await, build::minor(700));
    assert_eq!(subject.allocations().await, []);
}

/// A refusal that is kept writes its key and nothing else, and is found by it.
pub async fn a_refusal_is_kept_under_its_key<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = build::refusal(desk.partner, "k");
    assert_eq!(desk.line.commit_one(&record).await, Verdict::Committed(None));
    let known = desk.store.find_answer(record.claim.key).await.unwrap();
    assert_eq!(known, Some(own_answer(&record)));
    assert_eq!(subject.events(desk.partner).await, []);
    assert_eq!(subject.ledger(desk.wallet()).await.len(), 1, "the funds alone");
}

/// A batch that is refused for certain writes nothing; the lane goes on without recovery.
pub async fn a_certain_abort_writes_nothing<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let record = desk.order("k", &gifts);
    desk.arm(CommitFault::Refused).await;
    let outcome = desk.line.send(std::slice::from_ref(&record)).await;
    assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    desk.assert_absent(&record).await;
    desk.line.must_commit(&record).await;
    desk.assert_present(&record).await;
}

/// A record that Postgres cannot take spoils its batch, for certain; without it the batch commits.
pub async fn one_poisoned_record_fails_alone<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let sound = [desk.order("a", &gifts[..1]), desk.order("b", &gifts[1..])];
    let poisoned = build::poisoned(desk.debit("c", 100));
    let spoiled = [sound[0].clone(), poisoned.clone(), sound[1].clone()];
    for batch in [&spoiled[..], &spoiled[1..2]] {
        let outcome = desk.line.send(batch).await;
        assert!(matches!(outcome, Err(CommitError::Poisoned(_))), "{outcome:?}");
    }
    for record in &spoiled {
        desk.assert_absent(record).await;
    }
    let verdicts = desk.line.commit(&sound).await;
    assert!(
        verdicts
            .iter()
            .all(|verdict| matches!(verdict, Verdict::Committed(Some(_)))),
        "{verdicts:?}"
    );
    desk.assert_absent(&poisoned).await;
}

/// A record that waits too long for somebody else spoils its batch, for certain; without it the batch commits.
pub async fn one_record_that_collides_fails_alone<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let records = [desk.order("a", &gifts), desk.debit("b", 100)];
    let other = subject.open_key(records[1].claim.key, &another_answer()).await;
    for batch in [&records[..], &records[1..]] {
        let outcome = desk.line.send(batch).await;
        assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    }
    for record in &records {
        desk.assert_absent(record).await;
    }
    desk.line.must_commit(&records[0]).await;
    desk.assert_present(&records[0]).await;
    other.rollback().await;
    desk.line.must_commit(&records[1]).await;
    desk.assert_present(&records[1]).await;
}

/// A batch with one key twice is refused as a whole: it must never come that far.
pub async fn one_key_twice_in_a_batch_is_poison<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let first = desk.debit("a", 100);
    let second = build::under_key("a", desk.debit("b", 100));
    let outcome = desk.line.send(&[first.clone(), second.clone()]).await;
    assert!(matches!(outcome, Err(CommitError::Poisoned(_))), "{outcome:?}");
    desk.assert_absent(&first).await;
    desk.assert_absent(&second).await;
}

/// An empty batch is a batch like any other.
pub async fn an_empty_batch_commits<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    assert_eq!(desk.line.commit(&[]).await, []);
}
