//! Reads of the audit export, and its position at each HTTP endpoint.
//!
//! One node at a time exports to an endpoint: it holds a lease, which each accepted batch prolongs. A node
//! that lost its lease, such as a paused process, may send a batch that another node sends, too; only one of
//! them moves the position.

use std::collections::HashMap;
use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine};
use vouchsafe_domain::audit_log::AuditRow;

use crate::AuditLog;

/// A batch of entries ends with the checkpoint that reaches this number. A checkpoint has up to a thousand.
const MAX_BATCH_ENTRIES: usize = 500;

/// Checkpoints of a batch of entries. Each one read lists up to a thousand entries, 8 KB.
const MAX_COVERED_CHECKPOINTS: usize = 50;

/// Checkpoints of a batch without entries: some 250 KB.
const MAX_BATCH_CHECKPOINTS: usize = 1_000;

/// Longer than a request to an endpoint.
pub const EXPORT_LEASE_TIME: Duration = Duration::from_mins(1);

/// Which lines are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportContent {
    Checkpoints,
    /// The entries of each checkpoint, then the checkpoint.
    Entries,
}

/// The right to export to an endpoint, until it ends.
#[derive(Debug)]
pub struct ExportLease {
    endpoint: String,
    /// Number of the last checkpoint that the endpoint accepted.
    position: i64,
    leased_until: OffsetDateTime,
}

impl ExportLease {
    #[must_use]
    pub const fn position(&self) -> i64 {
        self.position
    }
}

#[derive(Debug)]
pub enum ExportLeaseOutcome {
    /// This node exports.
    Leased(ExportLease),
    /// The endpoint has accepted all checkpoints.
    Complete,
    /// Another node exports, or waits after a failure.
    LeasedByOther,
    /// The endpoint has accepted a checkpoint that the database does not have. The position was changed, or
    /// checkpoints were removed.
    Beyond { position: i64, newest: i64 },
}

struct CheckpointEntries {
    record: CheckpointRecord,
    audit_ids: Vec<i64>,
}

impl AuditLog {
    /// Reads the next lines after the checkpoint `position`, oldest first; the last one is a checkpoint.
    /// Empty if there is none. An entry that was removed from the database is left out: the hash of its
    /// checkpoint shows that.
    #[boxed]
    pub async fn read_export_batch(
        &self,
        position: i64,
        content: ExportContent,
    ) -> Result<Vec<ExportLine>, StoreError> {
        match content {
            ExportContent::Checkpoints => {
                let checkpoints = self.read_checkpoints(position + 1, MAX_BATCH_CHECKPOINTS);
                let lines = checkpoints.await?.into_iter();
                Ok(lines.map(ExportLine::AuditCheckpoint).collect())
            }
            ExportContent::Entries => self.read_entry_batch(position).await,
        }
    }

    async fn read_entry_batch(&self, position: i64) -> Result<Vec<ExportLine>, StoreError> {
        let checkpoints = self.checkpoints_after(position).await?;
        let mut entries = self.entries_of(&checkpoints).await?;
        let mut lines = Vec::new();
        for CheckpointEntries { record, audit_ids } in checkpoints {
            let rows = audit_ids.iter().filter_map(|audit_id| entries.remove(audit_id));
            lines.extend(rows.map(ExportLine::AuditEntry));
            lines.push(ExportLine::AuditCheckpoint(record));
        }
        Ok(lines)
    }

    async fn checkpoints_after(&self, position: i64) -> Result<Vec<CheckpointEntries>, StoreError> {
        let checkpoints = sqlx::query!(
            r#"SELECT s.number, s.at, encode(s.hash, 'hex') AS "hash!", COALESCE(encode(s.mac, 'hex'), '') AS "mac!", s.entries
                 FROM (
                      SELECT c.*, sum(cardinality(c.entries)) OVER (ORDER BY c.number) AS total
                        FROM (
                             SELECT * FROM audit_checkpoints WHERE number > $1 ORDER BY number LIMIT $2
                            ) AS c
                      ) AS s
                WHERE s.total - cardinality(s.entries) < $3::bigint
                ORDER BY s.number"#,
            position,
            to_bigint(MAX_COVERED_CHECKPOINTS),
            to_bigint(MAX_BATCH_ENTRIES),
        );
        let checkpoints = checkpoints.map(|row| CheckpointEntries {
            record: CheckpointRecord {
                number: row.number,
                at: row.at,
                hash: row.hash,
                mac: row.mac,
            },
            audit_ids: row.entries,
        });
        self.0.fetch_all(checkpoints).await
    }

    async fn entries_of(
        &self,
        checkpoints: &[CheckpointEntries],
    ) -> Result<HashMap<i64, AuditRow>, StoreError> {
        let audit_ids: Vec<i64> = checkpoints
            .iter()
            .flat_map(|checkpoint| checkpoint.audit_ids.iter().copied())
            .collect();
        let entries = sqlx::query_as!(
            AuditRow,
            r#"SELECT audit_id, at, operator, action, subject, before::text, after::text, trace_id, partner_id AS "partner_id: _"
                 FROM audit_log
                WHERE audit_id = ANY ($1)"#,
            &audit_ids,
        );
        let entries = entries.map(|entry| (entry.audit_id, entry));
        Ok(self.0.fetch_all(entries).await?.into_iter().collect())
    }

    /// Leases an endpoint, if there is something to export. `endpoint` is the keyed hash of its URL; a new
    /// endpoint receives everything.
    #[boxed]
    pub async fn lease_export(&self, endpoint: &str) -> Result<ExportLeaseOutcome, StoreError> {
        let state = sqlx::query!(
            r#"SELECT COALESCE(x.position, 0) AS "position!", COALESCE(s.newest, 0) AS "newest!"
                 FROM (SELECT max(number) AS newest FROM audit_checkpoints) AS s
                 LEFT JOIN audit_exports AS x ON x.endpoint = $1"#,
            endpoint,
        );
        let state = self.0.fetch_all(state.map(|row| (row.position, row.newest)));
        match state.await?.first() {
            Some((position, newest)) if position > newest => {
                return Ok(ExportLeaseOutcome::Beyond {
                    position: *position,
                    newest: *newest,
                });
            }
            Some((position, newest)) if position == newest => return Ok(ExportLeaseOutcome::Complete),
            _ => {}
        }
        // Once the row is locked, the clock is read again. A lease that is longer than a lease can be was
        // taken before the clock was set back.
        let leased = sqlx::query!(
            r#"INSERT INTO audit_exports AS x (endpoint, leased_until)
               VALUES ($1, clock_timestamp() + $2::interval)
               ON CONFLICT (endpoint) DO UPDATE
               SET leased_until = clock_timestamp() + $2::interval
               WHERE x.leased_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + $2::interval
               RETURNING position, leased_until"#,
            endpoint,
            EXPORT_LEASE_TIME as _,
        );
        let leased = leased.map(|row| (row.position, row.leased_until));
        Ok(match self.0.fetch_optional(leased).await? {
            Some((position, leased_until)) => ExportLeaseOutcome::Leased(ExportLease {
                endpoint: endpoint.to_owned(),
                position,
                leased_until,
            }),
            None => ExportLeaseOutcome::LeasedByOther,
        })
    }

    /// Moves the position to an accepted checkpoint and prolongs the lease. Returns false if another node has
    /// taken over.
    ///
    /// # Errors
    /// The endpoint then receives the batch again.
    #[boxed]
    pub async fn confirm_export(&self, lease: &mut ExportLease, accepted: i64) -> Result<bool, StoreError> {
        let confirmed = sqlx::query_scalar!(
            "UPDATE audit_exports
                SET position = $3, leased_until = clock_timestamp() + $4::interval
              WHERE endpoint = $1 AND leased_until = $2
             RETURNING leased_until",
            lease.endpoint,
            lease.leased_until,
            accepted,
            EXPORT_LEASE_TIME as _,
        );
        let confirmed = self
            .0
            .run(|pool| async move { confirmed.fetch_optional(&pool).await });
        let Some(leased_until) = confirmed.await? else {
            return Ok(false);
        };
        lease.position = accepted;
        lease.leased_until = leased_until;
        Ok(true)
    }

    /// Gives the lease back; the next node can take it after `delay`.
    ///
    /// # Errors
    /// The lease then ends by itself.
    #[boxed]
    pub async fn release_export(&self, lease: ExportLease, delay: Duration) -> Result<(), StoreError> {
        let released = sqlx::query!(
            "UPDATE audit_exports
                SET leased_until = clock_timestamp() + $3::interval
              WHERE endpoint = $1 AND leased_until = $2",
            lease.endpoint,
            lease.leased_until,
            delay as _,
        );
        self.0
            .run(|pool| async move { released.execute(&pool).await.map(drop) })
            .await
    }
}
