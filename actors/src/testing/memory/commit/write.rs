//! What a record writes once it stands, and what a stale one leaves where a guard was removed.

use std::time::Duration;

use super::verify::is_free;
use super::{held, wallet_of};
use crate::domain::answer::{Keep, KnownAnswer};
use crate::domain::ledger::Receipt;
use crate::domain::voucher::Shelved;
use crate::journal::Record;
use crate::testing::facts::Holder;
use crate::testing::memory::guard::Guard;
use crate::testing::memory::state::State;
use crate::testing::memory::tables::{AllocationRow, DbTime, KeyRow, Owner, Tables};

/// How long an answer is kept under a partner's key.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes all of a record; returns the state of the wallet right after it, if it moved money.
pub(super) fn write_record(tables: &mut Tables, record: &Record, by: &Owner, now: DbTime) -> Option<Receipt> {
    write_key(tables, record, now);
    let movement = wallet_of(record).zip(record.movement.as_ref());
    let receipt = movement.map(|(wallet, movement)| tables.book(wallet, movement));
    if let Some(order) = &record.order {
        held(record).for_each(|voucher| allocate(tables, voucher, Holder::Order(order.order_id), by));
        tables.orders.insert(order.order_id, order.clone());
    }
    if let Some(bundle) = &record.events {
        tables.tell(record.partner_id, bundle);
    }
    receipt
}

fn write_key(tables: &mut Tables, record: &Record, now: DbTime) {
    let claim = &record.claim;
    let known = KnownAnswer {
        fingerprint: claim.fingerprint,
        answer: claim.answer.clone(),
    };
    let expires_at = match claim.keep {
        Keep::Day => Some(now.after(DAY)),
        Keep::Forever => None,
    };
    let row = KeyRow {
        known,
        expires_at,
        order_id: record.order.as_ref().map(|order| order.order_id),
    };
    let old = tables.keys.insert(claim.key, row);
    let expired = old.filter(|row| row.expires_at.is_some_and(|at| at <= now));
    tables.retired.extend(expired.map(|row| (claim.key, row)));
}

fn allocate(tables: &mut Tables, voucher: Shelved, holder: Holder, by: &Owner) {
    let owner = tables
        .chunks
        .get(&voucher.chunk_id)
        .and_then(|row| row.owner.clone());
    let row = AllocationRow {
        holder,
        by: Some(by.clone()),
        owner,
    };
    tables.allocations.entry(voucher.stock_id).or_default().push(row);
}

/// What a stale record leaves where a guard was taken away; with all guards, nothing.
pub(super) fn leave_behind(state: &mut State, record: &Record, by: &Owner, now: DbTime) {
    if !state.verifies(Guard::GiveBackKey) {
        write_key(&mut state.tables, record, now);
    }
    if let Some(order) = record
        .order
        .as_ref()
        .filter(|_| !state.verifies(Guard::GiveBackVouchers))
    {
        let free: Vec<_> = held(record)
            .filter(|voucher| is_free(state, voucher.stock_id))
            .collect();
        free.into_iter()
            .for_each(|v| allocate(&mut state.tables, v, Holder::Order(order.order_id), by));
    }
}
