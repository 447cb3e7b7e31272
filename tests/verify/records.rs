//! The records of what happens in that database, as flows would write them.

use vouchsafe::store::By;
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use vouchsafe_actors::domain::clock::{Clock as _, SystemClock};
use vouchsafe_actors::domain::deed::{Action, Deed};
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ids::{ChunkId, OrderId, StockId, TransactionId, VoucherId};
use vouchsafe_actors::domain::ledger::{LedgerKind, Movement, PendingShift};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::{Actor, Fulfilment, Order, PricedLine, PricedOrder, StoredOrder};
use vouchsafe_actors::domain::product::{Approval, Route};
use vouchsafe_actors::domain::progress::{Cause, Progress};
use vouchsafe_actors::domain::voucher::{Allocation, Expiry, Shelved};
use vouchsafe_actors::journal::{KeyClaim, Record};
use vouchsafe_actors::store::Store as _;
use vouchsafe_actors::testing::build;

use super::Builder;

impl Builder {
    pub(super) fn delivered_with(&self, vouchers: &[(StockId, Expiry)], chunk_id: ChunkId) -> Record {
        let held = vouchers.iter().map(|&(stock_id, expiry)| Allocation {
            voucher_id: VoucherId::generate(),
            line: 0,
            sku: self.sku.clone(),
            voucher: Shelved {
                expiry,
                stock_id,
                chunk_id,
            },
        });
        let at = SystemClock::new().now();
        let priced = self.priced(u32::try_from(vouchers.len()).unwrap());
        let partner_id = self.partner.partner_id;
        self.order(Order::delivered(
            OrderId::at(at),
            partner_id,
            &priced,
            held.collect(),
            at,
        ))
    }

    pub(super) async fn cancel(&self, stored: &StoredOrder) -> Record {
        let at = SystemClock::new().now();
        let mut progress = Progress::of(stored.order.clone(), TransactionId::generate(), at);
        let cause = Cause {
            by: Actor::Operator,
            reason: Some("ordered twice".to_owned()),
        };
        progress.cancel(&cause);
        let numbers = self
            .store
            .number_stock(stored.order.vouchers.len())
            .await
            .unwrap();
        let by = build::somebody();
        let deed = Deed::on_order(
            &by,
            Action::CancelOrder,
            "ordered twice",
            &stored.order,
            progress.order(),
        );
        Record {
            deed: Some(deed),
            ..build::progressed("cancelled", stored.last_sequence, progress, &numbers)
        }
    }

    pub(super) fn priced(&self, quantity: u32) -> PricedOrder {
        let line = PricedLine {
            sku: self.sku.clone(),
            quantity,
            unit_price: self.sku.denomination,
            route: Route::Vendor,
            min_validity_days: 0,
            approval: Approval::Rule,
        };
        PricedOrder {
            total: self
                .sku
                .denomination
                .checked_mul(quantity)
                .unwrap()
                .of("USD".parse().unwrap()),
            lines: vec![line],
            fulfilment: Fulfilment::Auto,
            reference: None,
            metadata: None,
        }
    }

    pub(super) fn booking(&self) -> Record {
        let transaction_id = TransactionId::generate();
        let movement = movement(transaction_id, LedgerKind::TopUp, 100_000, None);
        self.record(201, transaction_id.to_string(), Keep::Forever, movement, None)
    }

    pub(super) fn order(&self, order: Order) -> Record {
        let total = order.total.amount.minor();
        let pending = if order.vouchers.is_empty() { total } else { 0 };
        let movement = movement(
            TransactionId::debit_of(order.order_id),
            LedgerKind::Debit,
            -total,
            Some(order.order_id),
        );
        let body = format!(r#"{{"order_id":"{}"}}"#, order.order_id);
        let status = if pending == 0 { 201 } else { 202 };
        let record = self.record(status, body, Keep::Day, movement, Some(order));
        Record {
            pending: (pending != 0).then(|| PendingShift {
                currency: "USD".parse().unwrap(),
                orders: Amount::from_minor(pending),
                payouts: Amount::ZERO,
            }),
            ..record
        }
    }

    /// A payout that waits to be paid.
    pub(super) fn payout(&self) -> Record {
        build::payout(build::usd_of(self.partner.partner_id), "payout", 700)
    }

    fn record(
        &self,
        status: u16,
        body: String,
        keep: Keep,
        movement: Movement,
        order: Option<Order>,
    ) -> Record {
        let key = KeyHash(movement.transaction_id.as_uuid());
        let claim = KeyClaim {
            key,
            fingerprint: Fingerprint([7; 32]),
            answer: Answer {
                status,
                body: body.into(),
            },
            keep,
        };
        Record {
            events: order.as_ref().map(EventBundle::accepted),
            order,
            movement: Some(movement),
            ..Record::answering(self.partner.partner_id, claim)
        }
    }
}

fn movement(
    transaction_id: TransactionId,
    kind: LedgerKind,
    amount: i64,
    order_id: Option<OrderId>,
) -> Movement {
    Movement {
        transaction_id,
        currency: "USD".parse().unwrap(),
        kind,
        amount: Amount::from_minor(amount),
        order_id,
        payout_id: None,
        reference: None,
        booked_by: (kind == LedgerKind::TopUp).then(|| By::service().into()),
    }
}
