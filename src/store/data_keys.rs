//! Data keys as they are kept: wrapped. Making one is safe against a second start that makes it at the same time.

use sqlx::{PgConnection, PgPool};

use super::PgStore;
use crate::vault::data_key::{KeyId, Purpose, WrappedKey};

/// The data keys, and how much the active one has done.
#[derive(Debug, Clone)]
pub struct DataKeys {
    pub keys: Vec<WrappedKey>,
    /// At most how many codes the highest key for codes has sealed.
    pub active_seals: u64,
}

/// Wraps a new key under the id that it will have. Runs inside the transaction that writes it.
pub type Wrap = Box<dyn Fn(KeyId, Purpose) -> Result<WrappedKey, sqlx::Error> + Send + Sync>;

impl PgStore {
    /// The data keys; makes those that are missing first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or `wrap` fails.
    pub async fn ensure_data_keys(&self, wrap: Wrap) -> Result<DataKeys, sqlx::Error> {
        self.run(move |pool| async move { ensure(&pool, &wrap).await })
            .await
    }

    /// Makes the next key for codes, unless there is one above `active` already; then all of them.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or `wrap` fails.
    pub async fn next_codes_key(&self, active: KeyId, wrap: Wrap) -> Result<DataKeys, sqlx::Error> {
        self.run(move |pool| async move { next(&pool, active, &wrap).await })
            .await
    }
}

async fn ensure(pool: &PgPool, wrap: &Wrap) -> Result<DataKeys, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    lock(&mut transaction).await?;
    for purpose in [Purpose::BlindIndex, Purpose::Codes] {
        let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM data_keys WHERE purpose = $1)")
            .bind(purpose.as_str())
            .fetch_one(&mut *transaction)
            .await?;
        if !there {
            make(&mut transaction, purpose, wrap).await?;
        }
    }
    finish(transaction).await
}

async fn next(pool: &PgPool, active: KeyId, wrap: &Wrap) -> Result<DataKeys, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    lock(&mut transaction).await?;
    let newest: Option<i32> = sqlx::query_scalar("SELECT max(key_id) FROM data_keys WHERE purpose = $1")
        .bind(Purpose::Codes.as_str())
        .fetch_one(&mut *transaction)
        .await?;
    if newest.is_none_or(|newest| newest <= active.0) {
        make(&mut transaction, Purpose::Codes, wrap).await?;
    }
    finish(transaction).await
}

/// Whoever makes a key has the table to itself; readers go on.
async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE")
        .execute(connection)
        .await
        .map(drop)
}

/// The id is taken first: the wrapping binds the key to it.
async fn make(connection: &mut PgConnection, purpose: Purpose, wrap: &Wrap) -> Result<(), sqlx::Error> {
    let key_id: i64 = sqlx::query_scalar("SELECT nextval(pg_get_serial_sequence('data_keys', 'key_id'))")
        .fetch_one(&mut *connection)
        .await?;
    let key_id = i32::try_from(key_id).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let key = wrap(KeyId(key_id), purpose)?;
    sqlx::query(
        "INSERT INTO data_keys (key_id, purpose, wrapped) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3)",
    )
    .bind(key_id)
    .bind(purpose.as_str())
    .bind(key.wrapped)
    .execute(connection)
    .await
    .map(drop)
}

async fn finish(mut transaction: sqlx::PgTransaction<'_>) -> Result<DataKeys, sqlx::Error> {
    let keys = read(&mut transaction).await?;
    let active_seals = active_seals(&mut transaction, &keys).await?;
    transaction.commit().await?;
    Ok(DataKeys { keys, active_seals })
}

async fn read(connection: &mut PgConnection) -> Result<Vec<WrappedKey>, sqlx::Error> {
    let found: Vec<(i32, String, Vec<u8>)> =
        sqlx::query_as("SELECT key_id, purpose, wrapped FROM data_keys ORDER BY key_id")
            .fetch_all(connection)
            .await?;
    let key = |(key_id, purpose, wrapped): (i32, String, Vec<u8>)| {
        let purpose = purpose
            .parse()
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        Ok(WrappedKey {
            key_id: KeyId(key_id),
            purpose,
            wrapped,
        })
    };
    found.into_iter().map(key).collect()
}

/// Every sealing takes a new code id, so while there is one key for codes the last id bounds what it has sealed. Behind a
/// second key its own codes are counted, which takes a while and is exact.
async fn active_seals(connection: &mut PgConnection, keys: &[WrappedKey]) -> Result<u64, sqlx::Error> {
    let codes_keys = keys.iter().filter(|key| key.purpose == Purpose::Codes);
    let count: i64 = if codes_keys.clone().count() > 1 {
        sqlx::query("SET LOCAL statement_timeout = 0")
            .execute(&mut *connection)
            .await?;
        sqlx::query_scalar("SELECT count(*) FROM codes WHERE key_id = $1")
            .bind(codes_keys.map(|key| key.key_id.0).max())
            .fetch_one(connection)
            .await?
    } else {
        sqlx::query_scalar("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM code_ids")
            .fetch_one(connection)
            .await?
    };
    Ok(count.unsigned_abs())
}
