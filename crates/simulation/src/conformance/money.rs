//! Conformance cases: balances that the commit verifies, record by record.

use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::WalletKey;

use super::fixture::{Fixture, INITIAL_BALANCE, STALE_BALANCE, assert_committed, wallet_state};
use super::subject::Subject;
use crate::build;

fn yen_wallet(partner_id: PartnerId) -> WalletKey {
    let currency = "JPY".parse().unwrap();
    WalletKey { partner_id, currency }
}

/// Guard `balance`: a debit beyond the balance is stale and leaves the wallet unchanged; a debit of the whole
/// balance commits.
pub async fn debit_beyond_balance_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = fixture.pending_order("a", INITIAL_BALANCE + 1);
    fixture.assert_rejected(&record, STALE_BALANCE).await;
    let empty = wallet_state(2, 0);
    assert_eq!(
        fixture
            .must_commit(&fixture.pending_order("b", INITIAL_BALANCE))
            .await,
        Some(empty)
    );
}

/// Guard `running-balance`: earlier records of the batch count; of three debits the third is stale, the
/// others commit.
pub async fn running_balance_applies_within_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = ["a", "b", "c"].map(|name| fixture.pending_order(name, 4_000));
    let verdicts = fixture.commit(&records).await;
    assert_committed(&verdicts[..2]);
    assert_eq!(verdicts[2], STALE_BALANCE);
    fixture.assert_absent(&records[2]).await;
    let paid = wallet_state(3, INITIAL_BALANCE - 8_000);
    assert_eq!(fixture.wallet_state().await, Some(paid));
}

pub async fn top_up_covers_later_debit_in_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [
        build::top_up(fixture.wallet(), "wire-1", 500),
        fixture.pending_order("a", INITIAL_BALANCE + 500),
    ];
    let verdicts = fixture.commit(&records).await;
    assert_committed(&verdicts);
    let empty = wallet_state(3, 0);
    assert_eq!(fixture.wallet_state().await, Some(empty));
}

/// Debits of several wallets in one batch: one is covered, one is not, one wallet does not exist. Covered
/// debits are posted, the others leave no rows.
pub async fn uncovered_debit_does_not_affect_other_wallets<S: Subject>(mut fixture: Fixture<'_, S>) {
    let short = fixture.add_partner(2, 500).await;
    let unknown_partner = fixture.add_partner(3, 0).await;
    let of = |partner, name, amount| build::pending_order(partner, name, amount);
    let records = [
        of(short, "dear", 600),
        fixture.pending_order("a", 400),
        of(unknown_partner, "nothing", 1),
        of(short, "cheap", 300),
        fixture.pending_order("b", 600),
    ];
    let booked = |sequence, balance| Verdict::Committed(Some(wallet_state(sequence, balance)));
    let expected = [
        STALE_BALANCE,
        booked(2, INITIAL_BALANCE - 400),
        STALE_BALANCE,
        booked(2, 200),
        booked(3, INITIAL_BALANCE - 1_000),
    ];
    assert_eq!(fixture.commit(&records).await, expected);
    let held = [
        (fixture.wallet(), Some(wallet_state(3, INITIAL_BALANCE - 1_000))),
        (build::usd_wallet(short), Some(wallet_state(2, 200))),
        (build::usd_wallet(unknown_partner), None),
    ];
    for (wallet, held) in held {
        assert_eq!(fixture.wallet_state_of(wallet).await, held);
    }
}

/// The missing wallet sorts before the one that is debited.
pub async fn missing_wallet_does_not_affect_other_wallets<S: Subject>(mut fixture: Fixture<'_, S>) {
    let unknown_partner = fixture.add_partner(2, 0).await;
    let rich = fixture.add_partner(3, 500).await;
    let records = [
        build::pending_order(unknown_partner, "nothing", 1),
        build::pending_order(rich, "a", 200),
    ];
    let left = wallet_state(2, 300);
    let verdicts = fixture.commit(&records).await;
    assert_eq!(verdicts, [STALE_BALANCE, Verdict::Committed(Some(left))]);
    let held = fixture.wallet_state_of(build::usd_wallet(rich)).await;
    assert_eq!(held, Some(left));
    assert_eq!(
        fixture.subject.wallet(build::usd_wallet(unknown_partner)).await,
        None
    );
}

pub async fn missing_wallet_has_insufficient_funds<S: Subject>(mut fixture: Fixture<'_, S>) {
    let unknown_partner = fixture.add_partner(2, 0).await;
    let record = build::pending_order(unknown_partner, "a", 1);
    fixture.assert_rejected(&record, STALE_BALANCE).await;
    assert_eq!(
        fixture.subject.wallet(build::usd_wallet(unknown_partner)).await,
        None
    );
    assert_eq!(fixture.store.load_wallets(unknown_partner).await.unwrap(), []);
}

pub async fn top_up_creates_its_wallet<S: Subject>(mut fixture: Fixture<'_, S>) {
    let yen = yen_wallet(fixture.partner);
    let opened = wallet_state(1, 500);
    assert_eq!(
        fixture.must_commit(&build::top_up(yen, "wire-1", 500)).await,
        Some(opened)
    );
    let funds = wallet_state(1, INITIAL_BALANCE);
    let mut wallets = fixture.store.load_wallets(fixture.partner).await.unwrap();
    wallets.sort_by_key(|(currency, _)| *currency);
    assert_eq!(wallets, [(yen.currency, opened), (build::usd(), funds)]);
}

/// Ledger numbers of a wallet are consecutive across batches, lanes and rejections; each receipt matches a
/// ledger entry.
pub async fn ledger_numbers_are_consecutive<S: Subject>(mut fixture: Fixture<'_, S>) {
    let mut second = fixture.second_lane().await;
    let left = [
        fixture.pending_order("a", 100),
        fixture.pending_order("too much", INITIAL_BALANCE),
        fixture.pending_order("b", 100),
    ];
    let right = [
        fixture.pending_order("c", 100),
        build::top_up(fixture.wallet(), "wire-1", 50),
    ];
    let (left, right) = tokio::join!(fixture.commit(&left), second.commit(&right));
    fixture.must_commit(&fixture.pending_order("d", 100)).await;
    let ledger = fixture.subject.ledger(fixture.wallet()).await;
    let sequences: Vec<_> = ledger.iter().map(|entry| entry.receipt.sequence).collect();
    assert_eq!(
        sequences,
        [1, 2, 3, 4, 5, 6],
        "top-up, two debits, a debit and a top-up, a debit"
    );
    for verdict in left.iter().chain(&right) {
        let Verdict::Committed(Some(receipt)) = verdict else {
            continue;
        };
        assert!(
            ledger.iter().any(|entry| entry.receipt == *receipt),
            "{receipt:?} matches no entry of {ledger:?}"
        );
    }
}

/// A receipt is at least as new as the record's own entry; the last one of a batch is the wallet's newest
/// state.
pub async fn receipts_are_at_least_as_new_as_their_entry<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = ["a", "b", "c"].map(|name| fixture.pending_order(name, 100));
    let verdicts = fixture.commit(&records).await;
    let newest = fixture.wallet_state().await.unwrap();
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

/// A batch that was blocked reads the balance after the wait.
pub async fn money_spent_while_blocked_is_not_available<S: Subject>(mut fixture: Fixture<'_, S>) {
    let [record, competitor] = ["a", "b"].map(|name| fixture.pending_order(name, 8_000));
    let verdict = fixture.commit_overtaken(&record, &competitor).await;
    assert_eq!(verdict, STALE_BALANCE);
    fixture.assert_absent(&record).await;
}

pub async fn wallet_created_while_blocked_is_credited<S: Subject>(mut fixture: Fixture<'_, S>) {
    let yen = yen_wallet(fixture.partner);
    let [record, competitor] =
        [("wire-1", 500), ("wire-2", 300)].map(|(name, amount)| build::top_up(yen, name, amount));
    let verdict = fixture.commit_overtaken(&record, &competitor).await;
    let both = wallet_state(2, 800);
    assert_eq!(verdict, Verdict::Committed(Some(both)));
    assert_eq!(fixture.wallet_state_of(yen).await, Some(both));
}
