//! What a batch is held against: the rows as they stand under its locks. Pure, and blind where a guard was removed.

use std::collections::{BTreeMap, BTreeSet};

use super::held;
use crate::domain::ids::StockId;
use crate::domain::ledger::WalletKey;
use crate::domain::money::Amount;
use crate::domain::payout::PayoutStatus;
use crate::domain::voucher::Shelved;
use crate::journal::{OrderChange, PayoutChange, Record, Return, Verdict};
use crate::store::CommitError;
use crate::testing::memory::guard::Guard;
use crate::testing::memory::state::State;
use crate::testing::memory::tables::{DbTime, Owner, Tables};

/// Why Postgres would refuse the whole statement because of a text of this record.
pub(super) fn has_poison(record: &Record) -> bool {
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

/// Which primary key two of the rows to be written, or one of them and one that is there, share.
pub(super) fn duplicate<'a>(
    tables: &Tables,
    standing: impl Iterator<Item = (usize, &'a Record)>,
) -> Option<&'static str> {
    let (mut orders, mut transactions) = (BTreeSet::new(), BTreeSet::new());
    standing.into_iter().find_map(|(_, record)| {
        let order_twice = record.order.as_ref().is_some_and(|order| {
            tables.orders.contains_key(&order.order_id) || !orders.insert(order.order_id)
        });
        let booked_twice = record.movement.as_ref().is_some_and(|movement| {
            let transaction_id = movement.transaction_id;
            tables.transactions.contains(&transaction_id) || !transactions.insert(transaction_id)
        });
        let constraints = [(order_twice, "orders_pkey"), (booked_twice, "ledger_pkey")];
        constraints
            .into_iter()
            .find(|(twice, _)| *twice)
            .map(|(_, constraint)| constraint)
    })
}

/// The stored answer, if the record's key is known and its time is not over.
pub(super) fn known(state: &State, record: &Record, now: DbTime) -> Option<Verdict> {
    let row = state
        .tables
        .keys
        .get(&record.claim.key)
        .filter(|_| state.verifies(Guard::Key))?;
    let over = match row.expires_at {
        Some(at) => at <= now && state.verifies(Guard::KeyExpiry),
        None => !state.verifies(Guard::KeyForever),
    };
    (!over).then(|| Verdict::KeyKnown(row.known.clone()))
}

/// The places of the records whose order, payout or retrieval is not what it was when they were decided.
pub(super) fn moved<'a>(state: &State, standing: impl Iterator<Item = (usize, &'a Record)>) -> Vec<usize> {
    let moved = |record: &Record| {
        record
            .change
            .as_ref()
            .is_some_and(|change| has_moved(state, change))
            || record
                .payout
                .as_ref()
                .is_some_and(|payout| is_decided(state, payout))
    };
    standing
        .filter(|(_, record)| moved(record))
        .map(|(place, _)| place)
        .collect()
}

fn has_moved(state: &State, change: &OrderChange) -> bool {
    let row = state.tables.orders.get(&change.after.order_id);
    let moved = row.is_none_or(|row| row.last_sequence != change.since);
    let read = |back: &Return| state.tables.retrieved.contains(&back.allocation.voucher_id);
    (moved && state.verifies(Guard::OrderMoved))
        || (change.returned.iter().any(read) && state.verifies(Guard::Retrieved))
}

fn is_decided(state: &State, change: &PayoutChange) -> bool {
    let PayoutChange::Decided(after) = change else {
        return false;
    };
    let row = state.tables.payouts.get(&after.payout_id);
    row.is_none_or(|row| row.status != PayoutStatus::Pending) && state.verifies(Guard::PayoutPending)
}

/// The places of the records that would leave their wallet below zero, with what stood before them in the batch.
pub(super) fn uncovered<'a>(
    state: &State,
    standing: impl Iterator<Item = (usize, &'a Record)>,
) -> Result<Vec<usize>, CommitError> {
    let mut balances: BTreeMap<WalletKey, Amount> = BTreeMap::new();
    let mut short = Vec::new();
    for (place, record) in standing {
        let (Some(wallet), Some(movement)) = (record.wallet(), &record.movement) else {
            continue;
        };
        let before = balances
            .entry(wallet)
            .or_insert_with(|| state.tables.newest(&wallet).balance);
        let after = before.checked_add(movement.amount);
        let after = after.ok_or_else(|| CommitError::Poisoned("bigint out of range".to_owned()))?;
        if after < Amount::ZERO && state.verifies(Guard::Balance) {
            short.push(place);
        } else if state.verifies(Guard::RunningBalance) {
            *before = after;
        }
    }
    Ok(short)
}

pub(super) fn is_own(state: &State, voucher: Shelved, by: &Owner) -> bool {
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
    let node = owner.is_some_and(|owner| owner.node == by.node) || !state.verifies(Guard::ChunkNode);
    // Numbers of starts are counted per node: only with the node's guard do they mean anything.
    let other_node = owner.is_none_or(|owner| owner.node != by.node);
    let incarnation = other_node
        || owner.is_some_and(|owner| owner.incarnation == by.incarnation)
        || !state.verifies(Guard::ChunkIncarnation);
    in_chunk && node && incarnation
}

/// The places of the records with a voucher that somebody has, or that came before in the batch.
pub(super) fn taken<'a>(state: &State, standing: impl Iterator<Item = (usize, &'a Record)>) -> Vec<usize> {
    let mut inserted = BTreeSet::new();
    let mut stale = Vec::new();
    for (place, record) in standing {
        // Every row is tried: one statement inserts the free ones even where another of the record is taken.
        let conflicts = held(record)
            .filter(|voucher| !is_free(state, voucher.stock_id) || !inserted.insert(voucher.stock_id));
        if conflicts.count() > 0 && state.verifies(Guard::Voucher) {
            stale.push(place);
        }
    }
    stale
}

pub(super) fn is_free(state: &State, stock_id: StockId) -> bool {
    !state.tables.allocations.contains_key(&stock_id)
}
