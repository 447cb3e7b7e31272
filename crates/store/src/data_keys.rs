//! Wrapped data keys. Creation is safe against concurrent starts, and against a rotation of the wrapping key.

use std::collections::BTreeSet;
use std::time::Duration;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use serde::Serialize;
use sqlx::{Connection as _, PgConnection, PgPool, Postgres, Transaction};
use time::OffsetDateTime;
use vouchsafe_security::vault::data_key::{DataKey, KeyId, KeyPurpose, WrappedKey};
use vouchsafe_security::vault::wrapping_key::{WrapError, WrappingKeyId, WrappingKeys};

use vouchsafe_database::database::Database;
use vouchsafe_domain::audit_action::AuditAction;

/// Keys are wrapped before the table is locked, and again if another session has changed it meanwhile.
pub(super) const MAX_ATTEMPTS: usize = 5;

/// The data keys and the usage of the active one.
#[derive(Debug, Clone)]
pub struct DataKeySet {
    pub keys: Vec<WrappedKey>,
    /// Upper bound of the codes that the newest key for codes has sealed.
    pub active_seals: u64,
    /// The newest key for codes.
    pub(super) newest: Option<KeyRow>,
}

/// Tells a data key from another one that got the same number, and from the same key under another wrapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) key_id: KeyId,
    created_at: OffsetDateTime,
    wrapped: Vec<u8>,
}

/// The newest data key for codes.
#[derive(Debug)]
pub(super) struct NewestKey {
    pub(super) row: KeyRow,
    /// Whether it is older than the maximum age.
    pub(super) is_due: bool,
}

/// Why data keys were not read, created or rewrapped. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum DataKeyError {
    #[error(transparent)]
    Wrap(#[from] WrapError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for DataKeyError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<vouchsafe_security::vault::NoRandomness> for DataKeyError {
    fn from(error: vouchsafe_security::vault::NoRandomness) -> Self {
        Self::Wrap(error.into())
    }
}

/// State of a data key in the audit trail.
#[derive(Debug, Serialize)]
pub(super) struct DataKeyState<'a> {
    purpose: &'static str,
    wrapped_by: &'a str,
}

impl<'a> DataKeyState<'a> {
    pub(super) fn of(key: &'a WrappedKey) -> Self {
        Self {
            purpose: key.purpose.into_str(),
            wrapped_by: key.wrapped_by.as_str(),
        }
    }
}

/// Wrapped data keys.
#[derive(Debug, Clone)]
pub struct DataKeys(pub(super) Database);

impl DataKeys {
    /// Loads the data keys and creates missing ones. Waits for a rotation of the wrapping key.
    ///
    /// # Errors
    /// [`DataKeyError`] when the database does not answer, or no new key can be wrapped.
    #[boxed]
    pub async fn ensure(&self, wrapping: WrappingKeys) -> Result<DataKeySet, DataKeyError> {
        self.run(move |pool| async move { create_missing(&pool, &wrapping).await })
            .await
    }

    /// Loads the data keys.
    #[boxed]
    pub async fn load(&self) -> Result<DataKeySet, StoreError> {
        self.0
            .run(|pool| async move { read_key_set(&mut *pool.acquire().await?).await })
            .await
    }

    /// Creates the next key for codes, unless one newer than `active` exists, and loads all keys.
    ///
    /// # Errors
    /// [`DataKeyError`] when the database does not answer, or the new key cannot be wrapped.
    #[boxed]
    pub async fn next_codes_key(
        &self,
        active: KeyId,
        wrapping: WrappingKeys,
    ) -> Result<DataKeySet, DataKeyError> {
        self.run(move |pool| async move {
            let mut connection = pool.acquire().await?;
            let actor = AuditActor::service();
            create_next(&mut connection, Some(active), &wrapping, &actor).await?;
            Ok(read_key_set(&mut connection).await?)
        })
        .await
    }

    /// Returns the newest key for codes, if there is one. Without `max_age` no key is due.
    pub(super) async fn newest_codes_key(
        &self,
        max_age: Option<Duration>,
    ) -> Result<Option<NewestKey>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT k.key_id,
                      k.created_at,
                      k.wrapped,
                      (k.created_at < clock_timestamp() - make_interval(secs => $1)) IS TRUE AS "is_due!"
                 FROM data_keys AS k
                WHERE k.purpose = 'codes'
                ORDER BY k.key_id DESC
                LIMIT 1"#,
            max_age.map(|age| age.as_secs_f64()) as Option<f64>,
        )
        .map(|row| NewestKey {
            row: KeyRow {
                key_id: KeyId(row.key_id),
                created_at: row.created_at,
                wrapped: row.wrapped,
            },
            is_due: row.is_due,
        });
        self.0.fetch_optional(statement).await
    }

    async fn run<T, F, W>(&self, work: W) -> Result<T, DataKeyError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DataKeyError>> + Send + 'static,
        W: FnOnce(PgPool) -> F + Send + 'static,
    {
        let done = self.0.run(|pool| async move {
            match work(pool).await {
                Ok(done) => Ok(Ok(done)),
                Err(DataKeyError::Wrap(error)) => Ok(Err(error)),
                Err(DataKeyError::Store(error)) => Err(error.into()),
            }
        });
        Ok(done.await??)
    }
}

pub(super) async fn create_missing(
    pool: &PgPool,
    wrapping: &WrappingKeys,
) -> Result<DataKeySet, DataKeyError> {
    let mut connection = pool.acquire().await?;
    for _ in 0..MAX_ATTEMPTS {
        let existing = read_data_keys(&mut connection).await?;
        let mut new = Vec::new();
        for purpose in [KeyPurpose::BlindIndex, KeyPurpose::Codes] {
            if existing.iter().all(|key| key.purpose != purpose) {
                new.push(wrap_new_key(&mut connection, &existing, purpose, wrapping).await?);
            }
        }
        if let Some(mut transaction) = lock_unchanged(&mut connection, &existing).await? {
            for key in &new {
                insert_key(&mut transaction, key).await?;
            }
            let keys = read_key_set(&mut transaction).await?;
            transaction.commit().await?;
            return Ok(keys);
        }
    }
    Err(changed_again().into())
}

/// Creates the next key for codes, unless one newer than `active` exists; without `active` always. Returns
/// the newest key.
pub(super) async fn create_next(
    connection: &mut PgConnection,
    active: Option<KeyId>,
    wrapping: &WrappingKeys,
    actor: &AuditActor,
) -> Result<KeyId, DataKeyError> {
    for _ in 0..MAX_ATTEMPTS {
        let existing = read_data_keys(connection).await?;
        let newest = existing.iter().filter(|key| key.purpose == KeyPurpose::Codes);
        let newest = newest.map(|key| key.key_id).max();
        if let (Some(newest), Some(active)) = (newest, active)
            && newest > active
        {
            return Ok(newest);
        }
        let key = wrap_new_key(connection, &existing, KeyPurpose::Codes, wrapping).await?;
        let Some(mut transaction) = lock_unchanged(connection, &existing).await? else {
            continue;
        };
        insert_key(&mut transaction, &key).await?;
        let state = DataKeyState::of(&key);
        audit::write(
            &mut transaction,
            actor,
            AuditAction::CreateDataKey,
            &key.key_id,
            NO_STATE,
            Some(&state),
        )
        .await?;
        transaction.commit().await?;
        return Ok(key.key_id);
    }
    Err(changed_again().into())
}

/// Begins a transaction that excludes other writers of data keys; `None` if the rows differ from those read
/// before. A key manager is asked before this call: it may take seconds, and starting nodes wait for the
/// lock.
pub(super) async fn lock_unchanged<'a>(
    connection: &'a mut PgConnection,
    existing: &[WrappedKey],
) -> Result<Option<Transaction<'a, Postgres>>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction).await?;
    if read_data_keys(&mut transaction).await? == existing {
        return Ok(Some(transaction));
    }
    transaction.rollback().await?;
    Ok(None)
}

pub(super) fn changed_again() -> StoreError {
    StoreError::NotWritten(sqlx::Error::Protocol(
        "other sessions change the data keys; repeat".to_owned(),
    ))
}

/// Excludes other writers; readers continue.
async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE")
        .execute(connection)
        .await
        .map(drop)
}

/// Wraps the new key like the `existing` ones: a node that does not know of a rotation yet must not undo it.
async fn wrap_new_key(
    connection: &mut PgConnection,
    existing: &[WrappedKey],
    purpose: KeyPurpose,
    wrapping: &WrappingKeys,
) -> Result<WrappedKey, DataKeyError> {
    // Before the insert, because the wrapping binds the key to its id.
    let key_id =
        sqlx::query_scalar!(r#"SELECT nextval(pg_get_serial_sequence('data_keys', 'key_id')) AS "key_id!""#);
    let key_id = key_id.fetch_one(connection).await?;
    let key_id = i32::try_from(key_id).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let key = DataKey::generate(KeyId(key_id), purpose)?;
    Ok(wrapping.wrap_like(existing.last(), &key).await?)
}

async fn insert_key(connection: &mut PgConnection, key: &WrappedKey) -> Result<(), sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO data_keys (key_id, purpose, wrapped, wrapped_by, codes_before) OVERRIDING SYSTEM VALUE
         SELECT $1, $2, $3, $4, CASE WHEN is_called THEN last_value ELSE 0 END FROM code_ids",
        key.key_id.0,
        key.purpose.into_str(),
        key.wrapped,
        key.wrapped_by.as_str(),
    );
    inserted.execute(connection).await.map(drop)
}

async fn read_key_set(connection: &mut PgConnection) -> Result<DataKeySet, sqlx::Error> {
    Ok(DataKeySet {
        active_seals: active_seals(connection).await?,
        newest: read_newest(connection).await?,
        // Last: a key that is created meanwhile is loaded, and the next refresh loads it again.
        keys: read_data_keys(connection).await?,
    })
}

/// Reads the wrapped data keys.
pub(super) async fn read_data_keys(connection: &mut PgConnection) -> Result<Vec<WrappedKey>, sqlx::Error> {
    sqlx::query!("SELECT key_id, purpose, wrapped, wrapped_by FROM data_keys ORDER BY key_id")
        .try_map(|row| {
            let purpose = row.purpose.parse();
            Ok(WrappedKey {
                key_id: KeyId(row.key_id),
                purpose: purpose.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                wrapped: row.wrapped,
                wrapped_by: WrappingKeyId::new(row.wrapped_by),
            })
        })
        .fetch_all(connection)
        .await
}

async fn read_newest(connection: &mut PgConnection) -> Result<Option<KeyRow>, sqlx::Error> {
    let newest = sqlx::query!(
        "SELECT key_id, created_at, wrapped FROM data_keys WHERE purpose = 'codes' ORDER BY key_id DESC LIMIT 1"
    );
    let newest = newest.map(|row| KeyRow {
        key_id: KeyId(row.key_id),
        created_at: row.created_at,
        wrapped: row.wrapped,
    });
    newest.fetch_optional(connection).await
}

/// Refuses values under a data key that the database lacks: a standby that took over without it would have
/// unreadable values.
///
/// # Errors
/// [`sqlx::Error`] if one is missing, or the database does not answer.
pub(super) async fn check_stored(
    connection: &mut PgConnection,
    key_ids: impl Iterator<Item = KeyId>,
) -> Result<(), sqlx::Error> {
    let key_ids: BTreeSet<i32> = key_ids.map(|key_id| key_id.0).collect();
    let key_ids: Vec<i32> = key_ids.into_iter().collect();
    let missing = sqlx::query_scalar!(
        r#"SELECT n.key_id AS "key_id!"
             FROM unnest($1::integer[]) AS n (key_id)
            WHERE NOT EXISTS (SELECT FROM data_keys AS k WHERE k.key_id = n.key_id AND k.purpose = 'codes')
            LIMIT 1"#,
        &key_ids,
    );
    match missing.fetch_optional(connection).await? {
        None => Ok(()),
        Some(key_id) => Err(sqlx::Error::Protocol(format!(
            "the database lacks data key {key_id}, under which values were encrypted; repeat in ten seconds"
        ))),
    }
}

/// Each sealed code takes a new code id, so the ids since the newest key was created bound its usage, with
/// the old codes that were encrypted again.
async fn active_seals(connection: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let seals = sqlx::query_scalar!(
        r#"SELECT CASE WHEN c.is_called THEN c.last_value ELSE 0 END - k.codes_before + k.reencrypted AS "seals!"
             FROM data_keys AS k
            CROSS JOIN code_ids AS c
            WHERE k.purpose = 'codes'
            ORDER BY k.key_id DESC
            LIMIT 1"#
    );
    let seals = seals.fetch_optional(connection).await?.unwrap_or_default();
    Ok(u64::try_from(seals).unwrap_or_default())
}
