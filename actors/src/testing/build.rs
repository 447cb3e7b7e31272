//! How a test says what it needs in few words: partners, stock, priced orders, records.
//!
//! Rule: everything is made from its name, so that the same test writes the same bytes every time, and two records of
//! the same name are the same request.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use time::macros::{date, datetime};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::deed::Deed;
use crate::domain::event::EventBundle;
use crate::domain::ids::{OrderId, PartnerId, PayoutId, StockId, TransactionId, VoucherId};
use crate::domain::ledger::{BookedBy, LedgerKind, Movement, PendingShift, WalletKey};
use crate::domain::money::{Amount, Currency};
use crate::domain::order::{Actor, Fulfilment, Order, PendingReason, PricedLine, PricedOrder};
use crate::domain::payout::{Destination, Payout, PayoutDecision, PayoutEnd, PayoutMilestone, PayoutStatus};
use crate::domain::product::{Approval, Route, Sku};
use crate::domain::progress::{Progress, Progressed};
use crate::domain::voucher::{Allocation, Expiry, Shelved};
use crate::journal::{KeyClaim, OrderChange, PayoutChange, Record, Return};

/// When everything in a test happens.
pub const NOW: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);

/// The partner of this number.
#[must_use]
pub const fn partner(number: u64) -> PartnerId {
    PartnerId::from_uuid(Uuid::from_u128(number as u128))
}

/// A product at a face value in minor units.
#[must_use]
pub fn sku(product_id: &str, denomination: i64) -> Sku {
    Sku {
        product_id: product_id.parse().unwrap(),
        denomination: minor(denomination),
    }
}

/// What most tests pay with.
#[must_use]
pub fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// The wallet that most tests pay from.
#[must_use]
pub fn usd_of(partner_id: PartnerId) -> WalletKey {
    WalletKey {
        partner_id,
        currency: usd(),
    }
}

/// So many minor units.
#[must_use]
pub const fn minor(amount: i64) -> Amount {
    Amount::from_minor(amount)
}

/// The day so many days after the first of 2031.
#[must_use]
pub fn day(number: i64) -> Expiry {
    Expiry::on(date!(2031 - 01 - 01) + Duration::days(number))
}

/// The idempotency key of this name.
#[must_use]
pub fn key(name: &str) -> KeyHash {
    KeyHash(uuid("key", name))
}

/// The request of this name.
#[must_use]
pub fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint(Sha256::digest(name).into())
}

/// A 201 with this body.
#[must_use]
pub fn answer(body: &str) -> Answer {
    Answer {
        status: 201,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// The order that the record of this name places, with an id of its time.
#[must_use]
pub fn order_id(name: &str) -> OrderId {
    let (time, name) = (OrderId::first_at(NOW).as_uuid(), uuid("order", name));
    let below_the_time = (1 << 62) - 1;
    OrderId::from_uuid(Uuid::from_u128(
        time.as_u128() | (name.as_u128() & below_the_time),
    ))
}

/// The entry that the record of this name books.
#[must_use]
pub fn transaction_id(name: &str) -> TransactionId {
    TransactionId::from_uuid(uuid("transaction", name))
}

/// An order at list price; each voucher costs its denomination.
#[must_use]
pub fn priced(lines: &[(&Sku, u32)]) -> PricedOrder {
    let total = lines
        .iter()
        .map(|(sku, quantity)| sku.denomination.minor() * i64::from(*quantity))
        .sum();
    PricedOrder {
        lines: lines.iter().map(|(sku, quantity)| line(sku, *quantity)).collect(),
        total: minor(total).of(usd()),
        fulfilment: Fulfilment::Auto,
        reference: Some("PO-17".to_owned()),
        metadata: Some(Arc::from(r#"{"shop":"3"}"#)),
    }
}

fn line(sku: &Sku, quantity: u32) -> PricedLine {
    PricedLine {
        sku: sku.clone(),
        quantity,
        unit_price: sku.denomination,
        route: Route::Vendor,
        min_validity_days: 0,
        approval: Approval::Rule,
    }
}

/// An order that was delivered from the shelf, paid and told.
#[must_use]
pub fn delivered(partner_id: PartnerId, name: &str, basket: &[(&Sku, &[Shelved])]) -> Record {
    let lines: Vec<_> = basket
        .iter()
        .map(|(sku, held)| (*sku, u32::try_from(held.len()).unwrap()))
        .collect();
    let priced = priced(&lines);
    let order = Order::delivered(
        order_id(name),
        partner_id,
        &priced,
        allocations(name, basket),
        NOW,
    );
    accepted(partner_id, name, order, Amount::ZERO)
}

fn allocations(name: &str, basket: &[(&Sku, &[Shelved])]) -> Vec<Allocation> {
    let vouchers = (0..)
        .zip(basket)
        .flat_map(|(line, (sku, held))| held.iter().map(move |voucher| (line, (*sku).clone(), *voucher)));
    let allocate = |(index, (line, sku, voucher)): (usize, (u16, Sku, Shelved))| Allocation {
        voucher_id: VoucherId::from_uuid(uuid("voucher", &format!("{name}/{index}"))),
        line,
        sku,
        voucher,
    };
    vouchers.enumerate().map(allocate).collect()
}

/// An order over this amount that waits for the vendor: a debit that needs no stock.
#[must_use]
pub fn pending(partner_id: PartnerId, name: &str, amount: i64) -> Record {
    let priced = priced(&[(&sku("bought", amount), 1)]);
    let order = Order::pending(order_id(name), partner_id, &priced, PendingReason::Vendor, NOW);
    accepted(partner_id, name, order, minor(amount))
}

pub(super) fn accepted(partner_id: PartnerId, name: &str, order: Order, pending_orders: Amount) -> Record {
    let debit = Movement {
        transaction_id: TransactionId::debit_of(order.order_id),
        currency: order.total.currency,
        kind: LedgerKind::Debit,
        amount: order.total.amount.checked_neg().unwrap(),
        order_id: Some(order.order_id),
        payout_id: None,
        reference: order.reference.clone(),
        booked_by: None,
    };
    let events = Some(EventBundle::accepted(&order));
    let pending = (pending_orders != Amount::ZERO).then_some(PendingShift {
        currency: order.total.currency,
        orders: pending_orders,
        payouts: Amount::ZERO,
    });
    Record {
        order: Some(order),
        movement: Some(debit),
        pending,
        events,
        ..refusal(partner_id, name)
    }
}

/// An order that moves on, from its last event before. The voucher rows that come back have these numbers, in one chunk.
#[must_use]
pub fn progressed(name: &str, since: u32, progress: Progress, numbers: &[StockId]) -> Record {
    let Progressed {
        order,
        issued,
        returned,
        movement,
        pending,
        events,
    } = progress.finish(since);
    let returned = returned.into_iter().zip(numbers);
    let returned = returned.map(|(allocation, stock_id)| Return {
        allocation,
        stock_id: *stock_id,
        chunk_begins: numbers[0],
    });
    let partner_id = order.partner_id;
    let change = OrderChange {
        since,
        issued,
        returned: returned.collect(),
        after: order,
    };
    Record {
        change: Some(change),
        movement,
        pending,
        events: Some(events),
        ..refusal(partner_id, name)
    }
}

/// A payout of this amount that is accepted.
#[must_use]
pub fn payout(wallet: WalletKey, name: &str, amount: i64) -> Record {
    let payout = Payout {
        payout_id: PayoutId::from_uuid(uuid("payout", name)),
        partner_id: wallet.partner_id,
        status: PayoutStatus::Pending,
        money: minor(amount).of(wallet.currency),
        destination: Destination {
            shown: r#"{"type":"bank_account","iban":"••••3000"}"#.into(),
            sealed: Bytes::from_static(b"\x00\xffsealed"),
        },
        reference: Some(name.to_owned()),
        timeline: vec![PayoutMilestone {
            status: PayoutStatus::Pending,
            at: NOW,
            by: Actor::Partner,
            reason: None,
            reference: None,
        }],
        created_at: NOW,
        updated_at: NOW,
    };
    paid_out(
        name,
        PayoutChange::Requested(payout),
        LedgerKind::Payout,
        -amount,
        amount,
    )
}

/// The end of a payout: paid, or back in the wallet.
#[must_use]
pub fn payout_decided(name: &str, payout: &Payout, end: PayoutEnd) -> Record {
    let decision = PayoutDecision {
        end,
        reason: None,
        reference: Some("bank-7".to_owned()),
    };
    let amount = payout.money.amount.minor();
    let back = if end == PayoutEnd::Paid { 0 } else { amount };
    let decided = payout.clone().decided(decision.clone(), NOW);
    let deed = Deed::on_payout(&somebody(), &decision, payout, &decided);
    let decided = PayoutChange::Decided(decided);
    Record {
        deed: Some(deed),
        ..paid_out(name, decided, LedgerKind::PayoutReversal, back, -amount)
    }
}

fn paid_out(name: &str, change: PayoutChange, kind: LedgerKind, amount: i64, pending: i64) -> Record {
    let (PayoutChange::Requested(payout) | PayoutChange::Decided(payout)) = &change;
    let currency = payout.money.currency;
    let movement = Movement {
        transaction_id: transaction_id(name),
        currency,
        kind,
        amount: minor(amount),
        order_id: None,
        payout_id: Some(payout.payout_id),
        reference: payout.reference.clone(),
        booked_by: None,
    };
    Record {
        movement: (amount != 0).then_some(movement),
        pending: Some(PendingShift {
            currency,
            orders: Amount::ZERO,
            payouts: minor(pending),
        }),
        payout: Some(change.clone()),
        ..refusal(payout.partner_id, name)
    }
}

/// An answer that is kept, and nothing else.
#[must_use]
pub fn refusal(partner_id: PartnerId, name: &str) -> Record {
    let claim = KeyClaim {
        key: key(name),
        fingerprint: fingerprint(name),
        answer: answer(&format!("answer to {name}")),
        keep: Keep::Day,
    };
    Record::answering(partner_id, claim)
}

/// Money that an operator adds; its reference is never booked twice.
#[must_use]
pub fn top_up(wallet: WalletKey, name: &str, amount: i64) -> Record {
    let mut record = refusal(wallet.partner_id, name);
    record.claim.keep = Keep::Forever;
    record.movement = Some(credit(wallet, name, minor(amount)));
    record
}

/// The movement of a top-up.
pub(super) fn credit(wallet: WalletKey, name: &str, amount: Amount) -> Movement {
    Movement {
        transaction_id: transaction_id(name),
        currency: wallet.currency,
        kind: LedgerKind::TopUp,
        amount,
        order_id: None,
        payout_id: None,
        reference: Some(name.to_owned()),
        booked_by: Some(somebody()),
    }
}

/// An operator.
#[must_use]
pub fn somebody() -> BookedBy {
    BookedBy {
        operator: "somebody".to_owned(),
        trace_id: None,
    }
}

/// The record under another key, as a client that lost its own would send it.
#[must_use]
pub fn under_key(name: &str, mut record: Record) -> Record {
    record.claim.key = key(name);
    record
}

/// The record with a text that Postgres refuses in any column: a NUL.
#[must_use]
pub fn poisoned(mut record: Record) -> Record {
    if let Some(movement) = &mut record.movement {
        movement.reference = Some("poison\0".to_owned());
    }
    if let Some(order) = &mut record.order {
        order.reference = Some("poison\0".to_owned());
    }
    record
}

fn uuid(kind: &str, name: &str) -> Uuid {
    let digest = Sha256::digest(format!("{kind}/{name}"));
    Uuid::from_slice(&digest[..16]).unwrap()
}
