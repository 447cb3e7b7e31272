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
use crate::domain::event::EventBundle;
use crate::domain::ids::{OrderId, PartnerId, TransactionId, VoucherId};
use crate::domain::ledger::{BookedBy, LedgerKind, Movement, WalletKey};
use crate::domain::money::{Amount, Currency};
use crate::domain::order::{Fulfilment, Order, PendingReason, PricedLine, PricedOrder};
use crate::domain::product::{Approval, Route, Sku};
use crate::domain::voucher::{Allocation, Expiry, Shelved};
use crate::journal::{KeyClaim, Record};

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
    let vouchers = basket
        .iter()
        .flat_map(|(sku, held)| held.iter().map(|voucher| ((*sku).clone(), *voucher)));
    let allocate = |(index, (sku, voucher)): (usize, (Sku, Shelved))| Allocation {
        voucher_id: VoucherId::from_uuid(uuid("voucher", &format!("{name}/{index}"))),
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

fn accepted(partner_id: PartnerId, name: &str, order: Order, pending_orders: Amount) -> Record {
    let debit = Movement {
        transaction_id: TransactionId::debit_of(order.order_id),
        currency: order.total.currency,
        kind: LedgerKind::Debit,
        amount: order.total.amount.checked_neg().unwrap(),
        pending_orders,
        order_id: Some(order.order_id),
        reference: order.reference.clone(),
        booked_by: None,
    };
    let events = Some(EventBundle::accepted(&order));
    Record {
        order: Some(order),
        movement: Some(debit),
        events,
        ..refusal(partner_id, name)
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
    Record {
        partner_id,
        claim,
        order: None,
        movement: None,
        events: None,
    }
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
        pending_orders: Amount::ZERO,
        order_id: None,
        reference: Some(name.to_owned()),
        booked_by: Some(BookedBy {
            operator: "somebody".to_owned(),
            trace_id: None,
        }),
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
