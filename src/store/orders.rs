//! Orders as they are read: the row and what it holds, in one snapshot.

use sqlx::PgPool;
use sqlx::types::Json;
use time::{Date, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{ChunkId, OrderId, PartnerId, StockId, VoucherId};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::{Milestone, Order, OrderLine, OrderStatus, PendingReason, Source};
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::voucher::{Allocation, Expiry, Shelved};

use super::PgStore;

/// A row that our own statements could not have written.
#[derive(Debug, thiserror::Error)]
#[error("order {order_id} has an impossible {column}")]
struct ImpossibleRow {
    order_id: OrderId,
    column: &'static str,
}

#[derive(sqlx::FromRow)]
struct OrderRow {
    order_id: Uuid,
    status: String,
    currency: String,
    total: i64,
    refunded: i64,
    fulfilled_from: Option<String>,
    pending_reason: Option<String>,
    closed: bool,
    reference: Option<String>,
    metadata: Option<String>,
    lines: Json<Vec<OrderLine>>,
    timeline: Json<Vec<Milestone>>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    voucher_ids: Vec<Uuid>,
    voucher_lines: Vec<i16>,
    stock_ids: Vec<i64>,
    chunk_ids: Vec<i64>,
    expiries: Vec<Option<Date>>,
}

impl PgStore {
    /// The order of this partner, with its vouchers line by line.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Option<Order>, sqlx::Error> {
        self.run(move |pool| async move { find(&pool, partner_id, order_id).await })
            .await
    }
}

impl PgStore {
    /// How many orders a partner has placed, counted up to `most`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn count_orders(&self, partner_id: PartnerId, most: u32) -> Result<u64, sqlx::Error> {
        let count: i64 = self
            .run(move |pool| async move {
                sqlx::query_scalar(
                    "SELECT count(*) FROM (SELECT FROM orders WHERE partner_id = $1 LIMIT $2) AS o",
                )
                .bind(partner_id.as_uuid())
                .bind(i64::from(most))
                .fetch_one(&pool)
                .await
            })
            .await?;
        Ok(count.cast_unsigned())
    }
}

async fn find(pool: &PgPool, partner_id: PartnerId, order_id: OrderId) -> Result<Option<Order>, sqlx::Error> {
    let row: Option<OrderRow> = sqlx::query_as(
        "SELECT o.*, v.*
           FROM orders AS o
          CROSS JOIN LATERAL (
                SELECT COALESCE(array_agg(h.voucher_id), '{}') AS voucher_ids,
                       COALESCE(array_agg(h.line), '{}') AS voucher_lines,
                       COALESCE(array_agg(h.stock_id), '{}') AS stock_ids,
                       COALESCE(array_agg(h.chunk_id), '{}') AS chunk_ids,
                       COALESCE(array_agg(h.expiry), '{}') AS expiries
                  FROM (
                    SELECT a.voucher_id, a.line, a.stock_id, s.chunk_id, s.expiry
                      FROM allocations AS a
                      JOIN stock AS s ON s.stock_id = a.stock_id
                     WHERE a.partner_id = o.partner_id AND a.order_id = o.order_id
                     ORDER BY a.line, s.expiry NULLS LAST, a.stock_id
                  ) AS h
                ) AS v
          WHERE o.partner_id = $1 AND o.order_id = $2",
    )
    .bind(partner_id.as_uuid())
    .bind(order_id.as_uuid())
    .fetch_optional(pool)
    .await?;
    row.map(|row| row.into_order(partner_id))
        .transpose()
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

impl OrderRow {
    fn into_order(self, partner_id: PartnerId) -> Result<Order, ImpossibleRow> {
        let order_id = OrderId::from_uuid(self.order_id);
        let impossible = |column| ImpossibleRow { order_id, column };
        let status = OrderStatus::from_word(&self.status).ok_or(impossible("status"))?;
        let currency = self.currency.parse().map_err(|_| impossible("currency"))?;
        let vouchers = self.vouchers().ok_or(impossible("line"))?;
        Ok(Order {
            order_id,
            partner_id,
            status,
            total: Amount::from_minor(self.total).of(currency),
            fulfilled_from: self.fulfilled_from.as_deref().and_then(Source::from_word),
            reference: self.reference,
            metadata: self.metadata.map(Into::into),
            lines: self.lines.0,
            vouchers,
            refunded: Amount::from_minor(self.refunded),
            closed: self.closed,
            pending_reason: self.pending_reason.as_deref().and_then(PendingReason::from_word),
            timeline: self.timeline.0,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    fn vouchers(&self) -> Option<Vec<Allocation>> {
        let rows = self
            .voucher_ids
            .iter()
            .zip(&self.voucher_lines)
            .zip(&self.stock_ids)
            .zip(&self.chunk_ids);
        let rows = rows.zip(&self.expiries);
        rows.map(|((((voucher_id, line), stock_id), chunk_id), expiry)| {
            let line = self.lines.0.get(usize::try_from(*line).ok()?)?;
            Some(Allocation {
                voucher_id: VoucherId::from_uuid(*voucher_id),
                sku: Sku {
                    product_id: line.product_id.clone(),
                    denomination: line.denomination,
                },
                voucher: Shelved {
                    expiry: Expiry::from_date(*expiry),
                    stock_id: StockId(*stock_id),
                    chunk_id: ChunkId(*chunk_id),
                },
            })
        })
        .collect()
    }
}
