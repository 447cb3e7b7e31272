//! Which delivery of an order is due? The first that waits; the others wait for it.
//!
//! Rule: whoever writes rows of an order says so in the same transaction, since a replay may put one before those that wait.

use sqlx::PgConnection;
use uuid::Uuid;

use super::turn::Key;

/// Of each of these orders the first that waits has a time, which is now if it had none, and what comes after it has none.
pub(super) async fn line_up(
    connection: &mut PgConnection,
    key: Key,
    orders: &[Uuid],
) -> Result<(), sqlx::Error> {
    if orders.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE deliveries AS d
            SET next_at = CASE WHEN d.number = f.number THEN now() ELSE 'infinity' END
           FROM (SELECT DISTINCT unnest($3::uuid[]) AS order_id) AS o
          CROSS JOIN LATERAL (
                SELECT f.number
                  FROM deliveries AS f
                 WHERE f.partner_id = $1
                   AND f.webhook_id = $2
                   AND f.order_id = o.order_id
                   AND f.state = 'WAITING'
                 ORDER BY f.number
                 LIMIT 1) AS f
          WHERE d.partner_id = $1
            AND d.webhook_id = $2
            AND d.order_id = o.order_id
            AND d.state = 'WAITING'
            AND (d.number = f.number) = (d.next_at = 'infinity')",
    )
    .bind(key.partner_id.as_uuid())
    .bind(key.webhook_id.as_uuid())
    .bind(orders)
    .execute(connection)
    .await
    .map(drop)
}
