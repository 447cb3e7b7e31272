//! Order lists: keyset pagination, newest first. Order ids begin with `created_at`, so id order is time order.
//!
//! | filter | index |
//! |---|---|
//! | none, period | primary key |
//! | status `DELIVERED` | primary key, since most orders are delivered |
//! | another status, pending reason | `orders_by_status` |
//! | reference | `orders_by_reference` |
//! | voucher | `allocations_by_voucher`, then the primary key |
//!
//! Each index begins with the partner. A list over all partners reads up to one page per partner and keeps the newest orders:
//! there are few partners and many orders.

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
    /// Lists up to `limit` orders older than `before`, newest first: those of all partners, or of the one in the search.
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
}

/// Not prepared persistently: the best index depends on the filter values.
async fn list(
    pool: &PgPool,
    search: &OrderSearch,
    before: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, sqlx::Error> {
    let mut query = start_order_query();
    query.push("SELECT c.* FROM ");
    match search.partner_id {
        None => query.push("partners"),
        Some(partner_id) => query
            .push("(SELECT ")
            .push_bind(partner_id)
            .push(" AS partner_id)"),
    };
    query.push(" AS p CROSS JOIN LATERAL (SELECT * FROM orders AS o WHERE o.partner_id = p.partner_id");
    restrict(&mut query, search);
    if let Some(before) = before {
        query.push(" AND o.order_id < ").push_bind(before);
    }
    query
        .push(" ORDER BY o.order_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    query
        .push(") AS c ORDER BY c.order_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    let found: Vec<OrderRow> = finish_order_query(&mut query)
        .build_query_as()
        .persistent(false)
        .fetch_all(pool)
        .await?;
    found.into_iter().map(Order::try_from).collect()
}

fn restrict(query: &mut QueryBuilder<Postgres>, search: &OrderSearch) {
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
    if let Some(status) = filter.status {
        query.push(" AND o.status = ").push_bind(status.into_str());
    }
    // A delivered order waits for nothing. Matches the predicate of the partial index, or the planner would not use it.
    if pending_reason.is_some()
        || filter
            .status
            .is_some_and(|status| status != OrderStatus::Delivered)
    {
        query.push(" AND o.status <> 'DELIVERED'");
    }
}
