//! A page of orders: which, in which order, found by which index?
//!
//! Newest first by id, which is by `created_at`: an order's id is made of it.
//!
//! | asked for | found by |
//! |---|---|
//! | anything, a time | the primary key |
//! | `DELIVERED` | the primary key: most orders are |
//! | another status | `orders_by_status` |
//! | a reference | `orders_by_reference` |
//!
//! Every index begins with the partner. Who looks for orders of all partners looks partner by partner: each gives no
//! more than the page has, and the newest of all are the page. Partners are invited one by one; orders are many.

use sqlx::{PgPool, Postgres, QueryBuilder};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::order::{Order, OrderStatus};

use super::{OrderRow, begin, end};
use crate::store::audit::rows;
use crate::store::{Period, PgStore};

/// Which orders are asked for; `None` is any.
#[derive(Debug, Clone, Default)]
pub struct OrderFilter {
    pub order_id: Option<OrderId>,
    pub status: Option<OrderStatus>,
    /// With this reference of the partner's own.
    pub reference: Option<String>,
    /// Accepted in this time.
    pub period: Period,
}

/// Whose orders.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Of(PartnerId),
    Everybodys,
}

impl PgStore {
    /// Up to `limit` orders of a partner, newest first, of those before `before` where it is given.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_orders(
        &self,
        partner_id: PartnerId,
        filter: OrderFilter,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<Order>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, Whose::Of(partner_id), &filter, before, limit).await })
            .await
    }

    /// The same over all partners: for operators alone.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn search_orders(
        &self,
        filter: OrderFilter,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<Order>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, Whose::Everybodys, &filter, before, limit).await })
            .await
    }
}

/// The statement is planned for what is asked for, and its plan is not kept: the index to take depends on the values.
async fn list(
    pool: &PgPool,
    whose: Whose,
    filter: &OrderFilter,
    before: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, sqlx::Error> {
    let mut query = begin();
    query.push("SELECT c.* FROM ");
    match whose {
        Whose::Everybodys => query.push("partners"),
        Whose::Of(partner_id) => query
            .push("(SELECT ")
            .push_bind(partner_id.as_uuid())
            .push(" AS partner_id)"),
    };
    query.push(" AS p CROSS JOIN LATERAL (SELECT * FROM orders AS o WHERE o.partner_id = p.partner_id");
    filter.restrict(&mut query);
    if let Some(before) = before {
        query.push(" AND o.order_id < ").push_bind(before.as_uuid());
    }
    query
        .push(" ORDER BY o.order_id DESC LIMIT ")
        .push_bind(rows(limit));
    query
        .push(") AS c ORDER BY c.order_id DESC LIMIT ")
        .push_bind(rows(limit));
    let found: Vec<OrderRow> = end(&mut query)
        .build_query_as()
        .persistent(false)
        .fetch_all(pool)
        .await?;
    found.into_iter().map(Order::try_from).collect()
}

impl OrderFilter {
    fn restrict(&self, query: &mut QueryBuilder<Postgres>) {
        if let Some(order_id) = self.order_id {
            query.push(" AND o.order_id = ").push_bind(order_id.as_uuid());
        }
        if let Some(from) = self.period.from {
            query
                .push(" AND o.order_id >= ")
                .push_bind(OrderId::first_at(from).as_uuid());
        }
        if let Some(to) = self.period.to {
            query
                .push(" AND o.order_id < ")
                .push_bind(OrderId::first_at(to).as_uuid());
        }
        if let Some(reference) = &self.reference {
            query.push(" AND o.reference = ").push_bind(reference.clone());
        }
        let Some(status) = self.status else { return };
        query.push(" AND o.status = ").push_bind(status.as_str());
        if status != OrderStatus::Delivered {
            // Else the server would not see that the partial index has them.
            query.push(" AND o.status <> 'DELIVERED'");
        }
    }
}
