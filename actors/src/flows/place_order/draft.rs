//! From a decision to its record: the order, what it holds, what it costs, what is told, and what is answered.

use std::collections::{HashMap, VecDeque};

use time::OffsetDateTime;

use super::{Decision, PlaceOrder, Wording};
use crate::domain::answer::{Answer, Keep};
use crate::domain::event::EventBundle;
use crate::domain::ids::{OrderId, TransactionId, VoucherId};
use crate::domain::ledger::{LedgerKind, Movement, PendingShift};
use crate::domain::money::Amount;
use crate::domain::order::{Order, PricedOrder};
use crate::domain::product::Sku;
use crate::domain::voucher::{Allocation, Shelved};
use crate::flows::keyed::Decided;
use crate::inventory::StockHold;
use crate::journal::{Hold, KeyClaim, Record};

/// What the record is made of, whatever was decided.
pub(super) struct Draft<'a> {
    pub(super) command: &'a PlaceOrder,
    pub(super) priced: &'a PricedOrder,
    pub(super) at: OffsetDateTime,
}

impl Draft<'_> {
    pub(super) fn decided(&self, decision: Decision, wording: &dyn Wording) -> Decided {
        let (order_id, partner_id) = (OrderId::at(self.at), self.command.partner_id);
        match decision {
            Decision::Refuse(refusal) => Decided {
                record: self.kept(wording.refused(&refusal)),
                holds: vec![],
                refuses: true,
            },
            Decision::Await(money, reason) => {
                let order = Order::pending(order_id, partner_id, self.priced, reason, self.at);
                Decided {
                    record: self.order(order, self.priced.total.amount, wording),
                    holds: vec![Box::new(money)],
                    refuses: false,
                }
            }
            Decision::Deliver(money, stock) => {
                let vouchers = allot(self.priced, &stock);
                let order = Order::delivered(order_id, partner_id, self.priced, vouchers, self.at);
                let mut holds: Vec<Box<dyn Hold>> = vec![Box::new(money)];
                holds.extend(stock.into_iter().map(|hold| Box::new(hold) as Box<dyn Hold>));
                Decided {
                    record: self.order(order, Amount::ZERO, wording),
                    holds,
                    refuses: false,
                }
            }
        }
    }

    fn order(&self, order: Order, pending: Amount, wording: &dyn Wording) -> Record {
        let movement = Movement {
            transaction_id: TransactionId::debit_of(order.order_id),
            currency: order.total.currency,
            kind: LedgerKind::Debit,
            amount: Amount::from_minor(-order.total.amount.minor()),
            order_id: Some(order.order_id),
            payout_id: None,
            reference: order.reference.clone(),
            booked_by: None,
        };
        let kept = self.kept(wording.accepted(&order));
        let pending = (pending != Amount::ZERO).then_some(PendingShift {
            currency: order.total.currency,
            orders: pending,
            payouts: Amount::ZERO,
        });
        Record {
            movement: Some(movement),
            pending,
            events: Some(EventBundle::accepted(&order)),
            order: Some(order),
            ..kept
        }
    }

    fn kept(&self, answer: Answer) -> Record {
        let claim = KeyClaim {
            key: self.command.key,
            fingerprint: self.command.fingerprint,
            answer,
            keep: Keep::Day,
        };
        Record::answering(self.command.partner_id, claim)
    }
}

/// Gives each line its vouchers, each with a public id of its own.
fn allot(priced: &PricedOrder, stock: &[StockHold]) -> Vec<Allocation> {
    let held = stock
        .iter()
        .map(|hold| (hold.sku(), hold.vouchers().iter().copied().collect()));
    let mut held: HashMap<&Sku, VecDeque<Shelved>> = held.collect();
    let mut allotted = Vec::new();
    for (number, line) in (0..).zip(&priced.lines) {
        let vouchers = held
            .get_mut(&line.sku)
            .into_iter()
            .flat_map(|v| v.drain(..line.quantity as usize));
        allotted.extend(vouchers.map(|voucher| Allocation {
            voucher_id: VoucherId::generate(),
            line: number,
            sku: line.sku.clone(),
            voucher,
        }));
    }
    allotted
}
