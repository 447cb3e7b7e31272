//! Numbers of objects that wait, for the operators' overview.

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::overview::OpenWork;
use vouchsafe_domain::webhook::FAILING_THRESHOLD;

use super::store::PgStore;

impl PgStore {
    /// Counts waiting orders, payouts, changes, purchases, drifts and endpoints, and nodes. Reads partial
    /// indexes, small tables, and the chunks that are not empty.
    #[boxed]
    pub async fn count_open_work(&self) -> Result<OpenWork, StoreError> {
        let counted = sqlx::query_as!(
            OpenWork,
            r#"SELECT (SELECT count(*) FROM orders WHERE NOT closed AND pending_reason = 'VENDOR') AS "orders_at_vendors!",
                      (SELECT count(*) FROM orders WHERE NOT closed AND pending_reason = 'APPROVAL') AS "orders_to_approve!",
                      (SELECT count(*) FROM payouts WHERE status = 'PENDING') AS "payouts_to_decide!",
                      (SELECT count(*) FROM change_requests WHERE status = 'WAITING' AND expires_at > now())
                          AS "requests_to_confirm!",
                      (SELECT count(*) FROM purchases WHERE NOT ended AND last_response = 'REFUSED') AS "purchases_to_end!",
                      (SELECT count(*) FROM drifts WHERE resolution <> 'resolved') AS "drifts_open!",
                      (
                          SELECT count(*)
                            FROM webhooks AS w
                            JOIN webhook_progress AS p USING (partner_id, webhook_id)
                           WHERE w.enabled AND p.failures >= $1
                      ) AS "webhooks_failing!",
                      (SELECT count(*) FROM webhooks WHERE disabled_reason = 'GONE') AS "webhooks_gone!",
                      n.live AS "nodes_live!",
                      n.lost AS "nodes_lost!"
                 FROM (
                      SELECT count(*) FILTER (WHERE n.is_live) AS live,
                             count(*) FILTER (WHERE NOT n.is_live AND n.owns_stock) AS lost
                        FROM (
                             SELECT is_lease_live_v1(n.lease_until, n.renewed_at) AS is_live,
                                    EXISTS (
                                        SELECT
                                          FROM chunks AS c
                                         WHERE c.node = n.node AND c.incarnation = n.incarnation AND NOT c.emptied
                                    ) AS owns_stock
                               FROM nodes AS n
                             ) AS n
                      ) AS n"#,
            FAILING_THRESHOLD.cast_signed(),
        );
        self.database
            .run(|pool| async move { counted.fetch_one(&pool).await })
            .await
    }
}
