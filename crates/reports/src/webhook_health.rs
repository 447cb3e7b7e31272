//! Attempts to deliver to an endpoint by hour, for 30 days. The log of attempts adds to them
//! (`vouchsafe_store::DeliveryLog::insert_attempts`).

use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::WebhookId;

/// Attempts to deliver to an endpoint in a period of whole hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebhookHours {
    /// Start of the period.
    pub at: OffsetDateTime,
    pub delivered: i64,
    pub failed: i64,
    /// Mean of all attempts. Milliseconds.
    pub mean_ms: f64,
    /// The longest attempt. Milliseconds.
    pub longest_ms: i32,
}

/// Health of webhook endpoints over time.
#[derive(Debug, Clone)]
pub struct WebhookHealth(Database);

impl WebhookHealth {
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self(database)
    }

    /// Lists the attempts to deliver to an endpoint from the hour of `from` until before `to`, in periods of
    /// `step_hours`, oldest first. A period without attempts has no entry.
    #[boxed]
    pub async fn list(
        &self,
        webhook_id: WebhookId,
        from: OffsetDateTime,
        to: OffsetDateTime,
        step_hours: i32,
    ) -> Result<Vec<WebhookHours>, StoreError> {
        let rows = sqlx::query_as!(
            WebhookHours,
            r#"SELECT date_bin(make_interval(hours => $4), h.hour, '2000-01-01Z') AS "at!",
                      sum(h.delivered)::bigint AS "delivered!",
                      sum(h.failed)::bigint AS "failed!",
                      (sum(h.latency_ms) / sum(h.delivered + h.failed))::float8 AS "mean_ms!",
                      max(h.longest_ms) AS "longest_ms!"
                 FROM webhook_hours AS h
                WHERE h.webhook_id = $1 AND h.hour >= date_trunc('hour', $2::timestamptz, 'UTC') AND h.hour < $3
                GROUP BY 1
                ORDER BY 1"#,
            webhook_id as _,
            from,
            to,
            step_hours,
        );
        self.0
            .run(|pool| async move { rows.fetch_all(&pool).await })
            .await
    }

    /// Removes hours that are older than 30 days, by the clock of the database.
    #[boxed]
    pub async fn remove_old(&self) -> Result<(), StoreError> {
        let statement = sqlx::query!("DELETE FROM webhook_hours WHERE hour < now() - interval '30 days'");
        self.0.execute(statement).await
    }
}
