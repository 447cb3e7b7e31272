//! Order reads: the order row and its vouchers in one statement. Reads of one, of several and of filtered
//! orders share its text, so it is built at run time.

mod events;
mod list;

use sqlx::types::Json;
use sqlx::{PgPool, Postgres, QueryBuilder};
use time::{Date, OffsetDateTime};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, StockId, VoucherId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::order::trace::OrderTrace;
use vouchsafe_domain::order::{
    FulfilmentSource, Milestone, Order, OrderLine, OrderStatus, PendingReason, StoredOrder,
};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};

use vouchsafe_database::batcher::{BatchOp, BatchResponse, request_index};
use vouchsafe_database::database::Database;

#[derive(Debug, thiserror::Error)]
#[error("order {order_id} has an invalid {column}")]
struct InvalidRow {
    order_id: OrderId,
    column: &'static str,
}

#[derive(sqlx::FromRow)]
struct OrderRow {
    partner_id: PartnerId,
    order_id: OrderId,
    status: OrderStatus,
    currency: Currency,
    total: Amount,
    refunded: Amount,
    fulfilled_from: Option<FulfilmentSource>,
    pending_reason: Option<PendingReason>,
    closed: bool,
    reference: Option<String>,
    metadata: Option<String>,
    lines: String,
    /// Null until the first change of the order after its placement.
    timeline: Option<Json<Vec<Milestone>>>,
    last_sequence: i32,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    trace: Option<Vec<u8>>,
    voucher_ids: Vec<VoucherId>,
    first_retrieved_at: Vec<Option<OffsetDateTime>>,
    voucher_lines: Vec<i16>,
    stock_ids: Vec<StockId>,
    chunk_ids: Vec<ChunkId>,
    expiries: Vec<Option<Date>>,
    /// Whether the voucher went back to stock.
    returned: Vec<bool>,
}

#[derive(Debug, Clone)]
pub(super) struct ReadOrdersOp;

impl BatchOp for ReadOrdersOp {
    type Request = (PartnerId, OrderId);
    /// `None` if this partner has no such order.
    type Response = Option<StoredOrder>;

    /// An order may have 1,000 vouchers.
    const MAX_BATCH: usize = 16;

    async fn execute_batch(
        self,
        pool: PgPool,
        keys: Vec<(PartnerId, OrderId)>,
    ) -> Result<BatchResponse<Option<StoredOrder>>, sqlx::Error> {
        let rows = find_rows(&pool, &keys).await?;
        Ok(rows
            .into_iter()
            .map(|row| Some(row.map(StoredOrder::try_from).transpose()))
            .collect())
    }

    async fn execute_one(
        self,
        pool: PgPool,
        keys: (PartnerId, OrderId),
    ) -> Result<Option<StoredOrder>, sqlx::Error> {
        let row = find_row(&pool, keys).await?;
        row.map(StoredOrder::try_from).transpose()
    }
}

async fn find_row(
    pool: &PgPool,
    (partner_id, order_id): (PartnerId, OrderId),
) -> Result<Option<OrderRow>, sqlx::Error> {
    let mut query = start_order_query();
    query
        .push("SELECT * FROM orders WHERE partner_id = ")
        .push_bind(partner_id);
    query.push(" AND order_id = ").push_bind(order_id);
    finish_order_query(&mut query)
        .build_query_as()
        .fetch_optional(pool)
        .await
}

/// Finds several orders in one statement, in request order.
async fn find_rows(
    pool: &PgPool,
    keys: &[(PartnerId, OrderId)],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    let (partners, orders): (Vec<PartnerId>, Vec<OrderId>) = keys.iter().copied().unzip();
    let mut query = start_order_query();
    query
        .push("SELECT a.position::integer, o.* FROM unnest(")
        .push_bind(partners)
        .push("::uuid[], ")
        .push_bind(orders);
    // LIMIT 1 forces one index lookup per order, whatever the planner estimates.
    query.push(
        "::uuid[]) WITH ORDINALITY AS a (partner_id, order_id, position)
          CROSS JOIN LATERAL (SELECT *
                                FROM orders AS o
                               WHERE o.partner_id = a.partner_id AND o.order_id = a.order_id
                               LIMIT 1) AS o",
    );
    let found: Vec<IndexedOrderRow> = finish_order_query(&mut query)
        .build_query_as()
        .fetch_all(pool)
        .await?;
    let mut rows: Vec<_> = keys.iter().map(|_| None).collect();
    for found in found {
        rows[request_index(found.position)?] = Some(found.row);
    }
    Ok(rows)
}

#[derive(sqlx::FromRow)]
struct IndexedOrderRow {
    position: i32,
    #[sqlx(flatten)]
    row: OrderRow,
}

/// Orders of the partners, with their vouchers.
#[derive(Debug, Clone)]
pub struct Orders(pub(super) Database);

impl Orders {
    /// Finds the status of an order of this partner, and whether it is closed.
    #[boxed]
    pub async fn find_status(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Option<(OrderStatus, bool)>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT status AS "status: OrderStatus", closed FROM orders WHERE partner_id = $1 AND order_id = $2"#,
            partner_id as _,
            order_id as _,
        );
        self.0
            .fetch_optional(statement.map(|row| (row.status, row.closed)))
            .await
    }
}

/// Counts the orders of a partner, up to `limit`.
pub(super) async fn count(pool: &PgPool, partner_id: PartnerId, limit: u32) -> Result<u64, sqlx::Error> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (SELECT FROM orders WHERE partner_id = $1 LIMIT $2) AS o"#,
        partner_id as _,
        i64::from(limit),
    );
    Ok(count.fetch_one(pool).await?.cast_unsigned())
}

/// Starts a statement that reads orders with their vouchers; the caller adds the query of the order rows. Not
/// checked at compile time: the caller determines the text.
fn start_order_query() -> QueryBuilder<Postgres> {
    QueryBuilder::new("WITH o AS (")
}

/// Completes the statement.
fn finish_order_query(query: &mut QueryBuilder<Postgres>) -> &mut QueryBuilder<Postgres> {
    query.push(
        ")
         SELECT o.*, v.*
           FROM o
          CROSS JOIN LATERAL (
                SELECT COALESCE(array_agg(h.voucher_id), '{}') AS voucher_ids,
                       COALESCE(array_agg(h.first_retrieved_at), '{}') AS first_retrieved_at,
                       COALESCE(array_agg(h.line), '{}') AS voucher_lines,
                       COALESCE(array_agg(h.stock_id), '{}') AS stock_ids,
                       COALESCE(array_agg(h.chunk_id), '{}') AS chunk_ids,
                       COALESCE(array_agg(h.expiry), '{}') AS expiries,
                       COALESCE(array_agg(h.returned), '{}') AS returned
                  FROM (
                    SELECT a.voucher_id, a.first_retrieved_at, a.line, a.stock_id, s.chunk_id, s.expiry, a.returned_at IS NOT NULL AS returned
                      FROM allocations AS a
                      JOIN stock AS s ON s.stock_id = a.stock_id
                     WHERE a.partner_id = o.partner_id AND a.order_id = o.order_id
                     ORDER BY a.line, s.expiry NULLS LAST, a.stock_id
                  ) AS h
                ) AS v
          ORDER BY o.order_id DESC",
    )
}

fn invalid(order_id: OrderId, column: &'static str) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(InvalidRow { order_id, column }))
}

impl TryFrom<OrderRow> for StoredOrder {
    type Error = sqlx::Error;

    fn try_from(row: OrderRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            last_sequence: row.last_sequence.cast_unsigned(),
            order: row.try_into()?,
        })
    }
}

impl TryFrom<OrderRow> for Order {
    type Error = sqlx::Error;

    fn try_from(row: OrderRow) -> Result<Self, sqlx::Error> {
        let order_id = row.order_id;
        let status = row.status;
        let lines: Vec<OrderLine> =
            serde_json::from_str(&row.lines).map_err(|_| invalid(order_id, "line"))?;
        let allocations = row.allocations(&lines).ok_or_else(|| invalid(order_id, "line"))?;
        let trace = row.trace();
        let is_returned = row.returned.iter();
        let (returned, vouchers): (Vec<_>, Vec<_>) = allocations
            .into_iter()
            .zip(is_returned)
            .partition(|(_, returned)| **returned);
        let without_mark =
            |marked: Vec<(Allocation, &bool)>| marked.into_iter().map(|(allocation, _)| allocation).collect();
        let timeline = match row.timeline {
            Some(Json(timeline)) => timeline,
            None => vec![Milestone::placed(status, row.created_at)],
        };
        Ok(Self {
            order_id,
            partner_id: row.partner_id,
            status,
            total: row.total.of(row.currency),
            fulfilled_from: row.fulfilled_from,
            reference: row.reference,
            metadata: row.metadata.map(Into::into),
            lines,
            vouchers: without_mark(vouchers),
            returned: without_mark(returned),
            refunded: row.refunded,
            closed: row.closed,
            pending_reason: row.pending_reason,
            timeline,
            created_at: row.created_at,
            updated_at: row.updated_at,
            trace,
        })
    }
}

impl OrderRow {
    fn trace(&self) -> Option<OrderTrace> {
        OrderTrace::from_bytes(self.trace.as_deref()?)
    }

    fn allocations(&self, lines: &[OrderLine]) -> Option<Vec<Allocation>> {
        let rows = self
            .voucher_ids
            .iter()
            .zip(&self.voucher_lines)
            .zip(&self.stock_ids)
            .zip(&self.chunk_ids);
        let rows = rows.zip(self.expiries.iter().zip(&self.first_retrieved_at));
        rows.map(
            |((((voucher_id, line), stock_id), chunk_id), (expiry, first_retrieved_at))| {
                let number = u16::try_from(*line).ok()?;
                let line = lines.get(usize::from(number))?;
                Some(Allocation {
                    voucher_id: *voucher_id,
                    line: number,
                    sku: Sku {
                        product_id: line.product_id.clone(),
                        denomination: line.denomination,
                    },
                    voucher: StockVoucher {
                        expiry: Expiry::from_date(*expiry),
                        stock_id: *stock_id,
                        chunk_id: *chunk_id,
                    },
                    first_retrieved_at: *first_retrieved_at,
                })
            },
        )
        .collect()
    }
}
