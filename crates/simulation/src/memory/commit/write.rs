//! Rows that an accepted record writes, and rows that a stale record leaves if a guard is removed.

use std::collections::BTreeMap;
use std::time::Duration;

use vouchsafe_actors::ports::record::{PayoutChange, Record, ReturnedVoucher};
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{Retention, StoredResponse};
use vouchsafe_domain::ids::{OrderId, StockId};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::voucher::StockVoucher;

use super::verify::is_free;
use crate::memory::guard::Guard;
use crate::memory::reservations::insert_chunk;
use crate::memory::state::State;
use crate::memory::tables::{AllocationRow, DbTime, KeyRow, OrderRow, Owner, Tables};
use crate::rows::Holder;

/// How long a response is stored under a partner's key.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes a record; returns the wallet's state after it, if it moved money.
pub(super) fn write_record(
    tables: &mut Tables,
    record: &Record,
    by: &Owner,
    now: DbTime,
) -> Option<WalletState> {
    write_key(tables, record, now);
    for check in &record.caps {
        tables.count_usage(record.partner_id, check);
    }
    let movement = record.wallet().zip(record.movement.as_ref());
    let receipt = movement.map(|(wallet, movement)| tables.post(wallet, movement));
    let shift = record.wallet().zip(record.pending_delta.as_ref());
    if let Some((wallet, shift)) = shift {
        tables.add_pending(wallet, shift);
    }
    allocate_all(tables, record, by);
    let order = record
        .order
        .as_ref()
        .or(record.change.as_ref().map(|change| &change.after));
    if let Some(order) = order {
        let known = tables.orders.get(&order.order_id);
        let row = OrderRow {
            committed_at: known.map_or(now, |row| row.committed_at),
            order: order.clone(),
            last_sequence: record.events.as_ref().map_or(0, EventBundle::last_sequence),
        };
        tables.orders.insert(order.order_id, row);
    }
    restock_returned_vouchers(tables, record);
    if let Some(PayoutChange::Requested(payout) | PayoutChange::Decided(payout)) = &record.payout {
        tables.payouts.insert(payout.payout_id, payout.clone());
    }
    if let Some(bundle) = &record.events {
        tables.append_events(record.partner_id, bundle, now);
    }
    tables.audit_log.extend(record.audit_entry.clone());
    receipt
}

/// Marks the sold rows as returned and adds new rows for their codes in new, unowned chunks. Runs after the
/// order is written, so the order itself does not count as waiting for them.
fn restock_returned_vouchers(tables: &mut Tables, record: &Record) {
    let mut chunks: BTreeMap<StockId, Vec<&ReturnedVoucher>> = BTreeMap::new();
    for back in record.returned() {
        let sold = tables.allocations.get_mut(&back.allocation.voucher.stock_id);
        let is_of_order = |row: &&mut AllocationRow| row.holder == Holder::Order(changed_order_id(record));
        if let Some(row) = sold.into_iter().flatten().find(is_of_order) {
            row.returned = true;
        }
        chunks.entry(back.chunk_first_id).or_default().push(back);
    }
    for returned in chunks.into_values() {
        let sku = returned[0].allocation.sku.clone();
        let stock = returned.iter().map(|back| {
            let sold = back.allocation.voucher;
            (back.stock_id, sold.expiry, tables.stock[&sold.stock_id].code)
        });
        let stock: Vec<_> = stock.collect();
        insert_chunk(tables, &sku, stock.into_iter());
    }
}

fn changed_order_id(record: &Record) -> OrderId {
    let changed = record.change.as_ref().map(|change| change.after.order_id);
    changed.unwrap_or_else(OrderId::nil)
}

fn allocate_all(tables: &mut Tables, record: &Record, by: &Owner) {
    for (order_id, allocation) in record.issued() {
        allocate(tables, allocation.voucher, Holder::Order(order_id), by);
    }
}

fn write_key(tables: &mut Tables, record: &Record, now: DbTime) {
    let claim = &record.claim;
    let known = StoredResponse {
        fingerprint: claim.fingerprint,
        response: claim.response.clone(),
    };
    let expires_at = match claim.retention {
        Retention::Day => Some(now.after(DAY)),
        Retention::Forever => None,
    };
    let row = KeyRow {
        known,
        expires_at,
        order_id: record.order.as_ref().map(|order| order.order_id),
    };
    let old = tables.keys.insert(claim.key, row);
    let expired = old.filter(|row| row.expires_at.is_some_and(|at| at <= now));
    tables.expired_keys.extend(expired.map(|row| (claim.key, row)));
}

fn allocate(tables: &mut Tables, voucher: StockVoucher, holder: Holder, by: &Owner) {
    let chunk_owner = tables
        .chunks
        .get(&voucher.chunk_id)
        .and_then(|row| row.owner.clone());
    let row = AllocationRow {
        holder,
        committed_by: Some(by.clone()),
        chunk_owner,
        returned: false,
    };
    tables.allocations.entry(voucher.stock_id).or_default().push(row);
}

/// Writes what a stale record claimed, if the guard that releases it is removed.
pub(super) fn write_unreleased_claims(state: &mut State, record: &Record, by: &Owner, now: DbTime) {
    if !state.has_guard(Guard::GiveBackKey) {
        write_key(&mut state.tables, record, now);
    }
    if !state.has_guard(Guard::GiveBackVouchers) {
        let free: Vec<_> = record
            .issued()
            .filter(|(_, allocation)| is_free(state, allocation.voucher.stock_id))
            .map(|(order_id, allocation)| (order_id, allocation.voucher))
            .collect();
        for (order_id, voucher) in free {
            allocate(&mut state.tables, voucher, Holder::Order(order_id), by);
        }
    }
}
