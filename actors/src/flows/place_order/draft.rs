//! Builds the record of an order decision: order, allocations, debit, events and response.

use std::collections::{HashMap, VecDeque};

use time::OffsetDateTime;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{Response, Retention};
use vouchsafe_domain::ids::{OrderId, TransactionId, VoucherId};
use vouchsafe_domain::ledger::{LedgerKind, Movement, PendingDelta};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{Order, PricedOrder};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Allocation, StockVoucher};

use super::{Decision, OrderResponseEncoder, PlaceOrder};
use crate::flows::idempotent::FlowDecision;
use crate::inventory::StockHold;
use crate::journal::Hold;
use crate::ports::record::{KeyClaim, Record};

/// The inputs of the record that every decision has.
pub(super) struct OrderDraft<'a> {
    pub(super) command: &'a PlaceOrder,
    pub(super) priced: &'a PricedOrder,
    pub(super) at: OffsetDateTime,
}

impl OrderDraft<'_> {
    pub(super) fn to_flow_decision(
        &self,
        decision: Decision,
        encoder: &dyn OrderResponseEncoder,
    ) -> FlowDecision {
        let (order_id, partner_id) = (OrderId::generate_at(self.at), self.command.partner_id);
        match decision {
            Decision::Refuse(refusal) => FlowDecision {
                record: self.response_record(encoder.refused(&refusal)),
                holds: vec![],
                is_refusal: true,
            },
            Decision::Await(wallet_hold, reason) => {
                let order = Order::pending(order_id, partner_id, self.priced, reason, self.at);
                FlowDecision {
                    record: self.order_record(order, self.priced.total.amount, encoder),
                    holds: vec![Box::new(wallet_hold)],
                    is_refusal: false,
                }
            }
            Decision::Deliver(wallet_hold, stock_holds) => {
                let vouchers = allocate(self.priced, &stock_holds);
                let order = Order::delivered(order_id, partner_id, self.priced, vouchers, self.at);
                let mut holds: Vec<Box<dyn Hold>> = vec![Box::new(wallet_hold)];
                holds.extend(
                    stock_holds
                        .into_iter()
                        .map(|hold| Box::new(hold) as Box<dyn Hold>),
                );
                FlowDecision {
                    record: self.order_record(order, Amount::ZERO, encoder),
                    holds,
                    is_refusal: false,
                }
            }
        }
    }

    fn order_record(&self, order: Order, pending: Amount, encoder: &dyn OrderResponseEncoder) -> Record {
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
        let record = self.response_record(encoder.accepted(&order));
        let pending = (pending != Amount::ZERO).then_some(PendingDelta {
            currency: order.total.currency,
            orders: pending,
            payouts: Amount::ZERO,
        });
        Record {
            movement: Some(movement),
            pending_delta: pending,
            events: Some(EventBundle::for_new_order(&order)),
            order: Some(order),
            ..record
        }
    }

    fn response_record(&self, response: Response) -> Record {
        let claim = KeyClaim {
            key: self.command.key,
            fingerprint: self.command.fingerprint,
            response,
            retention: Retention::Day,
        };
        Record::new(self.command.partner_id, claim)
    }
}

/// Allocates the held vouchers to the lines, each with a new public id.
fn allocate(priced: &PricedOrder, stock_holds: &[StockHold]) -> Vec<Allocation> {
    let held = stock_holds
        .iter()
        .map(|hold| (hold.sku(), hold.vouchers().iter().copied().collect()));
    let mut held: HashMap<&Sku, VecDeque<StockVoucher>> = held.collect();
    let mut allocations = Vec::new();
    for (index, line) in (0..).zip(&priced.lines) {
        let vouchers = held
            .get_mut(&line.sku)
            .into_iter()
            .flat_map(|v| v.drain(..line.quantity as usize));
        allocations.extend(
            vouchers.map(|voucher| Allocation::new(VoucherId::generate(), index, line.sku.clone(), voucher)),
        );
    }
    allocations
}
