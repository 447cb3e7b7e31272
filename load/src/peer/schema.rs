//! Database setup of the peer: tables of its mode, a partner with a balance, and stock.
//!
//! Rule: existing tables are used as they are, so that a turn can continue after an earlier one.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use uuid::Uuid;

use super::PeerMode;
use super::order::SKU_ID;

const SCHEMA: &str = include_str!("sql/schema.sql");
const PLACE_ORDER: &str = include_str!("sql/place_order.sql");
const RETRIEVE_CODES: &str = include_str!("sql/retrieve_codes.sql");
const FLOOR_SCHEMA: &str = include_str!("sql/floor_schema.sql");

/// Initial balance of the peer's partner in minor units: more than any run spends.
const BALANCE: i64 = 90_000_000_000_000;

/// Range of expiry dates: neighbouring vouchers expire on different days, as after an import.
const EXPIRY_DAYS: i32 = 30;

/// Creates the tables of a mode if the database has none. Returns whether it did.
pub(crate) async fn create_tables(options: &PgConnectOptions, mode: PeerMode) -> sqlx::Result<bool> {
    let mut connection = PgConnection::connect_with(options).await?;
    let exists: bool = sqlx::query_scalar("SELECT to_regclass('orders') IS NOT NULL")
        .fetch_one(&mut connection)
        .await?;
    let scripts: &[&'static str] = match mode {
        _ if exists => &[],
        PeerMode::RowLocks => &[SCHEMA, PLACE_ORDER, RETRIEVE_CODES],
        PeerMode::Floor => &[FLOOR_SCHEMA],
    };
    for script in scripts {
        connection.execute(*script).await?;
    }
    Ok(!scripts.is_empty())
}

/// Inserts the partner with its balance.
pub(super) async fn insert_partner(connection: &mut PgConnection) -> sqlx::Result<()> {
    let partner_id = Uuid::now_v7();
    sqlx::query("INSERT INTO partners (partner_id, name) VALUES ($1, 'load')")
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

/// Inserts vouchers of the product with recognizable test codes, and updates the planner statistics.
pub(super) async fn insert_vouchers(connection: &mut PgConnection, vouchers: i64) -> sqlx::Result<()> {
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
    .bind(SKU_ID)
    .bind(vouchers)
    .bind(EXPIRY_DAYS)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE vouchers").await.map(drop)
}

/// The id of the only partner.
pub(super) async fn read_partner_id(connection: &mut PgConnection) -> sqlx::Result<Uuid> {
    sqlx::query_scalar("SELECT partner_id FROM partners")
        .fetch_one(connection)
        .await
}

/// Creates an empty database and returns its connection options.
///
/// # Errors
/// If a statement fails, for example for an existing database.
///
/// # Panics
/// If the name contains other characters than letters, digits and underscores; names cannot be bound as
/// parameters.
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
