//! Builders of records. Two records with one name are the same request.

use uuid::Uuid;
use vouchsafe_actors::flows::TopUp;
use vouchsafe_actors::ports::record::{KeyClaim, OrderChange, PayoutChange, Record, ReturnedVoucher};
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::event::{EventBundle, EventStep};
pub use vouchsafe_domain::fixtures::*;
use vouchsafe_domain::idempotency::Retention;
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId, TransactionId, VoucherId};
use vouchsafe_domain::ledger::{LedgerKind, Movement, PendingDelta, WalletKey};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{Order, OrderStatus, PendingReason};
use vouchsafe_domain::payout::{Payout, PayoutDecision, PayoutOutcome};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::transition::OrderTransition;
use vouchsafe_domain::voucher::{Allocation, StockVoucher};

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
    let allocate = |(index, (line, sku, voucher)): (usize, (u16, Sku, StockVoucher))| {
        let voucher_id = VoucherId::from_uuid(uuid("voucher", &format!("{name}/{index}")));
        Allocation::new(voucher_id, line, sku, voucher)
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
    let effects = progress.finish(expected_sequence);
    let returned = effects.returned.into_iter().zip(numbers);
    let returned = returned.map(|(allocation, stock_id)| ReturnedVoucher {
        allocation,
        stock_id: *stock_id,
        chunk_first_id: numbers[0],
    });
    let partner_id = effects.order.partner_id;
    let change = OrderChange {
        expected_sequence,
        issued: effects.issued,
        returned: returned.collect(),
        after: effects.order,
    };
    Record {
        change: Some(change),
        movement: effects.movement,
        pending_delta: effects.pending_delta,
        events: Some(effects.events),
        ..refusal(partner_id, name)
    }
}

/// Record of a payout request.
#[must_use]
pub fn payout_request(wallet: WalletKey, name: &str, amount: i64) -> Record {
    let payout = payout(wallet, name, amount);
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

/// Command of a top-up, or of an adjustment if the amount is negative.
#[must_use]
pub fn top_up_command(partner_id: PartnerId, reference: &str, amount: i64) -> TopUp {
    TopUp {
        partner_id,
        money: minor(amount).of(usd()),
        kind: if amount < 0 {
            LedgerKind::Adjustment
        } else {
            LedgerKind::TopUp
        },
        reference: reference.to_owned(),
        key: key(&format!("{partner_id}/books/{reference}")),
        fingerprint: fingerprint(&format!("{partner_id}/{reference}/{amount}")),
        operator: operator(),
    }
}

/// Order id with this number, for events without an order row.
#[must_use]
pub const fn numbered_order_id(order: u32) -> OrderId {
    OrderId::from_uuid(Uuid::from_u128(order as u128))
}

/// Bundle with one event of an order: `Created` if it is the first, `Processing` otherwise.
#[must_use]
pub fn event_bundle(order: u32, first_sequence: u32) -> EventBundle {
    let step = if first_sequence == 1 {
        EventStep::Created
    } else {
        EventStep::Processing
    };
    EventBundle {
        order_id: numbered_order_id(order),
        first_sequence,
        steps: vec![step],
        status: OrderStatus::Pending,
        total: minor(100),
        currency: usd(),
        fulfilled_from: None,
        pending_reason: None,
        reference: None,
        metadata: None,
        lines: Vec::new(),
        vouchers: Vec::new(),
    }
}
