//! Plain SQL to set up and read back rows, bypassing the lanes.

use sqlx::PgPool;
use sqlx::types::time::Date;
use uuid::Uuid;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, StoredResponse};
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId, TransactionId};
use vouchsafe_domain::ledger::{Movement, WalletKey, WalletState};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::{FeedEntry, Holder, LedgerEntry, StoredKey, StoredWallet};

/// Imports vouchers as one chunk, with their product.
pub(crate) async fn add_chunk(pool: &PgPool, sku: &Sku, expiries: &[Expiry]) -> Vec<StockVoucher> {
    let (product, denomination) = (sku.product_id.as_str(), sku.denomination.minor());
    sqlx::query("INSERT INTO categories (category_id, name) VALUES ('all', 'All') ON CONFLICT DO NOTHING")
        .execute(pool)
        .await
        .unwrap();
    sqlx::query(
        "INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations,
                               expiry_policy, redemption, route, approval, returnable, min_validity_days,
                               low_stock_at, discontinued)
         VALUES ($1, $1, $1, 'all', 'mock', 'USD', '{US}', ARRAY[$2], '{}', '{}', 'vendor', 'rule', true, 0, 0, false)
         ON CONFLICT (product_id) DO UPDATE SET denominations = products.denominations || EXCLUDED.denominations",
    )
    .bind(product)
    .bind(denomination)
    .execute(pool)
    .await
    .unwrap();
    let days: Vec<Option<Date>> = expiries.iter().map(|expiry| expiry.date()).collect();
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "WITH voucher AS MATERIALIZED (
            SELECT nextval('stock_ids') AS stock_id, nextval('code_ids') AS code_id, v.expiry
              FROM unnest($3) WITH ORDINALITY AS v (expiry, place)
             ORDER BY v.place
         ), sealed AS (
            INSERT INTO codes (code_id, product_id, denomination, blind_index, code_index, key_id, nonce, ciphertext)
            SELECT v.code_id, $1, $2, sha256(v.code_id::text::bytea), sha256('code ' || v.code_id::text::bytea), k.key_id,
                   int4send(0) || int8send(v.code_id), ''
              FROM voucher AS v
              JOIN data_keys AS k ON k.purpose = 'codes'
         ), chunk AS (
            INSERT INTO chunks (product_id, denomination, first_expiry, last_expiry, first_stock_id, last_stock_id)
            SELECT $1, $2, min(expiry), CASE WHEN count(expiry) = count(*) THEN max(expiry) END,
                   min(stock_id), max(stock_id)
              FROM voucher
            RETURNING chunk_id
         )
         INSERT INTO stock (stock_id, chunk_id, code_id, expiry)
         SELECT v.stock_id, c.chunk_id, v.code_id, v.expiry
           FROM voucher AS v CROSS JOIN chunk AS c
          ORDER BY v.stock_id
         RETURNING stock_id, chunk_id",
    )
    .bind(product)
    .bind(denomination)
    .bind(days)
    .fetch_all(pool)
    .await
    .unwrap();
    let shelve = |(expiry, (stock_id, chunk_id)): (&Expiry, (i64, i64))| StockVoucher {
        expiry: *expiry,
        stock_id: StockId(stock_id),
        chunk_id: ChunkId(chunk_id),
    };
    expiries.iter().zip(rows).map(shelve).collect()
}

/// Credits a wallet, as another writer of the ledger.
pub(crate) async fn top_up(pool: &PgPool, wallet: WalletKey, amount: Amount) {
    sqlx::query(
        "WITH credited AS (
            INSERT INTO wallets AS w (partner_id, currency, balance, sequence)
            VALUES ($1, $2, $3, 1)
            ON CONFLICT (partner_id, currency) DO UPDATE
               SET balance = w.balance + EXCLUDED.balance, sequence = w.sequence + 1
            RETURNING balance, sequence
         ), booked AS (
            INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after,
                                created_at)
            SELECT $1, $4, $2, c.sequence, 'TOP_UP', $3, c.balance, clock_timestamp()
              FROM credited AS c
            RETURNING *
         )
         INSERT INTO audit_log (operator, action, subject, after)
         SELECT 'somebody', 'wallet.top_up', b.currency,
                jsonb_build_object('balance_minor', b.balance_after,
                                   'amount_minor', b.amount,
                                   'transaction_id', 'txn_' || replace(b.transaction_id::text, '-', ''))
           FROM booked AS b",
    )
    .bind(wallet.partner_id.as_uuid())
    .bind(wallet.currency.as_str())
    .bind(amount.minor())
    .bind(TransactionId::generate().as_uuid())
    .execute(pool)
    .await
    .unwrap();
}

/// Number of blocked transactions of this database.
pub(crate) async fn count_blocked(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "SELECT count(DISTINCT l.pid)
           FROM pg_locks AS l
           JOIN pg_stat_activity AS a ON a.pid = l.pid
          WHERE NOT l.granted AND a.datname = current_database()",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

pub(crate) async fn wallet(pool: &PgPool, wallet: WalletKey) -> Option<StoredWallet> {
    let row: Option<(i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT sequence, balance, pending_orders, pending_payouts
           FROM wallets
          WHERE partner_id = $1 AND currency = $2",
    )
    .bind(wallet.partner_id.as_uuid())
    .bind(wallet.currency.as_str())
    .fetch_optional(pool)
    .await
    .unwrap();
    row.map(|(sequence, balance, orders, payouts)| StoredWallet {
        newest: receipt(sequence, balance),
        pending_orders: Amount::from_minor(orders),
        pending_payouts: Amount::from_minor(payouts),
    })
}

fn receipt(sequence: i64, balance: i64) -> WalletState {
    WalletState {
        sequence,
        balance: Amount::from_minor(balance),
    }
}

#[derive(sqlx::FromRow)]
struct LedgerRow {
    transaction_id: Uuid,
    sequence: i64,
    kind: String,
    amount: i64,
    balance_after: i64,
    order_id: Option<Uuid>,
    payout_id: Option<Uuid>,
    reference: Option<String>,
}

pub(crate) async fn ledger(pool: &PgPool, wallet: WalletKey) -> Vec<LedgerEntry> {
    let rows: Vec<LedgerRow> = sqlx::query_as(
        "SELECT l.transaction_id, l.sequence, l.kind, l.amount, l.balance_after, l.order_id, l.payout_id, l.reference
           FROM ledger AS l
          WHERE l.partner_id = $1 AND l.currency = $2
          ORDER BY l.sequence",
    )
    .bind(wallet.partner_id.as_uuid())
    .bind(wallet.currency.as_str())
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().map(|row| entry(wallet, row)).collect()
}

fn entry(wallet: WalletKey, row: LedgerRow) -> LedgerEntry {
    let movement = Movement {
        transaction_id: TransactionId::from_uuid(row.transaction_id),
        currency: wallet.currency,
        kind: row.kind.parse().unwrap(),
        amount: Amount::from_minor(row.amount),
        order_id: row.order_id.map(OrderId::from_uuid),
        payout_id: row.payout_id.map(PayoutId::from_uuid),
        reference: row.reference,
        booked_by: None,
    };
    LedgerEntry {
        receipt: receipt(row.sequence, row.balance_after),
        movement,
    }
}

pub(crate) async fn allocations(pool: &PgPool) -> Vec<(StockId, Holder)> {
    let rows: Vec<(i64, Option<Uuid>)> = sqlx::query_as(
        "SELECT stock_id, order_id FROM allocations WHERE returned_at IS NULL ORDER BY stock_id",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let holder = |order_id: Option<Uuid>| {
        order_id.map_or(Holder::Void, |order_id| {
            Holder::Order(OrderId::from_uuid(order_id))
        })
    };
    rows.into_iter()
        .map(|(stock_id, order_id)| (StockId(stock_id), holder(order_id)))
        .collect()
}

/// Row of a key, expired or not.
pub(crate) async fn stored_key(pool: &PgPool, key: KeyHash) -> Option<StoredKey> {
    let row: Option<(Vec<u8>, i16, Vec<u8>, bool)> = sqlx::query_as(
        "SELECT fingerprint, status, body, expires_at = 'infinity' FROM idempotency_keys WHERE key = $1",
    )
    .bind(key.0)
    .fetch_optional(pool)
    .await
    .unwrap();
    row.map(|(fingerprint, status, body, never_expires)| StoredKey {
        known: StoredResponse {
            fingerprint: Fingerprint(fingerprint.try_into().unwrap()),
            response: Response {
                status: status.cast_unsigned(),
                body: body.into(),
            },
        },
        never_expires,
    })
}

pub(crate) async fn events(pool: &PgPool, partner_id: PartnerId) -> Vec<FeedEntry> {
    let rows: Vec<(i64, i32, Uuid, i32, String)> = sqlx::query_as(
        "SELECT number, count, order_id, first_sequence, body FROM events WHERE partner_id = $1 ORDER BY number",
    )
    .bind(partner_id.as_uuid())
    .fetch_all(pool)
    .await
    .unwrap();
    let to_entry = |(number, count, order_id, first_sequence, body): (i64, i32, Uuid, i32, String)| {
        let mut bundle: EventBundle = serde_json::from_str(&body).unwrap();
        bundle.order_id = OrderId::from_uuid(order_id);
        let columns = (count.cast_unsigned(), first_sequence.cast_unsigned());
        assert_eq!(
            columns,
            (bundle.count(), bundle.first_sequence),
            "columns match the body"
        );
        FeedEntry { number, bundle }
    };
    rows.into_iter().map(to_entry).collect()
}
