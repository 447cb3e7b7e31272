//! Order of deliveries within an order: only the first waiting delivery is due; the others wait for it.
//!
//! Each write of an order's rows re-establishes this in its transaction, because a replay may insert an
//! earlier delivery.

use sqlx::PgConnection;
use vouchsafe_domain::ids::OrderId;

use super::endpoint::EndpointKey;

/// Per order, makes the first waiting delivery due now unless it has a time, and sets the others to
/// `infinity`.
pub(super) async fn schedule_first_waiting(
    connection: &mut PgConnection,
    key: EndpointKey,
    orders: &[OrderId],
) -> Result<(), sqlx::Error> {
    if orders.is_empty() {
        return Ok(());
    }
    sqlx::query!(
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
        key.partner_id as _,
        key.webhook_id as _,
        orders as _,
    )
    .execute(connection)
    .await
    .map(drop)
}
