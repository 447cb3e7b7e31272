//! Audit checkpoints: a hash chain over the audit log, with which `verify` detects changed, removed or
//! inserted entries.
//!
//! A checkpoint is the SHA-256 of the previous checkpoint's hash and of the canonical texts of the entries it
//! lists, in id order. Checkpoints are written after the entries commit, by one node at a time, so writers of
//! entries do not wait. Entries become visible out of id order: a checkpoint therefore lists its entries one
//! by one, and a late entry goes into a later one.
//!
//! An id more than [`MAX_ID_LAG`] below the newest id in a checkpoint is either in a checkpoint or was never
//! committed. The chain cannot detect that its newest checkpoints were removed together with their entries;
//! therefore each is also logged, and the service exports them (`export.rs`). Each checkpoint has an HMAC
//! under a key of the vault, so that the database alone does not suffice to compute the chain anew.

use sqlx::PgConnection;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::audit_export::CheckpointRecord;
use vouchsafe_domain::audit_log::CheckpointRow;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;

use crate::{AuditActor, AuditLog, NO_STATE};

/// How far the ids of visible entries can be out of order. At several thousand code retrievals per second
/// this covers the timeouts of a statement and of an idle transaction. The invariant `audit.checkpoints`
/// contains the same number.
const MAX_ID_LAG: i64 = 100_000;

/// Bounds one statement to a few hundred kilobytes of text.
const MAX_CHECKPOINT_ENTRIES: usize = 1_000;

/// Key of the advisory lock that prevents two checkpoints with the same predecessor. Any otherwise unused
/// number.
const CHECKPOINT_LOCK: i64 = 0x5653_7365_616c_0000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheckpoint {
    /// Number of the checkpoint, from 1.
    pub number: i64,
    /// Number of listed entries.
    pub entries: usize,
    /// SHA-256 in hexadecimal digits.
    pub hash: String,
}

impl AuditCheckpoint {
    /// Whether more entries may wait for a checkpoint.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.entries >= MAX_CHECKPOINT_ENTRIES
    }
}

impl AuditLog {
    /// Writes a checkpoint over the oldest entries that are in none. Returns `None` if there are no such
    /// entries or if another node is writing one.
    ///
    /// # Errors
    /// The next call covers the same entries.
    #[boxed]
    pub async fn write_checkpoint(&self, key: CheckpointKey) -> Result<Option<AuditCheckpoint>, StoreError> {
        transaction!(self.0, "audit_checkpoint.write", async |transaction| {
            let locked = sqlx::query_scalar!(
                r#"SELECT pg_try_advisory_xact_lock($1) AS "locked!""#,
                CHECKPOINT_LOCK
            );
            match locked.fetch_one(&mut **transaction).await? {
                true => write_next(transaction, &key).await,
                false => Ok(None),
            }
        })
    }

    /// Writes an entry of `actor`, and checkpoints over it and all earlier entries. Waits for another node
    /// that writes one. Returns the newest checkpoint.
    ///
    /// # Errors
    /// The checkpoints that were written stay.
    #[boxed]
    pub async fn write_checkpoints_now(
        &self,
        key: CheckpointKey,
        actor: AuditActor,
    ) -> Result<Option<CheckpointRow>, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                crate::write(
                    &mut connection,
                    &actor,
                    AuditAction::WriteCheckpoints,
                    "audit_log",
                    NO_STATE,
                    NO_STATE,
                )
                .await
            })
            .await?;
        loop {
            let mac_key = key.clone();
            let written = transaction!(self.0, "audit_checkpoint.write", async |transaction| {
                sqlx::query!("SELECT pg_advisory_xact_lock($1)", CHECKPOINT_LOCK)
                    .execute(&mut **transaction)
                    .await?;
                write_next(transaction, &mac_key).await
            });
            // Of the other entries another node may have written a checkpoint already, while this one waited
            // for it.
            if !written?.is_some_and(|checkpoint| checkpoint.is_full()) {
                break;
            }
        }
        let newest = self.list_checkpoints(None, 1, Some(key)).await?;
        Ok(newest.into_iter().next())
    }

    /// Reads up to `limit` checkpoints from the number `first`, oldest first.
    #[boxed]
    pub async fn read_checkpoints(
        &self,
        first: i64,
        limit: usize,
    ) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                read_checkpoints(&mut connection, first, limit).await
            })
            .await
    }
}

/// Reads records of checkpoints of a table. The owner of the table can remove an HMAC: none is no valid one.
macro_rules! read_records {
    ($connection:expr, $first:expr, $limit:expr, $table:literal) => {
        sqlx::query_as!(
            CheckpointRecord,
            r#"SELECT number, at, encode(hash, 'hex') AS "hash!", COALESCE(encode(mac, 'hex'), '') AS "mac!" FROM "#
                + $table
                + " WHERE number >= $1 ORDER BY number LIMIT $2",
            $first,
            to_bigint($limit),
        )
        .fetch_all($connection)
        .await
    };
}

/// Same as [`AuditLog::read_checkpoints`], without the service.
#[boxed]
pub async fn read_checkpoints(
    connection: &mut PgConnection,
    first: i64,
    limit: usize,
) -> Result<Vec<CheckpointRecord>, sqlx::Error> {
    read_records!(connection, first, limit, "audit_checkpoints")
}

/// Reads up to `limit` records of archived checkpoints from the number `first`, oldest first: hash and HMAC
/// of the entries that stay.
#[boxed]
pub async fn read_archived_checkpoints(
    connection: &mut PgConnection,
    first: i64,
    limit: usize,
) -> Result<Vec<CheckpointRecord>, sqlx::Error> {
    read_records!(connection, first, limit, "archived_checkpoints")
}

impl AuditLog {
    /// Lists up to `limit` checkpoints with a number below `before`, newest first. With `key`, compares each
    /// with its entries.
    #[boxed]
    pub async fn list_checkpoints(
        &self,
        before: Option<i64>,
        limit: usize,
        key: Option<CheckpointKey>,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let checkpoints = sqlx::query!(
            r#"SELECT s.number,
                      s.at,
                      cardinality(s.entries)::bigint AS "entries!",
                      s.entries[cardinality(s.entries)] AS "newest_audit_id!",
                      encode(s.hash, 'hex') AS "hash!",
                      COALESCE(encode(s.mac, 'hex'), '') AS "mac!",
                      CASE
                          -- Reads of codes are archived; the hash is that of the entries that stay.
                          WHEN x.hash IS NOT NULL THEN x.hash = sha256(s.hash || convert_to(COALESCE(t.text, ''), 'UTF8'))
                          ELSE (t.existing = cardinality(s.entries)
                                AND s.hash = sha256(COALESCE(b.hash, '') || convert_to(t.text, 'UTF8'))) IS TRUE
                      END AS "has_entries!"
                 FROM (
                      SELECT *
                        FROM audit_checkpoints
                       WHERE $1::bigint IS NULL OR number < $1
                       ORDER BY number DESC
                       LIMIT $2
                      ) AS s
                 LEFT JOIN audit_checkpoints AS b ON b.number = s.number - 1
                 LEFT JOIN archived_checkpoints AS x ON x.number = s.number
                CROSS JOIN LATERAL (
                      SELECT count(a.audit_id) AS existing, string_agg(a.text, E'\n' ORDER BY e.audit_id) AS text
                        FROM unnest(CASE WHEN $3 THEN s.entries ELSE '{}' END) AS e (audit_id)
                        LEFT JOIN LATERAL (
                              SELECT a.audit_id, audit_entry_text_v1(a) AS text
                                FROM audit_log AS a
                               WHERE a.audit_id = e.audit_id
                              OFFSET 0
                             ) AS a ON true
                     ) AS t
                ORDER BY s.number DESC"#,
            before,
            to_bigint(limit),
            key.is_some(),
        )
        .map(move |row| {
            let is_ours = |key: &CheckpointKey| key.is_mac_of(&row.mac, row.number, row.at, &row.hash);
            let is_intact = key.as_ref().map(|key| row.has_entries && is_ours(key));
            CheckpointRow {
                number: row.number,
                at: row.at,
                entries: row.entries,
                newest_audit_id: row.newest_audit_id,
                hash: row.hash,
                is_intact,
            }
        });
        self.0.fetch_all(checkpoints).await
    }
}

/// The transaction holds the lock.
async fn write_next(
    connection: &mut PgConnection,
    key: &CheckpointKey,
) -> Result<Option<AuditCheckpoint>, sqlx::Error> {
    // A separate statement, whose snapshot includes the checkpoint of the previous lock holder.
    let next = sqlx::query!(
        r#"WITH floor AS MATERIALIZED (
            SELECT COALESCE(max(s.entries[cardinality(s.entries)]), $1) - $1 AS audit_id FROM audit_checkpoints AS s
         ), covered AS MATERIALIZED (
            SELECT e.audit_id
              FROM audit_checkpoints AS s
             CROSS JOIN unnest(s.entries) AS e (audit_id)
             WHERE s.entries[cardinality(s.entries)] > (SELECT f.audit_id FROM floor AS f)
         ), open AS MATERIALIZED (
            SELECT a.audit_id, audit_entry_text_v1(a) AS text
              FROM audit_log AS a
             WHERE a.audit_id > (SELECT f.audit_id FROM floor AS f)
               AND a.audit_id NOT IN (SELECT d.audit_id FROM covered AS d)
             ORDER BY a.audit_id
             LIMIT $2
         ), last AS MATERIALIZED (
            SELECT s.number, s.hash FROM audit_checkpoints AS s ORDER BY s.number DESC LIMIT 1
         )
         SELECT COALESCE((SELECT l.number FROM last AS l), 0) + 1 AS "number!",
                clock_timestamp() AS "at!",
                array_agg(o.audit_id ORDER BY o.audit_id) AS "entries!",
                encode(sha256(COALESCE((SELECT l.hash FROM last AS l), '')
                       || convert_to(string_agg(o.text, E'\n' ORDER BY o.audit_id), 'UTF8')), 'hex') AS "hash!"
           FROM open AS o
         HAVING count(*) > 0"#,
        MAX_ID_LAG,
        to_bigint(MAX_CHECKPOINT_ENTRIES),
    );
    let Some(next) = next.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    // The advisory lock keeps the number and the chain's last hash until the commit.
    sqlx::query!(
        "INSERT INTO audit_checkpoints (number, at, entries, hash, mac)
         VALUES ($1, $2, $3, decode($4, 'hex'), decode($5, 'hex'))",
        next.number,
        next.at,
        &next.entries,
        next.hash,
        key.mac(next.number, next.at, &next.hash),
    )
    .execute(&mut *connection)
    .await?;
    Ok(Some(AuditCheckpoint {
        number: next.number,
        entries: next.entries.len(),
        hash: next.hash,
    }))
}
