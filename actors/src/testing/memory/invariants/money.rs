//! Is all money accounted for? (conservation, chain, no overdraft, what is pending)

use std::collections::BTreeSet;

use super::Findings;
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::order::Order;
use crate::domain::payout::PayoutStatus;
use crate::testing::facts::Entry;
use crate::testing::memory::tables::{Tables, WalletRow};

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let wallets: BTreeSet<_> = tables
        .wallets
        .keys()
        .chain(tables.ledger.keys())
        .copied()
        .collect();
    for wallet in wallets {
        let row = tables.wallets.get(&wallet).cloned().unwrap_or_default();
        let entries = tables.ledger.get(&wallet).map(Vec::as_slice).unwrap_or_default();
        conservation(wallet, &row, entries, findings);
        chain(wallet, entries, findings);
        pending(tables, wallet, &row, findings);
        entries_have_orders(tables, entries, findings);
    }
}

fn conservation(wallet: WalletKey, row: &WalletRow, entries: &[Entry], findings: &mut Findings) {
    let sum: i64 = entries.iter().map(|entry| entry.movement.amount.minor()).sum();
    findings.check("I1 conservation", row.newest.balance.minor() == sum, || {
        format!("{wallet:?} holds {:?}, its ledger adds up to {sum}", row.newest)
    });
    let newest = entries.last().map_or(Receipt::EMPTY, |entry| entry.after);
    findings.check("I1 newest", row.newest == newest, || {
        format!("{wallet:?} {:?}, ledger {newest:?}", row.newest)
    });
    findings.check("I3 no overdraft", row.newest.balance >= Amount::ZERO, || {
        format!("{wallet:?} {row:?}")
    });
}

fn chain(wallet: WalletKey, entries: &[Entry], findings: &mut Findings) {
    let mut before = Receipt::EMPTY;
    for entry in entries {
        let balance = before.balance.checked_add(entry.movement.amount);
        let follows = entry.after.sequence == before.sequence + 1 && Some(entry.after.balance) == balance;
        findings.check("I2 chain", follows, || {
            format!("{wallet:?}: {entry:?} after {before:?}")
        });
        findings.check("I3 no overdraft", entry.after.balance >= Amount::ZERO, || {
            format!("{wallet:?}: {entry:?}")
        });
        before = entry.after;
    }
}

fn pending(tables: &Tables, wallet: WalletKey, row: &WalletRow, findings: &mut Findings) {
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

fn entries_have_orders(tables: &Tables, entries: &[Entry], findings: &mut Findings) {
    for entry in entries {
        let known = entry
            .movement
            .order_id
            .is_none_or(|order_id| tables.orders.contains_key(&order_id));
        findings.check("I4 order and money", known, || format!("no order for {entry:?}"));
    }
}
