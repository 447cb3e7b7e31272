//! Operations on data keys without the service: list, create, rewrap under another wrapping key.
//!
//! A rotation rewraps all data keys in one transaction, under a lock that excludes every writer of data keys:
//! a crash leaves all rows as they were. It refuses while a live node lacks the new wrapping key, which every
//! node reports after it has started.

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::boxed;
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_security::vault::data_key::{KeyId, WrappedKey};
use vouchsafe_security::vault::wrapping_key::{WrappingKeyId, WrappingKeys};

use crate::data_keys::{
    DataKeyError, DataKeyState, MAX_ATTEMPTS, changed_again, create_next, lock_unchanged, read_data_keys,
};
use crate::reencryption::{ReencryptionRow, list_reencryptions};
use vouchsafe_domain::audit_action::AuditAction;

/// A data key, without its content.
#[derive(Debug, Clone, Serialize)]
pub struct DataKeyRow {
    pub key_id: i32,
    pub purpose: String,
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub created_at: OffsetDateTime,
    /// The wrapping key.
    pub wrapped_by: String,
    /// Whether it encrypts new values.
    pub is_active: bool,
    /// Number of codes under this key, if they were counted.
    pub codes: Option<i64>,
}

/// A live node and its wrapping keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeWrappingKeys {
    pub node: String,
    /// None if the node has not reported them yet.
    pub wrapping_keys: Option<Vec<String>>,
}

/// The data keys and who can unwrap them.
#[derive(Debug, Clone, Serialize)]
pub struct KeyReport {
    pub data_keys: Vec<DataKeyRow>,
    pub nodes: Vec<NodeWrappingKeys>,
    pub reencryptions: Vec<ReencryptionRow>,
}

/// Result of a rotation of the wrapping key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewrapOutcome {
    /// All data keys are wrapped by the new key.
    Rewrapped(Vec<KeyId>),
    /// These live nodes could not unwrap them any more. Nothing was changed.
    NodesLackKey(Vec<NodeWrappingKeys>),
}

/// Lists the data keys; counts their codes if `count_codes`, which reads the whole table of codes.
#[boxed]
pub async fn list_keys(database: &PgConnectOptions, count_codes: bool) -> Result<KeyReport, StoreError> {
    let mut connection = connect(database).await?;
    let data_keys = sqlx::query_as!(
        DataKeyRow,
        r#"SELECT k.key_id,
                  k.purpose,
                  k.created_at,
                  k.wrapped_by,
                  k.key_id = max(k.key_id) OVER (PARTITION BY k.purpose) AS "is_active!",
                  CASE WHEN $1 AND k.purpose = 'codes' THEN COALESCE(c.codes, 0) END AS codes
             FROM data_keys AS k
             LEFT JOIN (SELECT key_id, count(*) AS codes FROM codes WHERE $1 GROUP BY key_id) AS c ON c.key_id = k.key_id
            ORDER BY k.key_id"#,
        count_codes,
    );
    let report = KeyReport {
        data_keys: data_keys.fetch_all(&mut connection).await?,
        nodes: list_live_nodes(&mut connection).await?,
        reencryptions: list_reencryptions(&mut connection).await?,
    };
    connection.close().await?;
    Ok(report)
}

/// Creates the next data key for codes now. The nodes load it within seconds.
///
/// # Errors
/// [`DataKeyError`]; nothing was changed.
#[boxed]
pub async fn create_data_key(
    database: &PgConnectOptions,
    wrapping: &WrappingKeys,
) -> Result<KeyId, DataKeyError> {
    let mut connection = connect(database).await?;
    create_next(&mut connection, None, wrapping, &AuditActor::command_line()).await
}

/// Wraps all data keys with the current wrapping key. Each is unwrapped before, and again with the new
/// wrapping key alone; the stored rows are compared before the commit.
///
/// # Errors
/// [`DataKeyError`]; nothing was changed.
#[boxed]
pub async fn rewrap(
    database: &PgConnectOptions,
    wrapping: &WrappingKeys,
) -> Result<RewrapOutcome, DataKeyError> {
    let mut connection = connect(database).await?;
    for _ in 0..MAX_ATTEMPTS {
        let lacking = list_nodes_without(&mut connection, wrapping).await?;
        if !lacking.is_empty() {
            return Ok(RewrapOutcome::NodesLackKey(lacking));
        }
        let rows = read_data_keys(&mut connection).await?;
        let rewrapped = rewrap_all(&rows, wrapping).await?;
        let Some(mut transaction) = lock_unchanged(&mut connection, &rows).await? else {
            continue;
        };
        // Nodes create and confirm data keys under the same lock. A node that has reported its keys is seen
        // by the next statement; one that reports them later waits for the lock, finds the new wrapping, and
        // does not start if it cannot unwrap it.
        let lacking = list_nodes_without(&mut transaction, wrapping).await?;
        if !lacking.is_empty() {
            return Ok(RewrapOutcome::NodesLackKey(lacking));
        }
        for (before, after) in rows.iter().zip(&rewrapped) {
            update(&mut transaction, before, after).await?;
        }
        if read_data_keys(&mut transaction).await? != rewrapped {
            let changed = "a data key was stored differently".to_owned();
            return Err(StoreError::NotWritten(sqlx::Error::Protocol(changed)).into());
        }
        transaction.commit().await?;
        return Ok(RewrapOutcome::Rewrapped(
            rewrapped.iter().map(|key| key.key_id).collect(),
        ));
    }
    Err(changed_again().into())
}

/// Each new wrapping is unwrapped again and compared.
async fn rewrap_all(rows: &[WrappedKey], wrapping: &WrappingKeys) -> Result<Vec<WrappedKey>, DataKeyError> {
    let target = wrapping.current();
    let mut rewrapped = Vec::with_capacity(rows.len());
    for row in rows {
        let key = wrapping.unwrap_key(row).await?;
        let new = target.wrap(&key).await?;
        if !target.unwrap_key(&new).await?.is_same_key(&key) {
            let changed = format!("data key {} differs after it was rewrapped", row.key_id);
            return Err(StoreError::NotWritten(sqlx::Error::Protocol(changed)).into());
        }
        rewrapped.push(new);
    }
    Ok(rewrapped)
}

async fn list_nodes_without(
    connection: &mut PgConnection,
    wrapping: &WrappingKeys,
) -> Result<Vec<NodeWrappingKeys>, sqlx::Error> {
    let target = wrapping.current().id();
    let mut nodes = list_live_nodes(connection).await?;
    nodes.retain(|node| !node.has(&target));
    Ok(nodes)
}

impl NodeWrappingKeys {
    fn has(&self, id: &WrappingKeyId) -> bool {
        let mut keys = self.wrapping_keys.iter().flatten();
        keys.any(|key| key == id.as_str())
    }
}

/// A node is live until its lease ends.
async fn list_live_nodes(connection: &mut PgConnection) -> Result<Vec<NodeWrappingKeys>, sqlx::Error> {
    sqlx::query_as!(
        NodeWrappingKeys,
        r#"SELECT node, wrapping_keys FROM nodes WHERE lease_until >= clock_timestamp() ORDER BY node COLLATE "C""#
    )
    .fetch_all(connection)
    .await
}

async fn update(
    connection: &mut PgConnection,
    before: &WrappedKey,
    after: &WrappedKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE data_keys SET wrapped = $2, wrapped_by = $3 WHERE key_id = $1",
        after.key_id.0,
        after.wrapped,
        after.wrapped_by.as_str(),
    )
    .execute(&mut *connection)
    .await?;
    audit::write(
        connection,
        &AuditActor::command_line(),
        AuditAction::RewrapDataKeys,
        &after.key_id,
        Some(&DataKeyState::of(before)),
        Some(&DataKeyState::of(after)),
    )
    .await
}
