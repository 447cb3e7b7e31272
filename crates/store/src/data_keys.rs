//! Wrapped data keys. Creation is safe against concurrent starts.

use sqlx::{PgConnection, PgPool};
use vouchsafe_security::vault::data_key::{KeyId, KeyPurpose, WrappedKey};

use super::database::Database;

/// The data keys and the usage of the active one.
#[derive(Debug, Clone)]
pub struct DataKeySet {
    pub keys: Vec<WrappedKey>,
    /// Upper bound of the codes that the newest key for codes has sealed.
    pub active_seals: u64,
}

/// Wraps a new key under its future id. Runs inside the transaction that inserts it.
pub type KeyWrapper = Box<dyn Fn(KeyId, KeyPurpose) -> Result<WrappedKey, sqlx::Error> + Send + Sync>;

/// Wrapped data keys.
#[derive(Debug, Clone)]
pub struct DataKeys(pub(super) Database);

impl DataKeys {
    /// Loads the data keys and creates missing ones.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or `wrap` fails.
    pub async fn ensure(&self, wrap: KeyWrapper) -> Result<DataKeySet, sqlx::Error> {
        self.0
            .run(move |pool| async move { create_missing(&pool, &wrap).await })
            .await
    }

    /// Creates the next key for codes, unless one newer than `active` exists, and loads all keys.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or `wrap` fails.
    pub async fn next_codes_key(&self, active: KeyId, wrap: KeyWrapper) -> Result<DataKeySet, sqlx::Error> {
        self.0
            .run(move |pool| async move { create_next(&pool, active, &wrap).await })
            .await
    }
}

async fn create_missing(pool: &PgPool, wrap: &KeyWrapper) -> Result<DataKeySet, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    lock(&mut transaction).await?;
    for purpose in [KeyPurpose::BlindIndex, KeyPurpose::Codes] {
        let exists = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM data_keys WHERE purpose = $1) AS "exists!""#,
            purpose.into_str(),
        );
        if !exists.fetch_one(&mut *transaction).await? {
            insert_key(&mut transaction, purpose, wrap).await?;
        }
    }
    read_and_commit(transaction).await
}

async fn create_next(pool: &PgPool, active: KeyId, wrap: &KeyWrapper) -> Result<DataKeySet, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    lock(&mut transaction).await?;
    let newest = sqlx::query_scalar!(
        "SELECT max(key_id) FROM data_keys WHERE purpose = $1",
        KeyPurpose::Codes.into_str(),
    );
    let newest = newest.fetch_one(&mut *transaction).await?;
    if newest.is_none_or(|newest| newest <= active.0) {
        insert_key(&mut transaction, KeyPurpose::Codes, wrap).await?;
    }
    read_and_commit(transaction).await
}

/// Excludes other writers; readers continue.
async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE")
        .execute(connection)
        .await
        .map(drop)
}

async fn insert_key(
    connection: &mut PgConnection,
    purpose: KeyPurpose,
    wrap: &KeyWrapper,
) -> Result<(), sqlx::Error> {
    // Before the insert, because the wrapping binds the key to its id.
    let key_id =
        sqlx::query_scalar!(r#"SELECT nextval(pg_get_serial_sequence('data_keys', 'key_id')) AS "key_id!""#);
    let key_id = key_id.fetch_one(&mut *connection).await?;
    let key_id = i32::try_from(key_id).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let key = wrap(KeyId(key_id), purpose)?;
    sqlx::query!(
        "INSERT INTO data_keys (key_id, purpose, wrapped) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3)",
        key_id,
        purpose.into_str(),
        key.wrapped,
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn read_and_commit(mut transaction: sqlx::PgTransaction<'_>) -> Result<DataKeySet, sqlx::Error> {
    let keys = read_data_keys(&mut transaction).await?;
    let active_seals = active_seals(&mut transaction, &keys).await?;
    transaction.commit().await?;
    Ok(DataKeySet { keys, active_seals })
}

/// Reads the wrapped data keys.
pub(super) async fn read_data_keys(connection: &mut PgConnection) -> Result<Vec<WrappedKey>, sqlx::Error> {
    sqlx::query!("SELECT key_id, purpose, wrapped FROM data_keys ORDER BY key_id")
        .try_map(|row| {
            let purpose = row.purpose.parse();
            Ok(WrappedKey {
                key_id: KeyId(row.key_id),
                purpose: purpose.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                wrapped: row.wrapped,
            })
        })
        .fetch_all(connection)
        .await
}

/// Each sealed code takes a new code id, so the last id bounds the usage of a single key. With several keys the codes of the
/// newest one are counted, which is exact and slow.
async fn active_seals(connection: &mut PgConnection, keys: &[WrappedKey]) -> Result<u64, sqlx::Error> {
    let codes_keys = keys.iter().filter(|key| key.purpose == KeyPurpose::Codes);
    let count = if codes_keys.clone().count() > 1 {
        sqlx::query!("SET LOCAL statement_timeout = 0")
            .execute(&mut *connection)
            .await?;
        let newest = codes_keys.map(|key| key.key_id.0).max();
        sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM codes WHERE key_id = $1"#,
            newest
        )
        .fetch_one(connection)
        .await?
    } else {
        sqlx::query_scalar!(
            r#"SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS "last_id!" FROM code_ids"#
        )
        .fetch_one(connection)
        .await?
    };
    Ok(count.unsigned_abs())
}
