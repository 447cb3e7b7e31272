//! Reads of the peer: orders and wallets from committed rows.

use sqlx::PgPool;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::order::{CURRENCY, DeliveredOrder, SoldVoucher, format_amount};
use super::refusal::Refusal;

/// Reads an order and renders its response.
pub(super) async fn read_order(
    pool: &PgPool,
    partner_id: Uuid,
    order_id: Uuid,
    product_id: &str,
) -> Result<String, Refusal> {
    let at: OffsetDateTime = sqlx::query_scalar(
        "SELECT created_at
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
    let vouchers: Vec<(Uuid, Date)> = sqlx::query_as(
        "SELECT voucher_id,
                expiry
           FROM allocations
          WHERE partner_id = $1
            AND order_id = $2
          ORDER BY expiry, stock_id",
    )
    .bind(partner_id)
    .bind(order_id)
    .fetch_all(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?;
    let sold: Vec<_> = vouchers
        .into_iter()
        .map(|(voucher_id, expiry)| SoldVoucher { voucher_id, expiry })
        .collect();
    let order = DeliveredOrder {
        order_id,
        product_id,
        quantity: i32::try_from(sold.len()).unwrap_or_default(),
        at,
    };
    Ok(order.text(&sold))
}

/// Reads the wallet of a partner.
pub(super) async fn read_wallets(pool: &PgPool, partner_id: Uuid) -> Result<String, Refusal> {
    let balance: i64 =
        sqlx::query_scalar("SELECT balance FROM wallets WHERE partner_id = $1 AND currency = $2")
            .bind(partner_id)
            .bind(CURRENCY)
            .fetch_one(pool)
            .await
            .map_err(|_| Refusal::ServiceUnavailable)?;
    let balance = format_amount(balance);
    Ok(format!(
        r#"{{"data":[{{"currency":"{CURRENCY}","balance":{balance},"pending_orders":0.00,"pending_payouts":0.00}}],"has_more":false,"next_cursor":null}}"#,
    ))
}
