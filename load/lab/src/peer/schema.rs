//! Database setup of the peer: tables of its mode, a partner with a balance, and stock.
//!
//! Rule: existing tables are used as they are, so that a turn can continue after an earlier one.

use sha2::{Digest, Sha256};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use uuid::Uuid;

use super::PeerMode;
use super::request::{Catalogue, PeerSku};
use super::signature::CredentialRegistry;

const SCHEMA: &str = include_str!("sql/schema.sql");
const PLACE_ORDER: &str = include_str!("sql/place_order.sql");
const FLOOR_SCHEMA: &str = include_str!("sql/floor_schema.sql");

/// Denomination of the peer's product, in minor units of USD.
pub(super) const DENOMINATION: i64 = 2_500;

/// Initial balance of the peer's partner in minor units: more than any run spends.
const BALANCE: i64 = 90_000_000_000_000;

/// Range of expiry dates: neighbouring vouchers expire on different days, as after an import.
const EXPIRY_DAYS: i32 = 30;

/// Hashes of the partner's API key and secret.
#[derive(Clone, Copy)]
pub(super) struct CredentialHashes {
    pub(super) key: [u8; 32],
    pub(super) secret: [u8; 32],
}

impl CredentialHashes {
    pub(super) fn of(api_key: &str, api_secret: &str) -> Self {
        Self {
            key: Sha256::digest(api_key).into(),
            secret: Sha256::digest(api_secret).into(),
        }
    }
}

/// Data that a peer reads once at its start.
#[derive(Clone, Default)]
pub(super) struct PeerData {
    pub(super) credentials: CredentialRegistry,
    pub(super) catalogue: Catalogue,
}

/// Creates the tables of a mode if the database has none. Returns whether it did.
pub(crate) async fn create_tables(options: &PgConnectOptions, mode: PeerMode) -> sqlx::Result<bool> {
    let mut connection = PgConnection::connect_with(options).await?;
    let exists: bool = sqlx::query_scalar("SELECT to_regclass('orders') IS NOT NULL")
        .fetch_one(&mut connection)
        .await?;
    let scripts: &[&'static str] = match mode {
        _ if exists => &[],
        PeerMode::RowLocks => &[SCHEMA, PLACE_ORDER],
        PeerMode::Floor => &[FLOOR_SCHEMA],
        PeerMode::SignatureOnly => &[],
    };
    for script in scripts {
        connection.execute(*script).await?;
    }
    Ok(!scripts.is_empty())
}

/// Inserts the partner with its balance.
pub(super) async fn insert_partner(
    connection: &mut PgConnection,
    credentials: CredentialHashes,
) -> sqlx::Result<()> {
    let partner_id = Uuid::now_v7();
    sqlx::query("INSERT INTO partners (partner_id, name) VALUES ($1, 'load')")
        .bind(partner_id)
        .execute(&mut *connection)
        .await?;
    sqlx::query("INSERT INTO credentials (key_hash, secret_hash, partner_id) VALUES ($1, $2, $3)")
        .bind(&credentials.key[..])
        .bind(&credentials.secret[..])
        .bind(partner_id)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "WITH filled AS (
             INSERT INTO wallets (partner_id, currency, balance, sequence)
             VALUES ($1, 'USD', $2, 1)
         )
         INSERT INTO ledger (
             partner_id, transaction_id, currency, sequence, kind, amount, balance_after, created_at)
         VALUES ($1, $3, 'USD', 1, 'TOP_UP', $2, $2, now())",
    )
    .bind(partner_id)
    .bind(BALANCE)
    .bind(Uuid::now_v7())
    .execute(connection)
    .await
    .map(drop)
}

/// Inserts vouchers of one SKU with recognizable test codes, and updates the planner statistics.
pub(super) async fn insert_vouchers(
    connection: &mut PgConnection,
    product_id: &str,
    vouchers: i64,
) -> sqlx::Result<()> {
    let sku_id: i32 = sqlx::query_scalar(
        "INSERT INTO skus (product_id, denomination, currency)
         VALUES ($1, $2, 'USD')
         RETURNING sku_id",
    )
    .bind(product_id)
    .bind(DENOMINATION)
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query(
        "WITH numbered AS MATERIALIZED (
             SELECT nextval('stock_ids') AS number
               FROM generate_series(1, $2)
         ), coded AS (
             INSERT INTO codes (code_id, nonce, ciphertext)
             SELECT n.number, '\\x000000000000000000000000', convert_to('FAKE-' || lpad(n.number::text, 27, '0'), 'UTF8')
               FROM numbered AS n
         )
         INSERT INTO vouchers (stock_id, sku_id, code_id, expiry)
         SELECT n.number, $1, n.number, current_date + 365 + (n.number % $3)::integer
           FROM numbered AS n",
    )
    .bind(sku_id)
    .bind(vouchers)
    .bind(EXPIRY_DAYS)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE vouchers").await.map(drop)
}

/// Reads credentials and SKUs.
pub(super) async fn load_peer_data(connection: &mut PgConnection) -> sqlx::Result<PeerData> {
    let mut data = PeerData::default();
    let credentials = sqlx::query("SELECT key_hash, secret_hash, partner_id FROM credentials")
        .fetch_all(&mut *connection)
        .await?;
    for row in credentials {
        data.credentials.insert(
            row.try_get("key_hash")?,
            row.try_get("secret_hash")?,
            row.try_get("partner_id")?,
        );
    }
    let skus = sqlx::query("SELECT sku_id, product_id, denomination, currency FROM skus")
        .fetch_all(connection)
        .await?;
    for row in skus {
        let sku = PeerSku {
            sku_id: row.try_get("sku_id")?,
            currency: row.try_get("currency")?,
        };
        data.catalogue
            .insert(row.try_get("product_id")?, row.try_get("denomination")?, sku);
    }
    Ok(data)
}

/// Creates an empty database and returns its connection options.
///
/// # Errors
/// If a statement fails, for example for an existing database.
///
/// # Panics
/// If the name contains other characters than letters, digits and underscores; names cannot be bound as parameters.
pub async fn create_database(server: &PgConnectOptions, name: &str) -> sqlx::Result<PgConnectOptions> {
    let is_valid = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    assert!(
        is_valid,
        "a database name must consist of letters, digits and underscores: `{name}`"
    );
    let mut connection = PgConnection::connect_with(server).await?;
    let statement = format!("CREATE DATABASE {name}");
    connection.execute(AssertSqlSafe(statement)).await?;
    Ok(server.clone().database(name))
}
