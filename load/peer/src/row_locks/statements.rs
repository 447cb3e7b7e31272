//! Order processing with several statements. The wallet comes last: its row is the most contended, so its lock is
//! held for two round trips and the commit instead of all nine.

use sqlx::{PgPool, Postgres, Row, Transaction};
use time::Date;

use super::{LockedVouchers, SaleError};
use crate::draft::OrderDraft;
use crate::refusal::StoredResponse;
use crate::request::Line;
use crate::response::SoldVoucher;

const PICK_SQL: &str = "UPDATE vouchers
    SET order_id = $1
  WHERE stock_id = ANY (ARRAY(
            SELECT v.stock_id
              FROM vouchers AS v
             WHERE v.sku_id = $2
               AND v.order_id IS NULL
             ORDER BY v.expiry, v.stock_id
             LIMIT $3
               FOR UPDATE SKIP LOCKED))
 RETURNING stock_id, expiry";

const PICK_WAITING_SQL: &str = "UPDATE vouchers
    SET order_id = $1
  WHERE stock_id = ANY (ARRAY(
            SELECT v.stock_id
              FROM vouchers AS v
             WHERE v.sku_id = $2
               AND v.order_id IS NULL
             ORDER BY v.expiry, v.stock_id
             LIMIT $3
               FOR UPDATE))
 RETURNING stock_id, expiry";

/// Sold vouchers and their stock ids.
type PickedVouchers = (Vec<SoldVoucher>, Vec<i64>);

/// Executes the transaction.
///
/// # Errors
/// [`SaleError`]; the transaction is rolled back.
pub(super) async fn sell(
    pool: &PgPool,
    draft: &OrderDraft,
    locked_vouchers: LockedVouchers,
) -> Result<StoredResponse, SaleError> {
    let mut transaction = pool.begin().await?;
    let (sold, stock) = pick_vouchers(&mut transaction, draft, locked_vouchers).await?;
    insert_allocations(&mut transaction, draft, &sold, &stock).await?;
    insert_order(&mut transaction, draft).await?;
    let order = draft.delivered();
    insert_event(&mut transaction, draft, &order.event(&sold)).await?;
    let body = order.text(&sold).into_bytes();
    store_response(&mut transaction, draft, &body).await?;
    debit(&mut transaction, draft).await?;
    transaction.commit().await?;
    Ok(StoredResponse {
        status: 201,
        body,
        replayed: false,
    })
}

async fn pick_vouchers(
    transaction: &mut Transaction<'_, Postgres>,
    draft: &OrderDraft,
    locked_vouchers: LockedVouchers,
) -> Result<PickedVouchers, SaleError> {
    let (mut sold, mut stock) = (Vec::new(), Vec::new());
    let mut ids = draft.voucher_ids.iter().copied();
    for (index, line) in draft.order.lines.iter().enumerate() {
        let picked = pick_line(transaction, draft, line, locked_vouchers).await?;
        if picked.len() < usize::try_from(line.quantity).unwrap_or_default() {
            return Err(SaleError::OutOfStock(index));
        }
        for ((expiry, stock_id), voucher_id) in picked.into_iter().zip(ids.by_ref()) {
            sold.push(SoldVoucher {
                voucher_id,
                line: index,
                expiry,
            });
            stock.push(stock_id);
        }
    }
    Ok((sold, stock))
}

/// Selects the vouchers of one line, earliest expiry first.
async fn pick_line(
    transaction: &mut Transaction<'_, Postgres>,
    draft: &OrderDraft,
    line: &Line,
    locked_vouchers: LockedVouchers,
) -> sqlx::Result<Vec<(Date, i64)>> {
    let sql = match locked_vouchers {
        LockedVouchers::Skip => PICK_SQL,
        LockedVouchers::Wait => PICK_WAITING_SQL,
    };
    let rows = sqlx::query(sql)
        .bind(draft.order_id)
        .bind(line.sku_id)
        .bind(i64::from(line.quantity))
        .fetch_all(&mut **transaction)
        .await?;
    let each = |row: sqlx::postgres::PgRow| Ok((row.try_get("expiry")?, row.try_get("stock_id")?));
    let mut picked = rows.into_iter().map(each).collect::<sqlx::Result<Vec<_>>>()?;
    picked.sort_unstable();
    Ok(picked)
}

async fn insert_allocations(
    transaction: &mut Transaction<'_, Postgres>,
    draft: &OrderDraft,
    sold: &[SoldVoucher],
    stock: &[i64],
) -> sqlx::Result<()> {
    let vouchers: Vec<_> = sold.iter().map(|sold| sold.voucher_id).collect();
    let lines: Vec<_> = sold
        .iter()
        .map(|sold| i16::try_from(sold.line + 1).unwrap_or(i16::MAX))
        .collect();
    let expiries: Vec<_> = sold.iter().map(|sold| sold.expiry).collect();
    sqlx::query(
        "INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line, expiry)
         SELECT a.stock_id, a.voucher_id, $1, $2, a.line, a.expiry
           FROM unnest($3::bigint[], $4::uuid[], $5::smallint[], $6::date[])
                AS a (stock_id, voucher_id, line, expiry)",
    )
    .bind(draft.partner_id)
    .bind(draft.order_id)
    .bind(stock)
    .bind(vouchers)
    .bind(lines)
    .bind(expiries)
    .execute(&mut **transaction)
    .await
    .map(drop)
}

async fn insert_order(transaction: &mut Transaction<'_, Postgres>, draft: &OrderDraft) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO orders (
             partner_id, order_id, status, currency, total, reference, metadata, lines, created_at)
         VALUES ($1, $2, 'DELIVERED', $3, $4, $5, $6, $7::text::jsonb, $8)",
    )
    .bind(draft.partner_id)
    .bind(draft.order_id)
    .bind(&draft.order.currency)
    .bind(draft.order.total)
    .bind(&draft.order.reference)
    .bind(&draft.order.metadata)
    .bind(draft.lines())
    .bind(draft.at)
    .execute(&mut **transaction)
    .await
    .map(drop)
}

async fn insert_event(
    transaction: &mut Transaction<'_, Postgres>,
    draft: &OrderDraft,
    event: &str,
) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO events (partner_id, order_id, body, created_at) VALUES ($1, $2, $3, $4)")
        .bind(draft.partner_id)
        .bind(draft.order_id)
        .bind(event)
        .bind(draft.at)
        .execute(&mut **transaction)
        .await
        .map(drop)
}

/// Blocks while another open transaction holds the key.
async fn store_response(
    transaction: &mut Transaction<'_, Postgres>,
    draft: &OrderDraft,
    body: &[u8],
) -> Result<(), SaleError> {
    let result = sqlx::query(
        "INSERT INTO idempotency_keys AS k (key, fingerprint, status, body, expires_at)
         VALUES ($1, $2, 201, $3, now() + interval '24 hours')
         ON CONFLICT (key) DO UPDATE
            SET fingerprint = EXCLUDED.fingerprint,
                status = EXCLUDED.status,
                body = EXCLUDED.body,
                expires_at = EXCLUDED.expires_at
          WHERE k.expires_at <= now()",
    )
    .bind(draft.key.hash)
    .bind(&draft.key.fingerprint[..])
    .bind(body)
    .execute(&mut **transaction)
    .await?;
    if result.rows_affected() == 0 {
        return Err(SaleError::KeyTaken);
    }
    Ok(())
}

/// Wallet and ledger in one statement: saves a round trip while the wallet is locked.
async fn debit(transaction: &mut Transaction<'_, Postgres>, draft: &OrderDraft) -> Result<(), SaleError> {
    let inserted = sqlx::query(
        "WITH debited AS (
             UPDATE wallets
                SET balance = balance - $3,
                    sequence = sequence + 1,
                    updated_at = $6
              WHERE partner_id = $1
                AND currency = $2
                AND balance >= $3
             RETURNING balance, sequence
         )
         INSERT INTO ledger (
             partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
         SELECT $1, $4, $2, d.sequence, 'DEBIT', -$3, d.balance, $5, $6
           FROM debited AS d",
    )
    .bind(draft.partner_id)
    .bind(&draft.order.currency)
    .bind(draft.order.total)
    .bind(draft.transaction_id)
    .bind(draft.order_id)
    .bind(draft.at)
    .execute(&mut **transaction)
    .await?;
    if inserted.rows_affected() == 0 {
        return Err(SaleError::InsufficientFunds);
    }
    Ok(())
}
