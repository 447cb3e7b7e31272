//! Batch insert of the floor: one row in each of five tables per order, many orders per statement, no verification.

use sqlx::{Executor, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

/// The statement, which reports print.
pub(super) const BATCH_SQL: &str = include_str!("sql/floor_batch.sql");

/// An order of one voucher, written as five rows.
#[derive(Clone, Debug)]
pub(super) struct FloorOrder {
    pub(super) order_id: Uuid,
    pub(super) transaction_id: Uuid,
    pub(super) voucher_id: Uuid,
    /// Stock id, balance sequence and event number.
    pub(super) number: i64,
    pub(super) total: i64,
    pub(super) lines: String,
    pub(super) event: String,
}

/// Orders of one partner in column arrays.
#[derive(Debug, Default)]
pub(super) struct FloorBatch {
    orders: Vec<Uuid>,
    totals: Vec<i64>,
    lines: Vec<String>,
    numbers: Vec<i64>,
    vouchers: Vec<Uuid>,
    transactions: Vec<Uuid>,
    events: Vec<String>,
}

impl FloorBatch {
    pub(super) fn push(&mut self, order: FloorOrder) {
        self.orders.push(order.order_id);
        self.totals.push(order.total);
        self.lines.push(order.lines);
        self.numbers.push(order.number);
        self.vouchers.push(order.voucher_id);
        self.transactions.push(order.transaction_id);
        self.events.push(order.event);
    }

    /// Writes the batch in one transaction.
    pub(super) async fn write(
        &self,
        connection: &mut PgConnection,
        partner_id: Uuid,
        at: OffsetDateTime,
    ) -> sqlx::Result<()> {
        let statement = sqlx::query(BATCH_SQL)
            .bind(partner_id)
            .bind(at)
            .bind(&self.orders)
            .bind(&self.totals)
            .bind(&self.lines)
            .bind(&self.numbers)
            .bind(&self.vouchers)
            .bind(&self.transactions)
            .bind(&self.events);
        connection.execute(statement).await.map(drop)
    }
}
