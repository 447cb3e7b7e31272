//! Journal records of the seeded database, as the flows write them.

use vouchsafe_actors::ports::record::{KeyClaim, Record};
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, Retention};
use vouchsafe_domain::ids::{ChunkId, OrderId, StockId, TransactionId, VoucherId};
use vouchsafe_domain::ledger::{LedgerKind, Movement, PendingDelta};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{Actor, Fulfilment, Order, PricedLine, PricedOrder, StoredOrder};
use vouchsafe_domain::product::{ApprovalPolicy, SupplyRoute};
use vouchsafe_domain::transition::{Cause, OrderTransition};
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};
use vouchsafe_simulation::build;
use vouchsafe_store::AuditActor;

use super::Builder;

impl Builder {
    pub(super) fn delivered_record(&self, vouchers: &[(StockId, Expiry)], chunk_id: ChunkId) -> Record {
        let held = vouchers.iter().map(|&(stock_id, expiry)| {
            let stocked = StockVoucher {
                expiry,
                stock_id,
                chunk_id,
            };
            Allocation::new(VoucherId::generate(), 0, self.sku.clone(), stocked)
        });
        let at = SystemClock::new().now();
        let priced = self.priced(u32::try_from(vouchers.len()).unwrap());
        let partner_id = self.partner.partner_id;
        self.order_record(Order::delivered(
            OrderId::generate_at(at),
            partner_id,
            &priced,
            held.collect(),
            at,
        ))
    }

    pub(super) async fn cancellation_record(&self, stored: &StoredOrder) -> Record {
        let at = SystemClock::new().now();
        let mut progress = OrderTransition::new(stored.order.clone(), TransactionId::generate(), at);
        let cause = Cause {
            by: Actor::Operator,
            reason: Some("ordered twice".to_owned()),
        };
        progress.cancel(&cause);
        let numbers = self
            .node
            .allocate_stock_ids(stored.order.vouchers.len())
            .await
            .unwrap();
        let by = build::operator();
        let entry = AuditEntry::on_order(
            &by,
            AuditAction::CancelOrder,
            "ordered twice",
            &stored.order,
            progress.order(),
        );
        Record {
            audit_entry: Some(entry),
            ..build::order_change("cancelled", stored.last_sequence, progress, &numbers)
        }
    }

    pub(super) fn priced(&self, quantity: u32) -> PricedOrder {
        let line = PricedLine {
            sku: self.sku.clone(),
            quantity,
            unit_price: self.sku.denomination,
            route: SupplyRoute::Vendor,
            min_validity_days: 0,
            approval: ApprovalPolicy::Rule,
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

    pub(super) fn top_up_record(&self) -> Record {
        let transaction_id = TransactionId::generate();
        let movement = movement(transaction_id, LedgerKind::TopUp, 100_000, None);
        self.record(
            201,
            transaction_id.to_string(),
            Retention::Forever,
            movement,
            None,
        )
    }

    pub(super) fn order_record(&self, order: Order) -> Record {
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
        let record = self.record(status, body, Retention::Day, movement, Some(order));
        Record {
            pending_delta: (pending != 0).then(|| PendingDelta {
                currency: "USD".parse().unwrap(),
                orders: Amount::from_minor(pending),
                payouts: Amount::ZERO,
            }),
            ..record
        }
    }

    pub(super) fn payout_record(&self) -> Record {
        build::payout_request(build::usd_wallet(self.partner.partner_id), "payout", 700)
    }

    fn record(
        &self,
        status: u16,
        body: String,
        keep: Retention,
        movement: Movement,
        order: Option<Order>,
    ) -> Record {
        let key = KeyHash(movement.transaction_id.as_uuid());
        let claim = KeyClaim {
            key,
            fingerprint: Fingerprint([7; 32]),
            response: Response {
                status,
                body: body.into(),
            },
            retention: keep,
        };
        Record {
            events: order.as_ref().map(EventBundle::for_new_order),
            order,
            movement: Some(movement),
            ..Record::new(self.partner.partner_id, claim)
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
        booked_by: (kind == LedgerKind::TopUp).then(AuditActor::service),
    }
}
