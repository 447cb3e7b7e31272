//! What the commit verifies of money: enough of it, at the moment of the commit, record by record.

use super::desk::{Desk, FUNDS, Line, SHORT, another_answer, must_wait};
use super::subject::{OtherTransaction, Subject};
use crate::domain::ledger::{Receipt, WalletKey};
use crate::journal::Verdict;
use crate::testing::build;

/// Guard `balance`: a debit beyond the balance is stale, and the wallet untouched; to the last cent it is not.
pub async fn a_debit_beyond_the_balance_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = desk.debit("a", FUNDS + 1);
    assert_eq!(desk.line.commit_one(&record).await, SHORT);
    desk.assert_absent(&record).await;
    let empty = Receipt {
        sequence: 2,
        balance: build::minor(0),
    };
    assert_eq!(desk.line.must_commit(&desk.debit("b", FUNDS)).await, Some(empty));
}

/// Guard `running-balance`: each record counts with those before it; of three debits the third is stale, the others commit.
pub async fn the_balance_runs_through_a_batch<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = ["a", "b", "c"].map(|name| desk.debit(name, 4_000));
    let verdicts = desk.line.commit(&records).await;
    let committed = |verdict: &Verdict| matches!(verdict, Verdict::Committed(Some(_)));
    assert!(committed(&verdicts[0]) && committed(&verdicts[1]), "{verdicts:?}");
    assert_eq!(verdicts[2], SHORT);
    desk.assert_absent(&records[2]).await;
    let paid = Receipt {
        sequence: 3,
        balance: build::minor(FUNDS - 8_000),
    };
    assert_eq!(subject.wallet(desk.wallet()).await, Some(paid));
}

/// A top-up pays for the debit that follows it in the same batch.
pub async fn a_top_up_pays_for_what_follows<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [
        build::top_up(desk.wallet(), "wire-1", 500),
        desk.debit("a", FUNDS + 500),
    ];
    let verdicts = desk.line.commit(&records).await;
    assert!(
        matches!(
            verdicts[..],
            [Verdict::Committed(Some(_)), Verdict::Committed(Some(_))]
        ),
        "{verdicts:?}"
    );
    let empty = Receipt {
        sequence: 3,
        balance: build::minor(0),
    };
    assert_eq!(subject.wallet(desk.wallet()).await, Some(empty));
}

/// Debits of several wallets in one batch: one has enough, one is short, one does not exist; what stands is booked, and what
/// does not has left nothing behind.
pub async fn a_wallet_that_is_short_leaves_the_others<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let (short, stranger) = (build::partner(2), build::partner(3));
    for partner in [short, stranger] {
        subject.add_partner(partner).await;
    }
    subject.top_up(build::usd_of(short), build::minor(500)).await;
    let of = |partner, name, amount| build::pending(partner, name, amount);
    let records = [
        of(short, "dear", 600),
        desk.debit("a", 400),
        of(stranger, "nothing", 1),
        of(short, "cheap", 300),
        desk.debit("b", 600),
    ];
    let booked = |sequence, balance| {
        let balance = build::minor(balance);
        Verdict::Committed(Some(Receipt { sequence, balance }))
    };
    let expected = [
        SHORT,
        booked(2, FUNDS - 400),
        SHORT,
        booked(2, 200),
        booked(3, FUNDS - 1_000),
    ];
    assert_eq!(desk.line.commit(&records).await, expected);
    let held = [
        (desk.wallet(), Some((3, FUNDS - 1_000))),
        (build::usd_of(short), Some((2, 200))),
        (build::usd_of(stranger), None),
    ];
    for (wallet, held) in held {
        let held = held.map(|(sequence, balance)| Receipt {
            sequence,
            balance: build::minor(balance),
        });
        assert_eq!(subject.wallet(wallet).await, held);
    }
}

/// The wallet that does not exist would stand before the one that pays.
pub async fn a_wallet_that_is_missing_leaves_the_others<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let (stranger, rich) = (build::partner(2), build::partner(3));
    for partner in [stranger, rich] {
        subject.add_partner(partner).await;
    }
    subject.top_up(build::usd_of(rich), build::minor(500)).await;
    let records = [
        build::pending(stranger, "nothing", 1),
        build::pending(rich, "a", 200),
    ];
    let left = Receipt {
        sequence: 2,
        balance: build::minor(300),
    };
    let verdicts = desk.line.commit(&records).await;
    assert_eq!(verdicts, [SHORT, Verdict::Committed(Some(left))]);
    assert_eq!(subject.wallet(build::usd_of(rich)).await, Some(left));
    assert_eq!(subject.wallet(build::usd_of(stranger)).await, None);
}

/// A wallet that does not exist holds nothing, and a debit does not make it exist.
pub async fn a_wallet_that_is_not_there_holds_nothing<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let stranger = build::partner(2);
    subject.add_partner(stranger).await;
    let record = build::pending(stranger, "a", 1);
    assert_eq!(desk.line.commit_one(&record).await, SHORT);
    desk.assert_absent(&record).await;
    assert_eq!(subject.wallet(build::usd_of(stranger)).await, None);
    assert_eq!(desk.store.load_wallets(stranger).await.unwrap(), []);
}

/// A top-up opens the wallet that it is for.
pub async fn a_top_up_opens_its_wallet<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let yen = WalletKey {
        currency: "JPY".parse().unwrap(),
        ..desk.wallet()
    };
    let opened = Receipt {
        sequence: 1,
        balance: build::minor(500),
    };
    assert_eq!(
        desk.line.must_commit(&build::top_up(yen, "wire-1", 500)).await,
        Some(opened)
    );
    let funds = Receipt {
        sequence: 1,
        balance: build::minor(FUNDS),
    };
    let mut wallets = desk.store.load_wallets(desk.partner).await.unwrap();
    wallets.sort_by_key(|(currency, _)| *currency);
    assert_eq!(wallets, [(yen.currency, opened), (build::usd(), funds)]);
}

/// Numbers of a wallet have no gap, over batches, lanes and refusals; a receipt is a state that the ledger knows.
pub async fn ledger_numbers_have_no_gap<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let mut second = Line::open(&desk.store, 1).await;
    let left = [
        desk.debit("a", 100),
        desk.debit("too much", FUNDS),
        desk.debit("b", 100),
    ];
    let right = [desk.debit("c", 100), build::top_up(desk.wallet(), "wire-1", 50)];
    let (left, right) = tokio::join!(desk.line.commit(&left), second.commit(&right));
    desk.line.must_commit(&desk.debit("d", 100)).await;
    let ledger = subject.ledger(desk.wallet()).await;
    let sequences: Vec<_> = ledger.iter().map(|entry| entry.after.sequence).collect();
    assert_eq!(
        sequences,
        [1, 2, 3, 4, 5, 6],
        "funds, two debits, a debit and a top-up, a debit"
    );
    for verdict in left.iter().chain(&right) {
        let Verdict::Committed(Some(receipt)) = verdict else {
            continue;
        };
        assert!(
            ledger.iter().any(|entry| entry.after == *receipt),
            "{receipt:?} is no state of {ledger:?}"
        );
    }
}

/// A receipt is no older than the record's own entry, and the last one of a batch is the wallet's newest.
pub async fn receipts_are_the_newest<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = ["a", "b", "c"].map(|name| desk.debit(name, 100));
    let verdicts = desk.line.commit(&records).await;
    let newest = subject.wallet(desk.wallet()).await.unwrap();
    let receipts: Vec<_> = verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Committed(Some(receipt)) => *receipt,
            other => panic!("a record that moved money has a receipt, got {other:?}"),
        })
        .collect();
    assert_eq!(receipts.last(), Some(&newest));
    for (receipt, own) in receipts.iter().zip(2..) {
        assert!(receipt.sequence >= own, "{receipt:?} is older than entry {own}");
    }
}

/// A batch that waited sees the balance of after the wait, not the one of when it was sent.
pub async fn money_spent_during_a_wait_is_gone<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let mut second = Line::open(&desk.store, 1).await;
    let records = [desk.debit("a", 8_000)];
    let rival = desk.debit("b", 8_000);
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    second.must_commit(&rival).await;
    other.rollback().await;
    assert_eq!(under_way.await.unwrap(), [SHORT]);
    desk.assert_absent(&records[0]).await;
}

/// A wallet that was opened while a batch waited is credited, not opened twice.
pub async fn a_wallet_opened_during_a_wait_is_credited<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let mut second = Line::open(&desk.store, 1).await;
    let yen = WalletKey {
        currency: "JPY".parse().unwrap(),
        ..desk.wallet()
    };
    let records = [build::top_up(yen, "wire-1", 500)];
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    second.must_commit(&build::top_up(yen, "wire-2", 300)).await;
    other.rollback().await;
    let both = Receipt {
        sequence: 2,
        balance: build::minor(800),
    };
    assert_eq!(under_way.await.unwrap(), [Verdict::Committed(Some(both))]);
    assert_eq!(subject.wallet(yen).await, Some(both));
}
