//! Checks of a batch before it is sent and of its verdicts, whatever the database contains.
//!
//! `commit_batch` verifies a batch against the database. These checks find faults of this program, before it
//! writes a batch or believes a verdict: a stopped node loses nothing, and another one goes on.

use std::collections::{BTreeMap, HashSet};

use vouchsafe_domain::money::Amount;

use crate::ports::record::{Record, Verdict};

/// Checks a batch before it is sent.
///
/// # Panics
/// If no correct flows can have submitted these records together.
pub(super) fn check_records(records: &[Record]) {
    let mut keys = HashSet::with_capacity(records.len());
    let most = records.iter().map(Record::voucher_count).max();
    let mut vouchers = HashSet::with_capacity(most.unwrap_or_default());
    for record in records {
        assert!(
            keys.insert(record.claim.key),
            "two records of a batch have one key, whose guard admits one request"
        );
        // Two records may sell one voucher after a restart of its actor; the commit rejects the second.
        vouchers.clear();
        for (_, allocation) in record.issued() {
            assert!(
                vouchers.insert(allocation.voucher.stock_id),
                "a record sells one voucher twice"
            );
        }
        check_debit(record);
    }
}

/// A new order is paid by the record that places it, with its total.
fn check_debit(record: &Record) {
    let Some(order) = &record.order else {
        return;
    };
    let debit = record.movement.as_ref();
    let is_paid = debit.is_some_and(|debit| {
        debit.amount.checked_add(order.total.amount) == Some(Amount::ZERO)
            && debit.currency == order.total.currency
            && debit.order_id == Some(order.order_id)
    });
    assert!(is_paid, "a new order is not debited by its total");
    assert!(
        order.partner_id == record.partner_id,
        "a record places another partner's order"
    );
}

/// Checks the verdicts that the commit of these records returned.
///
/// # Panics
/// If the store cannot have committed the records with these verdicts.
pub(super) fn check_verdicts(records: &[Record], verdicts: &[Verdict]) {
    assert_eq!(
        records.len(),
        verdicts.len(),
        "each record of a batch has a verdict"
    );
    let mut wallets = BTreeMap::new();
    for (record, verdict) in records.iter().zip(verdicts) {
        let Verdict::Committed(Some(state)) = verdict else {
            continue;
        };
        let wallet = record.wallet();
        assert!(
            wallet.is_some(),
            "a record that changes no wallet has the state of one"
        );
        assert!(state.balance >= Amount::ZERO, "a commit left a wallet below zero");
        let earlier = wallets.insert(wallet, *state);
        let follows = earlier.is_none_or(|earlier| earlier == *state || earlier.sequence < state.sequence);
        assert!(
            follows,
            "a wallet's states of a batch are not in the order of its records"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use vouchsafe_domain::fixtures::{self, NOW};
    use vouchsafe_domain::idempotency::Retention;
    use vouchsafe_domain::ids::{ChunkId, PartnerId, StockId, VoucherId};
    use vouchsafe_domain::ledger::{LedgerKind, Movement, WalletState};
    use vouchsafe_domain::order::Order;
    use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};

    use super::*;
    use crate::ports::record::KeyClaim;

    /// A delivered order of vouchers with these stock ids.
    fn record(key: &str, stock_ids: &[i64]) -> Record {
        let partner_id = PartnerId::from_uuid(fixtures::uuid("partner", "p"));
        let sku = fixtures::sku("gift", 1_000);
        let priced = fixtures::priced_order(&[(&sku, u32::try_from(stock_ids.len()).unwrap())]);
        let allocate = |stock_id: &i64| {
            let voucher = StockVoucher {
                expiry: Expiry::NEVER,
                chunk_id: ChunkId(1),
                stock_id: StockId(*stock_id),
            };
            let voucher_id = VoucherId::from_uuid(fixtures::uuid("voucher", &format!("{key}/{stock_id}")));
            Allocation::new(voucher_id, 0, sku.clone(), voucher)
        };
        let vouchers = stock_ids.iter().map(allocate).collect();
        let order = Order::delivered(fixtures::order_id(key), partner_id, &priced, vouchers, NOW);
        let claim = KeyClaim {
            key: fixtures::key(key),
            fingerprint: fixtures::fingerprint(key),
            response: fixtures::response(key),
            retention: Retention::Day,
        };
        Record {
            movement: Some(Movement {
                transaction_id: fixtures::transaction_id(key),
                currency: order.total.currency,
                kind: LedgerKind::Debit,
                amount: fixtures::minor(-order.total.amount.minor()),
                order_id: Some(order.order_id),
                payout_id: None,
                reference: None,
                booked_by: None,
            }),
            order: Some(order),
            ..Record::new(partner_id, claim)
        }
    }

    /// The message of the check that fails, if one does.
    fn failure(check: impl FnOnce() + std::panic::UnwindSafe) -> Option<String> {
        let panic = catch_unwind(check).err()?;
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        text.or_else(|| panic.downcast_ref::<String>().cloned())
    }

    #[test]
    fn batch_has_each_key_once_and_pays_each_order_with_different_vouchers() {
        let underpaid = || {
            let mut record = record("c", &[3]);
            record.movement = record.movement.map(|debit| Movement {
                amount: fixtures::minor(-999),
                ..debit
            });
            record
        };
        let unpaid = || Record {
            movement: None,
            ..record("c", &[3])
        };
        for (other, expected) in [
            (record("b", &[1, 2]), None),
            (record("a", &[2]), Some("have one key")),
            (record("b", &[2, 2]), Some("sells one voucher twice")),
            (underpaid(), Some("not debited by its total")),
            (unpaid(), Some("not debited by its total")),
        ] {
            let batch = [record("a", &[1]), other];
            let failure = failure(move || check_records(&batch));
            let is_expected = match (&failure, expected) {
                (Some(text), Some(expected)) => text.contains(expected),
                (failure, expected) => failure.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{failure:?} instead of {expected:?}");
        }
    }

    #[test]
    fn states_of_a_wallet_follow_each_other_and_are_never_below_zero() {
        let committed = |sequence, balance| {
            Verdict::Committed(Some(WalletState {
                sequence,
                balance: fixtures::minor(balance),
            }))
        };
        for (verdicts, expected) in [
            (vec![committed(2, 0), committed(2, 0)], true),
            (vec![committed(2, 0), Verdict::Committed(None)], true),
            (vec![committed(2, 0)], false),
            (vec![committed(1, 5), committed(2, 0)], true),
            (vec![committed(2, 0), committed(1, 5)], false),
            (vec![committed(2, 0), committed(2, 5)], false),
            (vec![committed(2, -1), committed(2, -1)], false),
        ] {
            let batch = [record("a", &[1]), record("b", &[2])];
            let failure = failure(|| check_verdicts(&batch, &verdicts));
            assert_eq!(failure.is_none(), expected, "{verdicts:?}: {failure:?}");
        }
        let response_only = Record {
            order: None,
            movement: None,
            ..record("a", &[1])
        };
        assert!(failure(|| check_verdicts(&[response_only], &[committed(1, 1)])).is_some());
    }
}
