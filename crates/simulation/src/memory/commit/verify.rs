//! Verification of a batch against the rows under its locks. Pure; skips a check whose guard is removed.

use std::collections::{BTreeMap, BTreeSet};

use vouchsafe_actors::ports::record::{
    OrderChange, PayoutChange, Record, ReturnedVoucher, StaleReason, Verdict,
};
use vouchsafe_domain::cap::CapCounter;
use vouchsafe_domain::ids::{PartnerId, StockId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::payout::PayoutStatus;
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_domain::voucher::StockVoucher;

use super::issued_vouchers;
use crate::memory::guard::Guard;
use crate::memory::state::State;
use crate::memory::tables::{DbTime, Owner, Tables};

/// Whether a text of the record contains a NUL byte, for which Postgres rejects the whole statement.
pub(super) fn has_nul_byte(record: &Record) -> bool {
    let order = record.order.as_ref();
    let texts = [
        order.and_then(|order| order.reference.as_deref()),
        order.and_then(|order| order.metadata.as_deref()),
        record
            .movement
            .as_ref()
            .and_then(|movement| movement.reference.as_deref()),
    ];
    texts.into_iter().flatten().any(|text| text.contains('\0'))
}

/// The primary key constraint that the rows to be written violate.
pub(super) fn find_duplicate<'a>(
    tables: &Tables,
    accepted: impl Iterator<Item = (usize, &'a Record)>,
) -> Option<&'static str> {
    let (mut orders, mut transactions) = (BTreeSet::new(), BTreeSet::new());
    accepted.into_iter().find_map(|(_, record)| {
        let order_twice = record.order.as_ref().is_some_and(|order| {
            tables.orders.contains_key(&order.order_id) || !orders.insert(order.order_id)
        });
        let transaction_twice = record.movement.as_ref().is_some_and(|movement| {
            let transaction_id = movement.transaction_id;
            tables.transactions.contains(&transaction_id) || !transactions.insert(transaction_id)
        });
        let constraints = [(order_twice, "orders_pkey"), (transaction_twice, "ledger_pkey")];
        constraints
            .into_iter()
            .find(|(twice, _)| *twice)
            .map(|(_, constraint)| constraint)
    })
}

/// The stored response, if the record's key is known and has not expired.
pub(super) fn find_known_key(state: &State, record: &Record, now: DbTime) -> Option<Verdict> {
    let row = state
        .tables
        .keys
        .get(&record.claim.key)
        .filter(|_| state.has_guard(Guard::Key))?;
    let over = match row.expires_at {
        Some(at) => at <= now && state.has_guard(Guard::KeyExpiry),
        None => !state.has_guard(Guard::KeyForever),
    };
    (!over).then(|| Verdict::KeyKnown(row.known.clone()))
}

/// Whether the record's order, payout or retrievals have changed since it was decided.
pub(super) fn has_changed(state: &State, record: &Record) -> bool {
    let change = record.change.as_ref();
    let payout = record.payout.as_ref();
    change.is_some_and(|change| has_order_changed(state, change))
        || payout.is_some_and(|payout| is_payout_decided(state, payout))
}

fn has_order_changed(state: &State, change: &OrderChange) -> bool {
    let row = state.tables.orders.get(&change.after.order_id);
    let moved = row.is_none_or(|row| row.last_sequence != change.expected_sequence);
    let read = |back: &ReturnedVoucher| state.tables.retrieved.contains(&back.allocation.voucher_id);
    (moved && state.has_guard(Guard::OrderMoved))
        || (change.returned.iter().any(read) && state.has_guard(Guard::Retrieved))
}

fn is_payout_decided(state: &State, change: &PayoutChange) -> bool {
    let PayoutChange::Decided(after) = change else {
        return false;
    };
    let row = state.tables.payouts.get(&after.payout_id);
    row.is_none_or(|row| row.status != PayoutStatus::Pending) && state.has_guard(Guard::PayoutPending)
}

/// Indexes of the records that would leave their wallet below zero or exceed a cap, counting accepted records
/// before them.
pub(super) fn find_unfunded<'a>(
    state: &State,
    accepted: impl Iterator<Item = (usize, &'a Record)>,
    now: DbTime,
) -> Result<Vec<(usize, StaleReason)>, CommitError> {
    let mut balances: BTreeMap<WalletKey, Amount> = BTreeMap::new();
    let mut counted: Vec<CountedUsage> = Vec::new();
    let mut unfunded = Vec::new();
    for (index, record) in accepted {
        let wallet = record.wallet().zip(record.movement.as_ref());
        let after = wallet.map(|(wallet, movement)| {
            let newest = || state.tables.newest(&wallet).balance;
            let before = balances.get(&wallet).copied().unwrap_or_else(newest);
            let after = before.checked_add(movement.amount);
            let after = after.ok_or_else(|| CommitError::Poisoned("bigint out of range".to_owned()))?;
            Ok::<_, CommitError>((wallet, after))
        });
        let after = after.transpose()?;
        if after.is_some_and(|(_, balance)| balance < Amount::ZERO) && state.has_guard(Guard::Balance) {
            unfunded.push((index, StaleReason::Balance));
            continue;
        }
        let Some(added) = usage_within_caps(state, record, &counted, now) else {
            unfunded.push((index, StaleReason::Cap));
            continue;
        };
        if state.has_guard(Guard::RunningBalance) {
            balances.extend(after);
        }
        if state.has_guard(Guard::RunningCap) {
            counted.extend(added);
        }
    }
    Ok(unfunded)
}

/// What a record adds to a counter.
type CountedUsage = (PartnerId, CapCounter, i64);

/// What a record adds to its counters; `None` if it would exceed a cap. Earlier records of its batch have
/// added `counted`.
fn usage_within_caps(
    state: &State,
    record: &Record,
    counted: &[CountedUsage],
    now: DbTime,
) -> Option<Vec<CountedUsage>> {
    let mut added: Vec<CountedUsage> = Vec::new();
    for check in &record.caps {
        let (partner_id, counter) = (record.partner_id, check.counter.without_window());
        let earlier = counted
            .iter()
            .chain(&added)
            .filter(|(of, name, _)| *of == partner_id && *name == counter);
        let earlier: i64 = earlier.map(|(_, _, number)| number).sum();
        let used = state.tables.cap_usage(partner_id, check, now) + earlier;
        if check.is_exceeded(used) && state.has_guard(Guard::Cap) {
            return None;
        }
        added.push((partner_id, counter, check.added));
    }
    Some(added)
}

pub(super) fn is_owned_by(state: &State, voucher: StockVoucher, by: &Owner) -> bool {
    let in_chunk = state
        .tables
        .stock
        .get(&voucher.stock_id)
        .is_some_and(|row| row.chunk_id == voucher.chunk_id);
    let owner = state
        .tables
        .chunks
        .get(&voucher.chunk_id)
        .and_then(|row| row.owner.as_ref());
    let node = owner.is_some_and(|owner| owner.node == by.node) || !state.has_guard(Guard::ChunkNode);
    // Incarnations are counted per node, so they are comparable only within one node.
    let other_node = owner.is_none_or(|owner| owner.node != by.node);
    let incarnation = other_node
        || owner.is_some_and(|owner| owner.incarnation == by.incarnation)
        || !state.has_guard(Guard::ChunkIncarnation);
    in_chunk && node && incarnation
}

/// Indexes of the records with a voucher that is allocated or occurs earlier in the batch.
pub(super) fn find_allocated_vouchers<'a>(
    state: &State,
    accepted: impl Iterator<Item = (usize, &'a Record)>,
) -> Vec<usize> {
    let mut inserted = BTreeSet::new();
    let mut stale = Vec::new();
    for (index, record) in accepted {
        // Every row is tried, because one statement inserts the free rows even if another row of the record
        // conflicts.
        let conflicts = issued_vouchers(record)
            .filter(|voucher| !is_free(state, voucher.stock_id) || !inserted.insert(voucher.stock_id));
        if conflicts.count() > 0 && state.has_guard(Guard::Voucher) {
            stale.push(index);
        }
    }
    stale
}

pub(super) fn is_free(state: &State, stock_id: StockId) -> bool {
    !state.tables.allocations.contains_key(&stock_id)
}
