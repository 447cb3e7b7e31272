//! Conformance cases: rows that a commit writes, and its atomicity.

use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_domain::stock::StockRequest;
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_domain::voucher::Expiry;

use super::fixture::{
    Fixture, INITIAL_BALANCE, NODE, PRICE, gift, own_response, stock_request, wallet_state,
};
use super::subject::{CommitFault, OtherTransaction, Subject};
use crate::build;
use crate::rows::{FeedEntry, Holder, LedgerEntry, StoredKey};

/// Order, allocations, ledger, key, events and wallet read back as written.
pub async fn delivered_order_reads_back_complete<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(3).await;
    let record = fixture.delivered_order("k", &gifts[..2]);
    let receipt = wallet_state(2, INITIAL_BALANCE - 2 * PRICE);
    assert_eq!(fixture.must_commit(&record).await, Some(receipt));

    let order = record.order.clone().unwrap();
    let holder = Holder::Order(order.order_id);
    assert_eq!(
        fixture.subject.allocations().await,
        [(gifts[0].stock_id, holder), (gifts[1].stock_id, holder)]
    );
    assert_eq!(fixture.subject.order(order.order_id).await, Some(order));
    assert_eq!(fixture.wallet_state().await, Some(receipt));
    let entry = LedgerEntry {
        receipt,
        movement: record.movement.clone().unwrap(),
    };
    assert_eq!(fixture.subject.ledger(fixture.wallet()).await[1..], [entry]);
    let stored = StoredKey {
        known: own_response(&record),
        never_expires: false,
    };
    assert_eq!(fixture.subject.stored_key(record.claim.key).await, Some(stored));
    let events = FeedEntry {
        number: 1,
        bundle: record.events.clone().unwrap(),
    };
    assert_eq!(fixture.subject.events(fixture.partner).await, [events]);
}

pub async fn order_of_two_skus_reads_back_complete<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let toy = build::sku("toy", 250);
    let toys = fixture
        .subject
        .add_chunk(&toy, &[build::day(9), Expiry::NEVER])
        .await;
    let request = StockRequest {
        sku: toy.clone(),
        ..stock_request(&[], 10)
    };
    fixture.store.claim_stock(request).await.unwrap();
    let record = build::delivered_order(fixture.partner, "k", &[(&toy, &toys), (&gift(), &gifts)]);
    fixture.must_commit(&record).await;
    fixture.assert_present(&record).await;
    let paid = wallet_state(2, INITIAL_BALANCE - PRICE - 500);
    assert_eq!(fixture.wallet_state().await, Some(paid));
}

pub async fn pending_order_reads_back_complete<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = fixture.pending_order("k", 700);
    fixture.must_commit(&record).await;
    fixture.assert_present(&record).await;
    assert_eq!(fixture.pending().await.0, 700);
    assert_eq!(fixture.subject.allocations().await, []);
}

pub async fn refusal_is_stored_under_its_key<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = build::refusal(fixture.partner, "k");
    assert_eq!(fixture.commit_one(&record).await, Verdict::Committed(None));
    let known = fixture.find_response(record.claim.key).await;
    assert_eq!(known, Some(own_response(&record)));
    assert_eq!(fixture.subject.events(fixture.partner).await, []);
    assert_eq!(fixture.count_entries().await, 1, "only the initial top-up");
}

/// Counts the orders of one partner only, and stops at the limit.
pub async fn orders_of_partner_are_counted_up_to_limit<S: Subject>(mut fixture: Fixture<'_, S>) {
    for name in ["a", "b", "c"] {
        let order = fixture.pending_order(name, 100);
        fixture.must_commit(&order).await;
    }
    let partners = [fixture.partner, build::partner(2)];
    for (partner_id, limit, expected) in [
        (partners[0], 2, 2),
        (partners[0], 3, 3),
        (partners[0], u32::MAX, 3),
        (partners[1], u32::MAX, 0),
    ] {
        let count = fixture.store.count_orders(partner_id, limit).await;
        assert_eq!(count, Ok(expected), "{partner_id} {limit}");
    }
}

/// An aborted batch writes nothing; the lane continues without recovery.
pub async fn aborted_batch_writes_nothing<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let record = fixture.delivered_order("k", &gifts);
    fixture.warm_up().await;
    fixture.subject.fail_next_commit(NODE, CommitFault::Aborted).await;
    let outcome = fixture.lane.send(std::slice::from_ref(&record)).await;
    assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    fixture.assert_absent(&record).await;
    fixture.must_commit(&record).await;
    fixture.assert_present(&record).await;
}

/// A record that Postgres cannot store aborts its batch; without it the batch commits.
pub async fn poisoned_record_fails_alone<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let valid = [
        fixture.delivered_order("a", &gifts[..1]),
        fixture.delivered_order("b", &gifts[1..]),
    ];
    let poisoned = build::with_nul_byte(fixture.pending_order("c", 100));
    let with_poisoned = [valid[0].clone(), poisoned.clone(), valid[1].clone()];
    for batch in [&with_poisoned[..], &with_poisoned[1..2]] {
        let outcome = fixture.lane.send(batch).await;
        assert!(matches!(outcome, Err(CommitError::Poisoned(_))), "{outcome:?}");
    }
    for record in &with_poisoned {
        fixture.assert_absent(record).await;
    }
    let verdicts = fixture.commit(&valid).await;
    assert!(
        verdicts
            .iter()
            .all(|verdict| matches!(verdict, Verdict::Committed(Some(_)))),
        "{verdicts:?}"
    );
    fixture.assert_absent(&poisoned).await;
}

/// A record that waits too long for a lock aborts its batch; without it the batch commits.
pub async fn contended_record_fails_alone<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let records = [
        fixture.delivered_order("a", &gifts),
        fixture.pending_order("b", 100),
    ];
    let transaction = fixture.begin_insert_key_of(&records[1]).await;
    for batch in [&records[..], &records[1..]] {
        let outcome = fixture.lane.send(batch).await;
        assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    }
    for record in &records {
        fixture.assert_absent(record).await;
    }
    fixture.must_commit(&records[0]).await;
    fixture.assert_present(&records[0]).await;
    transaction.rollback().await;
    fixture.must_commit(&records[1]).await;
    fixture.assert_present(&records[1]).await;
}

/// A batch that contains a key twice is rejected; the journal never sends one.
pub async fn duplicate_key_in_batch_is_poisoned<S: Subject>(mut fixture: Fixture<'_, S>) {
    let first = fixture.pending_order("a", 100);
    let second = build::with_key("a", fixture.pending_order("b", 100));
    let outcome = fixture.lane.send(&[first.clone(), second.clone()]).await;
    assert!(matches!(outcome, Err(CommitError::Poisoned(_))), "{outcome:?}");
    fixture.assert_absent(&first).await;
    fixture.assert_absent(&second).await;
}

pub async fn empty_batch_commits<S: Subject>(mut fixture: Fixture<'_, S>) {
    assert_eq!(fixture.commit(&[]).await, []);
}
