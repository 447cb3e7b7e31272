//! Traffic of all nodes by minute, for 30 days.

use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;

/// What a node has counted in a period that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodCounts {
    /// Usually a minute.
    pub period: Duration,
    /// Requests of partners.
    pub requests: u32,
    /// Of these, answered with 503.
    pub unavailable: u32,
    /// `POST /orders` that were answered with 2xx.
    pub orders: u32,
    /// Microseconds; `None` without orders.
    pub order_p50_us: Option<i32>,
    /// Microseconds; `None` without orders.
    pub order_p99_us: Option<i32>,
    /// The longest of the last commits. Microseconds.
    pub commit_us: i32,
}

/// Traffic of all nodes in a period.
#[derive(Debug)]
pub struct TrafficRow {
    /// Start of the period.
    pub at: OffsetDateTime,
    /// Minutes of the period of which there are counts.
    pub minutes: i64,
    pub requests: i64,
    pub unavailable: i64,
    pub orders: i64,
    /// The longest of the minutes and nodes, like the next two.
    pub order_p50_us: Option<i32>,
    pub order_p99_us: Option<i32>,
    pub commit_us: i32,
}

/// Traffic and sales of all nodes.
#[derive(Debug, Clone)]
pub struct Traffic(pub(super) Database);

impl Traffic {
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self(database)
    }

    /// Adds what a node has counted to the minute in which the middle of its period lies, by the clock of the
    /// database, and removes minutes that are too old. Not to be repeated: counts would be added twice.
    #[boxed]
    pub async fn add(&self, counts: PeriodCounts) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "WITH old AS (DELETE FROM traffic_minutes WHERE minute < now() - interval '30 days')
             INSERT INTO traffic_minutes AS t (minute, requests, unavailable, orders, order_p50_us, order_p99_us, commit_us)
             VALUES (date_trunc('minute', now() - make_interval(secs => $7)), $1, $2, $3, $4, $5, $6)
             ON CONFLICT (minute) DO UPDATE
                SET requests = t.requests + EXCLUDED.requests,
                    unavailable = t.unavailable + EXCLUDED.unavailable,
                    orders = t.orders + EXCLUDED.orders,
                    order_p50_us = GREATEST(t.order_p50_us, EXCLUDED.order_p50_us),
                    order_p99_us = GREATEST(t.order_p99_us, EXCLUDED.order_p99_us),
                    commit_us = GREATEST(t.commit_us, EXCLUDED.commit_us)",
            i64::from(counts.requests),
            i64::from(counts.unavailable),
            i64::from(counts.orders),
            counts.order_p50_us,
            counts.order_p99_us,
            counts.commit_us,
            counts.period.as_secs_f64() / 2.0,
        );
        self.0.execute(statement).await
    }

    /// Lists the traffic from `from` until before `to`, in periods of `step_minutes`, oldest first. Minutes
    /// without counts are in none.
    #[boxed]
    pub async fn list(
        &self,
        from: OffsetDateTime,
        to: OffsetDateTime,
        step_minutes: i32,
    ) -> Result<Vec<TrafficRow>, StoreError> {
        let rows = sqlx::query_as!(
            TrafficRow,
            r#"SELECT date_bin(make_interval(mins => $3), t.minute, '2000-01-01Z') AS "at!",
                      count(*) AS "minutes!",
                      sum(t.requests)::bigint AS "requests!",
                      sum(t.unavailable)::bigint AS "unavailable!",
                      sum(t.orders)::bigint AS "orders!",
                      max(t.order_p50_us) AS order_p50_us,
                      max(t.order_p99_us) AS order_p99_us,
                      max(t.commit_us) AS "commit_us!"
                 FROM traffic_minutes AS t
                WHERE t.minute >= $1 AND t.minute < $2
                GROUP BY 1
                ORDER BY 1"#,
            from,
            to,
            step_minutes,
        );
        self.0
            .run(|pool| async move { rows.fetch_all(&pool).await })
            .await
    }
}
