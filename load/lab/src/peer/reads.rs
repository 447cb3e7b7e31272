//! Reads of the peer: orders and wallets from committed rows.

use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::refusal::Refusal;
use super::request::Line;
use super::response::{DeliveredOrder, SoldVoucher, format_amount};

/// Reads an order and renders its response.
pub(super) async fn read_order(pool: &PgPool, partner_id: Uuid, order_id: Uuid) -> Result<String, Refusal> {
    let row = sqlx::query(
        "SELECT currency,
                total,
                lines::text AS lines,
                created_at
           FROM orders
          WHERE partner_id = $1
            AND order_id = $2",
    )
    .bind(partner_id)
    .bind(order_id)
    .fetch_optional(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?
    .ok_or(Refusal::OrderNotFound)?;
    let vouchers = sqlx::query(
        "SELECT voucher_id,
                line,
                expiry
           FROM allocations
          WHERE partner_id = $1
            AND order_id = $2
          ORDER BY line, expiry, stock_id",
    )
    .bind(partner_id)
    .bind(order_id)
    .fetch_all(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?;
    render_order(order_id, &row, &vouchers).map_err(|_| Refusal::ServiceUnavailable)
}

fn render_order(order_id: Uuid, row: &PgRow, vouchers: &[PgRow]) -> sqlx::Result<String> {
    let lines: Vec<Line> =
        serde_json::from_str(row.try_get("lines")?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let sold = |row: &PgRow| {
        Ok(SoldVoucher {
            voucher_id: row.try_get("voucher_id")?,
            line: usize::try_from(row.try_get::<i16, _>("line")? - 1).unwrap_or_default(),
            expiry: row.try_get("expiry")?,
        })
    };
    let order = DeliveredOrder {
        order_id,
        currency: row.try_get("currency")?,
        total: row.try_get("total")?,
        lines: &lines,
        at: row.try_get("created_at")?,
    };
    Ok(order.text(&vouchers.iter().map(sold).collect::<sqlx::Result<Vec<_>>>()?))
}

/// Reads the wallets of a partner.
pub(super) async fn read_wallets(pool: &PgPool, partner_id: Uuid) -> Result<String, Refusal> {
    let rows = sqlx::query_as::<_, (String, i64)>(
        "SELECT currency,
                balance
           FROM wallets
          WHERE partner_id = $1
          ORDER BY currency",
    )
    .bind(partner_id)
    .fetch_all(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?;
    let items: Vec<String> = rows
        .iter()
        .map(|(currency, balance)| {
            format!(
                r#"{{"currency":"{currency}","balance":{},"pending_orders":0.00,"pending_payouts":0.00}}"#,
                format_amount(*balance)
            )
        })
        .collect();
    Ok(format!(
        r#"{{"data":[{}],"has_more":false,"next_cursor":null}}"#,
        items.join(",")
    ))
}
