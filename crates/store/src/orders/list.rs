//! Order lists: keyset pagination, newest first. Order ids begin with `created_at`, so id order is time
//! order.
//!
//! | filter | index |
//! |---|---|
//! | none, period | primary key |
//! | status `DELIVERED`, closed | primary key, since most orders are delivered and closed |
//! | another status, pending reason | `orders_by_status`; several are read one after the other |
//! | not closed | `orders_open_by_id` |
//! | reference | `orders_by_reference` |
//! | updated | primary key for orders placed since then, `orders_changed` for older ones: at most those that changed in a week |
//! | metadata | none: at most the orders of a day, on the primary key |
//! | voucher | `allocations_by_voucher`, then the primary key |
//!
//! Each index begins with the partner. A list over all partners reads up to one page per partner and keeps
//! the newest orders: there are few partners and many orders.

use sqlx::{PgPool, Postgres, QueryBuilder};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::filter::OrderSearch;
use vouchsafe_domain::order::{Order, OrderStatus};

use super::{OrderRow, finish_order_query, start_order_query};
use crate::orders::Orders;

impl Orders {
    /// Lists up to `limit` orders older than `before`, newest first: those of all partners, or of the one in
    /// the search.
    #[boxed]
    pub async fn search(
        &self,
        search: OrderSearch,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<Order>, StoreError> {
        self.0
            .run(move |pool| async move { list(&pool, &search, before, limit).await })
            .await
    }

    /// Counts the orders of a search up to `limit`.
    #[boxed]
    pub async fn count(&self, search: OrderSearch, limit: usize) -> Result<usize, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut query = QueryBuilder::new("SELECT count(*) FROM (SELECT");
                push_found(&mut query, &search, None, limit);
                query.push(" LIMIT ").push_bind(to_bigint(limit)).push(") AS c");
                let count: i64 = query
                    .build_query_scalar()
                    .persistent(false)
                    .fetch_one(&pool)
                    .await?;
                Ok(usize::try_from(count).unwrap_or_default())
            })
            .await
    }
}

/// Not prepared persistently: the best index depends on the filter values.
async fn list(
    pool: &PgPool,
    search: &OrderSearch,
    before: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, sqlx::Error> {
    let mut query = start_order_query();
    query.push("SELECT c.*");
    push_found(&mut query, search, before, limit);
    query
        .push(" ORDER BY c.order_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    let found: Vec<OrderRow> = finish_order_query(&mut query)
        .build_query_as()
        .persistent(false)
        .fetch_all(pool)
        .await?;
    found.into_iter().map(Order::try_from).collect()
}

/// The orders `c` of a search, up to `limit` per partner.
fn push_found(
    query: &mut QueryBuilder<Postgres>,
    search: &OrderSearch,
    before: Option<OrderId>,
    limit: usize,
) {
    query.push(" FROM ");
    match search.partner_id {
        None => query.push("partners"),
        Some(partner_id) => query
            .push("(SELECT ")
            .push_bind(partner_id)
            .push(" AS partner_id)"),
    };
    query.push(" AS p CROSS JOIN LATERAL (");
    for (index, part) in parts(search).into_iter().enumerate() {
        if index > 0 {
            query.push(" UNION ALL ");
        }
        query.push("(SELECT * FROM orders AS o WHERE o.partner_id = p.partner_id");
        restrict(query, search, part);
        if let Some(before) = before {
            query.push(" AND o.order_id < ").push_bind(before);
        }
        query
            .push(" ORDER BY o.order_id DESC LIMIT ")
            .push_bind(to_bigint(limit))
            .push(")");
    }
    query.push(") AS c");
}

/// A part of a list that one index carries.
#[derive(Clone, Copy)]
struct Part {
    status: Option<OrderStatus>,
    /// Whether the orders were placed since `updated_from`.
    is_placed_since: Option<bool>,
}

fn parts(search: &OrderSearch) -> Vec<Part> {
    let statuses: Vec<Option<OrderStatus>> = match &search.filter.status {
        None => vec![None],
        Some(statuses) => statuses.iter().copied().map(Some).collect(),
    };
    let times: &[Option<bool>] = match search.filter.updated_from {
        None => &[None],
        Some(_) => &[Some(true), Some(false)],
    };
    let parts = statuses.into_iter().flat_map(|status| {
        times.iter().map(move |is_placed_since| Part {
            status,
            is_placed_since: *is_placed_since,
        })
    });
    parts.collect()
}

fn restrict(query: &mut QueryBuilder<Postgres>, search: &OrderSearch, part: Part) {
    let OrderSearch {
        partner_id: _,
        order_id,
        voucher_id,
        pending_reason,
        filter,
    } = search;
    if let Some(order_id) = order_id {
        query.push(" AND o.order_id = ").push_bind(order_id);
    }
    if let Some(voucher_id) = voucher_id {
        query
            .push(
                " AND o.order_id = ANY (ARRAY(SELECT a.order_id FROM allocations AS a WHERE a.voucher_id = ",
            )
            .push_bind(voucher_id)
            .push("))");
    }
    if let Some(from) = filter.period.from {
        query
            .push(" AND o.order_id >= ")
            .push_bind(OrderId::lower_bound_at(from));
    }
    if let Some(to) = filter.period.to {
        query
            .push(" AND o.order_id < ")
            .push_bind(OrderId::lower_bound_at(to));
    }
    if let Some(reference) = &filter.reference {
        query.push(" AND o.reference = ").push_bind(reference.clone());
    }
    if let Some(reason) = pending_reason {
        query
            .push(" AND o.pending_reason = ")
            .push_bind(reason.into_str());
    }
    if let Some(status) = part.status {
        query.push(" AND o.status = ").push_bind(status.into_str());
    }
    match filter.closed {
        None => {}
        Some(true) => drop(query.push(" AND o.closed")),
        Some(false) => drop(query.push(" AND NOT o.closed")),
    }
    if let (Some(from), Some(is_placed_since)) = (filter.updated_from, part.is_placed_since) {
        // Matches the predicate of the partial index.
        let placed = match is_placed_since {
            true => " AND o.order_id >= ",
            false => " AND o.updated_at > o.created_at AND o.order_id < ",
        };
        query.push(placed).push_bind(OrderId::lower_bound_at(from));
        query.push(" AND o.updated_at >= ").push_bind(from);
    }
    if let Some(entry) = &filter.metadata {
        query
            .push(" AND o.metadata::json ->> ")
            .push_bind(entry.key.clone())
            .push(" = ")
            .push_bind(entry.value.clone());
    }
    // A delivered order waits for nothing. Matches the predicate of the partial index, or the planner would
    // not use it.
    if pending_reason.is_some() || part.status.is_some_and(|status| status != OrderStatus::Delivered) {
        query.push(" AND o.status <> 'DELIVERED'");
    }
}
