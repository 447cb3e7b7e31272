//! Builders of test data: partners, stock, priced orders, records.
//!
//! Ids derive from names, so a test writes the same bytes in every run, and two records with one name are the same request.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use time::macros::{date, datetime};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::domain::audit::AuditEntry;
use crate::domain::event::EventBundle;
use crate::domain::idempotency::{Fingerprint, KeyHash, Response, Retention};
use crate::domain::ids::{OrderId, PartnerId, PayoutId, StockId, TransactionId, VoucherId};
use crate::domain::ledger::{LedgerKind, Movement, OperatorIdentity, PendingDelta, WalletKey};
use crate::domain::money::{Amount, Currency};
use crate::domain::order::{Actor, Fulfilment, Order, PendingReason, PricedLine, PricedOrder};
use crate::domain::payout::{
    Payout, PayoutDecision, PayoutDestination, PayoutMilestone, PayoutOutcome, PayoutStatus,
};
use crate::domain::product::{ApprovalPolicy, Sku, SupplyRoute};
use crate::domain::transition::{OrderTransition, TransitionEffects};
use crate::domain::voucher::{Allocation, Expiry, StockVoucher};
use crate::journal::{KeyClaim, OrderChange, PayoutChange, Record, ReturnedVoucher};

/// Timestamp of everything that a test creates.
pub const NOW: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);

/// Partner id with this number.
#[must_use]
pub const fn partner(number: u64) -> PartnerId {
    PartnerId::from_uuid(Uuid::from_u128(number as u128))
}

/// SKU with a face value in minor units.
#[must_use]
pub fn sku(product_id: &str, denomination: i64) -> Sku {
    Sku {
        product_id: product_id.parse().unwrap(),
        denomination: minor(denomination),
    }
}

#[must_use]
pub fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// A partner's USD wallet.
#[must_use]
pub fn usd_wallet(partner_id: PartnerId) -> WalletKey {
    WalletKey {
        partner_id,
        currency: usd(),
    }
}

/// Amount in minor units.
#[must_use]
pub const fn minor(amount: i64) -> Amount {
    Amount::from_minor(amount)
}

/// Expiry date, in days after 2031-01-01.
#[must_use]
pub fn day(number: i64) -> Expiry {
    Expiry::on(date!(2031 - 01 - 01) + Duration::days(number))
}

/// Idempotency key derived from a name.
#[must_use]
pub fn key(name: &str) -> KeyHash {
    KeyHash(uuid("key", name))
}

/// Request fingerprint derived from a name.
#[must_use]
pub fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint(Sha256::digest(name).into())
}

/// Response with status 201 and this body.
#[must_use]
pub fn response(body: &str) -> Response {
    Response {
        status: 201,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// Order id derived from a record's name, with the time part of [`NOW`].
#[must_use]
pub fn order_id(name: &str) -> OrderId {
    let (time, name) = (OrderId::lower_bound_at(NOW).as_uuid(), uuid("order", name));
    let below_the_time = (1 << 62) - 1;
    OrderId::from_uuid(Uuid::from_u128(
        time.as_u128() | (name.as_u128() & below_the_time),
    ))
}

/// Ledger transaction id derived from a record's name.
#[must_use]
pub fn transaction_id(name: &str) -> TransactionId {
    TransactionId::from_uuid(uuid("transaction", name))
}

/// Priced order in which each voucher costs its denomination.
#[must_use]
pub fn priced_order(lines: &[(&Sku, u32)]) -> PricedOrder {
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
        route: SupplyRoute::Vendor,
        min_validity_days: 0,
        approval: ApprovalPolicy::Rule,
    }
}

/// Record of an order that is delivered from stock: order, allocations, debit, events.
#[must_use]
pub fn delivered_order(partner_id: PartnerId, name: &str, basket: &[(&Sku, &[StockVoucher])]) -> Record {
    let lines: Vec<_> = basket
        .iter()
        .map(|(sku, held)| (*sku, u32::try_from(held.len()).unwrap()))
        .collect();
    let priced = priced_order(&lines);
    let order = Order::delivered(
        order_id(name),
        partner_id,
        &priced,
        allocations(name, basket),
        NOW,
    );
    accepted_order(partner_id, name, order, Amount::ZERO)
}

fn allocations(name: &str, basket: &[(&Sku, &[StockVoucher])]) -> Vec<Allocation> {
    let vouchers = (0..)
        .zip(basket)
        .flat_map(|(line, (sku, held))| held.iter().map(move |voucher| (line, (*sku).clone(), *voucher)));
    let allocate = |(index, (line, sku, voucher)): (usize, (u16, Sku, StockVoucher))| Allocation {
        voucher_id: VoucherId::from_uuid(uuid("voucher", &format!("{name}/{index}"))),
        line,
        sku,
        voucher,
    };
    vouchers.enumerate().map(allocate).collect()
}

/// Record of an order that waits for the vendor: a debit without stock.
#[must_use]
pub fn pending_order(partner_id: PartnerId, name: &str, amount: i64) -> Record {
    let priced = priced_order(&[(&sku("bought", amount), 1)]);
    let order = Order::pending(order_id(name), partner_id, &priced, PendingReason::Vendor, NOW);
    accepted_order(partner_id, name, order, minor(amount))
}

pub(super) fn accepted_order(
    partner_id: PartnerId,
    name: &str,
    order: Order,
    pending_orders: Amount,
) -> Record {
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
    let events = Some(EventBundle::for_new_order(&order));
    let pending_delta = (pending_orders != Amount::ZERO).then_some(PendingDelta {
        currency: order.total.currency,
        orders: pending_orders,
        payouts: Amount::ZERO,
    });
    Record {
        order: Some(order),
        movement: Some(debit),
        pending_delta,
        events,
        ..refusal(partner_id, name)
    }
}

/// Record of a change to an order whose last event is `expected_sequence`. Returned vouchers get the stock
/// ids `numbers`, in one chunk.
#[must_use]
pub fn order_change(
    name: &str,
    expected_sequence: u32,
    progress: OrderTransition,
    numbers: &[StockId],
) -> Record {
    let TransitionEffects {
        order,
        issued,
        returned,
        movement,
        pending_delta,
        events,
    } = progress.finish(expected_sequence);
    let returned = returned.into_iter().zip(numbers);
    let returned = returned.map(|(allocation, stock_id)| ReturnedVoucher {
        allocation,
        stock_id: *stock_id,
        chunk_first_id: numbers[0],
    });
    let partner_id = order.partner_id;
    let change = OrderChange {
        expected_sequence,
        issued,
        returned: returned.collect(),
        after: order,
    };
    Record {
        change: Some(change),
        movement,
        pending_delta,
        events: Some(events),
        ..refusal(partner_id, name)
    }
}

/// Record of a payout request.
#[must_use]
pub fn payout_request(wallet: WalletKey, name: &str, amount: i64) -> Record {
    let payout = Payout {
        payout_id: PayoutId::from_uuid(uuid("payout", name)),
        partner_id: wallet.partner_id,
        status: PayoutStatus::Pending,
        money: minor(amount).of(wallet.currency),
        destination: PayoutDestination {
            masked: r#"{"type":"bank_account","iban":"••••3000"}"#.into(),
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
    payout_record(
        name,
        PayoutChange::Requested(payout),
        LedgerKind::Payout,
        -amount,
        amount,
    )
}

/// Record of an operator's decision on a payout: paid, or credited back to the wallet.
#[must_use]
pub fn payout_decision(name: &str, payout: &Payout, end: PayoutOutcome) -> Record {
    let decision = PayoutDecision {
        outcome: end,
        reason: None,
        reference: Some("bank-7".to_owned()),
    };
    let amount = payout.money.amount.minor();
    let back = if end == PayoutOutcome::Paid { 0 } else { amount };
    let decided = payout.clone().apply_decision(decision.clone(), NOW);
    let audit_entry = AuditEntry::on_payout(&operator(), &decision, payout, &decided);
    let decided = PayoutChange::Decided(decided);
    Record {
        audit_entry: Some(audit_entry),
        ..payout_record(name, decided, LedgerKind::PayoutReversal, back, -amount)
    }
}

fn payout_record(name: &str, change: PayoutChange, kind: LedgerKind, amount: i64, pending: i64) -> Record {
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
        pending_delta: Some(PendingDelta {
            currency,
            orders: Amount::ZERO,
            payouts: minor(pending),
        }),
        payout: Some(change.clone()),
        ..refusal(payout.partner_id, name)
    }
}

/// Record that stores a response and writes nothing else.
#[must_use]
pub fn refusal(partner_id: PartnerId, name: &str) -> Record {
    let claim = KeyClaim {
        key: key(name),
        fingerprint: fingerprint(name),
        response: response(&format!("response to {name}")),
        retention: Retention::Day,
    };
    Record::new(partner_id, claim)
}

/// Record of a top-up; its reference never expires.
#[must_use]
pub fn top_up(wallet: WalletKey, name: &str, amount: i64) -> Record {
    let mut record = refusal(wallet.partner_id, name);
    record.claim.retention = Retention::Forever;
    record.movement = Some(top_up_movement(wallet, name, minor(amount)));
    record
}

pub(super) fn top_up_movement(wallet: WalletKey, name: &str, amount: Amount) -> Movement {
    Movement {
        transaction_id: transaction_id(name),
        currency: wallet.currency,
        kind: LedgerKind::TopUp,
        amount,
        order_id: None,
        payout_id: None,
        reference: Some(name.to_owned()),
        booked_by: Some(operator()),
    }
}

#[must_use]
pub fn operator() -> OperatorIdentity {
    OperatorIdentity {
        operator: "somebody".to_owned(),
        trace_id: None,
    }
}

/// The record under another idempotency key, as a client that lost its own key would send it.
#[must_use]
pub fn with_key(name: &str, mut record: Record) -> Record {
    record.claim.key = key(name);
    record
}

/// The record with a NUL byte, which Postgres rejects in any text column.
#[must_use]
pub fn with_nul_byte(mut record: Record) -> Record {
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
