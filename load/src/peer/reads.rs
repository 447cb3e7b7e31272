//! Reads of the peer: orders and wallets from committed rows.

use sqlx::PgPool;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::order::{self, CURRENCY, DeliveredOrder, SoldVoucher, format_amount};
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
    let vouchers: Vec<(Uuid, Date, Option<OffsetDateTime>)> = sqlx::query_as(
        "SELECT voucher_id,
                expiry,
                first_retrieved_at
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
        .map(|(voucher_id, expiry, first_retrieved_at)| SoldVoucher {
            voucher_id,
            expiry,
            first_retrieved_at,
        })
        .collect();
    let order = DeliveredOrder {
        order_id,
        product_id,
        quantity: i32::try_from(sold.len()).unwrap_or_default(),
        at,
    };
    Ok(order.text(&sold))
}

/// Reads the codes of an order and records the read, in one transaction.
pub(super) async fn retrieve_codes(
    pool: &PgPool,
    partner_id: Uuid,
    order_id: Uuid,
    address: String,
) -> Result<String, Refusal> {
    let codes: Vec<(Uuid, Date, Vec<u8>)> = sqlx::query_as(
        "SELECT voucher_id,
                expiry,
                ciphertext
           FROM retrieve_codes($1, $2, $3, $4, $5)",
    )
    .bind(partner_id)
    .bind(order_id)
    .bind(address)
    .bind(Uuid::now_v7())
    .bind(order::now())
    .fetch_all(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?;
    if codes.is_empty() {
        return Err(Refusal::OrderNotFound);
    }
    let code_json = |(voucher_id, expiry, code): &(Uuid, Date, Vec<u8>)| {
        let (id, code) = (voucher_id.simple(), String::from_utf8_lossy(code));
        format!(
            r#"{{"voucher_id":"vch_{id}","expiry":"{expiry}","credentials":[{{"type":"code","value":"{code}"}}]}}"#
        )
    };
    let data: Vec<String> = codes.iter().map(code_json).collect();
    Ok(format!(
        r#"{{"order_id":"ord_{}","data":[{}]}}"#,
        order_id.simple(),
        data.join(",")
    ))
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
