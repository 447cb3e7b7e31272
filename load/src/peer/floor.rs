//! What is the least that an order can cost the database? A row in each of five tables, written many orders at a time by
//! one statement that verifies nothing.

use sqlx::{Executor, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

/// The statement, as reports print it.
pub const BATCH_SQL: &str = include_str!("sql/floor_batch.sql");

/// One order of one voucher, as five rows.
#[derive(Clone, Debug)]
pub struct FloorOrder {
    pub order_id: Uuid,
    pub transaction_id: Uuid,
    pub voucher_id: Uuid,
    /// Row of stock, sequence of the balance and number of the event.
    pub number: i64,
    pub total: i64,
    /// Its lines, as JSON.
    pub lines: String,
    /// What is told of it.
    pub event: String,
}

/// Orders of one partner, column by column.
#[derive(Debug, Default)]
pub struct FloorBatch {
    orders: Vec<Uuid>,
    totals: Vec<i64>,
    lines: Vec<String>,
    numbers: Vec<i64>,
    vouchers: Vec<Uuid>,
    transactions: Vec<Uuid>,
    events: Vec<String>,
}

impl FloorBatch {
    /// Adds an order.
    pub fn push(&mut self, order: FloorOrder) {
        self.orders.push(order.order_id);
        self.totals.push(order.total);
        self.lines.push(order.lines);
        self.numbers.push(order.number);
        self.vouchers.push(order.voucher_id);
        self.transactions.push(order.transaction_id);
        self.events.push(order.event);
    }

    /// Writes all of it, in one transaction.
    ///
    /// # Errors
    /// When the database refuses; then nothing of it is written for certain only if it says so.
    pub async fn write(
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
