//! Invariants of wallets and ledger: conservation, chain of balances, no overdraft, pending amounts.

use std::collections::BTreeSet;

use vouchsafe_domain::ledger::{WalletKey, WalletState};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::payout::PayoutStatus;

use super::Findings;
use crate::memory::tables::Tables;
use crate::rows::{LedgerEntry, StoredWallet};

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let wallets: BTreeSet<_> = tables
        .wallets
        .keys()
        .chain(tables.ledger.keys())
        .copied()
        .collect();
    for wallet in wallets {
        let row = tables.wallets.get(&wallet).copied().unwrap_or_default();
        let entries = tables.ledger.get(&wallet).map(Vec::as_slice).unwrap_or_default();
        check_conservation(wallet, &row, entries, findings);
        check_chain(wallet, entries, findings);
        check_pending(tables, wallet, &row, findings);
        check_orders_exist(tables, entries, findings);
    }
}

fn check_conservation(
    wallet: WalletKey,
    row: &StoredWallet,
    entries: &[LedgerEntry],
    findings: &mut Findings,
) {
    let sum: i64 = entries.iter().map(|entry| entry.movement.amount.minor()).sum();
    findings.check("I1 conservation", row.newest.balance.minor() == sum, || {
        format!("{wallet:?} holds {:?}, its ledger adds up to {sum}", row.newest)
    });
    let newest = entries.last().map_or(WalletState::EMPTY, |entry| entry.receipt);
    findings.check("I1 newest", row.newest == newest, || {
        format!("{wallet:?} {:?}, ledger {newest:?}", row.newest)
    });
    findings.check("I3 no overdraft", row.newest.balance >= Amount::ZERO, || {
        format!("{wallet:?} {row:?}")
    });
}

fn check_chain(wallet: WalletKey, entries: &[LedgerEntry], findings: &mut Findings) {
    let mut before = WalletState::EMPTY;
    for entry in entries {
        let balance = before.balance.checked_add(entry.movement.amount);
        let follows = entry.receipt.sequence == before.sequence + 1 && Some(entry.receipt.balance) == balance;
        findings.check("I2 chain", follows, || {
            format!("{wallet:?}: {entry:?} after {before:?}")
        });
        findings.check("I3 no overdraft", entry.receipt.balance >= Amount::ZERO, || {
            format!("{wallet:?}: {entry:?}")
        });
        before = entry.receipt;
    }
}

fn check_pending(tables: &Tables, wallet: WalletKey, row: &StoredWallet, findings: &mut Findings) {
    let of_wallet =
        |order: &&Order| order.partner_id == wallet.partner_id && order.total.currency == wallet.currency;
    let open = tables
        .orders
        .values()
        .map(|row| &row.order)
        .filter(of_wallet)
        .filter(|order| !order.closed);
    let lines = open.flat_map(|order| &order.lines);
    let due: i64 = lines
        .map(|line| line.unit_price.minor() * i64::from(line.pending()))
        .sum();
    findings.check("I4 pending orders", row.pending_orders.minor() == due, || {
        format!("{wallet:?} {row:?}, its open orders wait for {due}")
    });
    let unpaid = tables.payouts.values().filter(|payout| {
        payout.partner_id == wallet.partner_id
            && payout.money.currency == wallet.currency
            && payout.status == PayoutStatus::Pending
    });
    let due: i64 = unpaid.map(|payout| payout.money.amount.minor()).sum();
    findings.check("I4 pending payouts", row.pending_payouts.minor() == due, || {
        format!("{wallet:?} {row:?}, its payouts wait for {due}")
    });
}

fn check_orders_exist(tables: &Tables, entries: &[LedgerEntry], findings: &mut Findings) {
    for entry in entries {
        let known = entry
            .movement
            .order_id
            .is_none_or(|order_id| tables.orders.contains_key(&order_id));
        findings.check("I4 order and money", known, || format!("no order for {entry:?}"));
    }
}
