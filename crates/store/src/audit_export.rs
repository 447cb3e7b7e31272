//! What the audit export reads, and its position at each HTTP endpoint.
//!
//! One node at a time exports to an endpoint: it holds a lease, which each accepted batch prolongs. A node that lost its lease, such as a
//! paused process, may send a batch that another node sends, too; only one of them moves the position.

use std::collections::HashMap;
use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine};
use vouchsafe_domain::audit_log::AuditRow;

use super::audit::{AuditLog, to_bigint};

/// A batch ends with the checkpoint that reaches this number of entries. A checkpoint has up to a thousand.
const MAX_BATCH_ENTRIES: usize = 500;

/// Bounds a batch of small checkpoints: some 200 KB without entries.
const MAX_BATCH_CHECKPOINTS: usize = 1_000;

/// Longer than a request to an endpoint.
pub const EXPORT_LEASE: Duration = Duration::from_mins(1);

/// What is exported of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportContent {
    /// The checkpoint itself.
    Checkpoints,
    /// Its entries, then the checkpoint.
    Entries,
}

/// The right to export to an endpoint, until the lease ends.
#[derive(Debug)]
pub struct ExportClaim {
    endpoint: String,
    /// Number of the last checkpoint that the endpoint accepted.
    position: i64,
    leased_until: OffsetDateTime,
}

impl ExportClaim {
    #[must_use]
    pub const fn position(&self) -> i64 {
        self.position
    }
}

#[derive(Debug)]
pub enum ClaimOutcome {
    /// This node exports.
    Claimed(ExportClaim),
    /// The endpoint has accepted all checkpoints.
    Complete,
    /// Another node exports, or the last attempt failed a short time ago.
    Leased,
}

struct CheckpointEntries {
    record: CheckpointRecord,
    audit_ids: Vec<i64>,
}

impl AuditLog {
    /// Reads the next checkpoints after `position`, oldest first, with their entries before each. Empty if there is none. An entry that was
    /// removed from the database is left out: the hash of its checkpoint shows that.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn read_export_batch(
        &self,
        position: i64,
        content: ExportContent,
    ) -> Result<Vec<ExportLine>, sqlx::Error> {
        let checkpoints = self.checkpoints_after(position).await?;
        let mut entries = match content {
            ExportContent::Checkpoints => HashMap::new(),
            ExportContent::Entries => self.entries_of(&checkpoints).await?,
        };
        let mut lines = Vec::new();
        for CheckpointEntries { record, audit_ids } in checkpoints {
            let rows = audit_ids.iter().filter_map(|audit_id| entries.remove(audit_id));
            lines.extend(rows.map(ExportLine::AuditEntry));
            lines.push(ExportLine::AuditCheckpoint(record));
        }
        Ok(lines)
    }

    async fn checkpoints_after(&self, position: i64) -> Result<Vec<CheckpointEntries>, sqlx::Error> {
        let checkpoints = sqlx::query!(
            r#"SELECT s.number, s.at, encode(s.hash, 'hex') AS "hash!", encode(s.mac, 'hex') AS mac, s.entries
                 FROM (
                      SELECT c.*, sum(cardinality(c.entries)) OVER (ORDER BY c.number) AS total
                        FROM (
                             SELECT * FROM audit_checkpoints WHERE number > $1 ORDER BY number LIMIT $2
                            ) AS c
                      ) AS s
                WHERE s.total - cardinality(s.entries) < $3::bigint
                ORDER BY s.number"#,
            position,
            to_bigint(MAX_BATCH_CHECKPOINTS),
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
    ) -> Result<HashMap<i64, AuditRow>, sqlx::Error> {
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

    /// Takes the lease of an endpoint, if there is something to export. `endpoint` is the keyed hash of its URL; a new endpoint receives
    /// everything.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn claim_export(&self, endpoint: &str) -> Result<ClaimOutcome, sqlx::Error> {
        // A lease that is longer than a lease can be was taken before the database's clock was set back.
        let claimed = sqlx::query!(
            r#"INSERT INTO audit_exports AS x (endpoint, leased_until)
               VALUES ($1, clock_timestamp() + $2::interval)
               ON CONFLICT (endpoint) DO UPDATE
               SET leased_until = EXCLUDED.leased_until
               WHERE x.leased_until NOT BETWEEN clock_timestamp() AND EXCLUDED.leased_until
                 AND EXISTS (SELECT FROM audit_checkpoints AS s WHERE s.number > x.position)
               RETURNING position, leased_until"#,
            endpoint,
            EXPORT_LEASE as _,
        );
        let claimed = claimed.map(|row| (row.position, row.leased_until));
        if let Some((position, leased_until)) = self.0.fetch_optional(claimed).await? {
            return Ok(ClaimOutcome::Claimed(ExportClaim {
                endpoint: endpoint.to_owned(),
                position,
                leased_until,
            }));
        }
        let is_complete = sqlx::query_scalar!(
            r#"SELECT NOT EXISTS (SELECT FROM audit_checkpoints AS s WHERE s.number > x.position) AS "is_complete!"
                 FROM audit_exports AS x
                WHERE x.endpoint = $1"#,
            endpoint,
        );
        let is_complete = self
            .0
            .run(|pool| async move { is_complete.fetch_one(&pool).await });
        Ok(if is_complete.await? {
            ClaimOutcome::Complete
        } else {
            ClaimOutcome::Leased
        })
    }

    /// Moves the position to an accepted checkpoint and prolongs the lease. `None` if another node has taken over.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The endpoint then receives the batch again.
    pub async fn confirm_export(
        &self,
        claim: ExportClaim,
        accepted: i64,
    ) -> Result<Option<ExportClaim>, sqlx::Error> {
        let confirmed = sqlx::query_scalar!(
            "UPDATE audit_exports
                SET position = $3, leased_until = clock_timestamp() + $4::interval
              WHERE endpoint = $1 AND leased_until = $2
             RETURNING leased_until",
            claim.endpoint,
            claim.leased_until,
            accepted,
            EXPORT_LEASE as _,
        );
        let leased_until = self
            .0
            .run(|pool| async move { confirmed.fetch_optional(&pool).await });
        Ok(leased_until.await?.map(|leased_until| ExportClaim {
            endpoint: claim.endpoint,
            position: accepted,
            leased_until,
        }))
    }

    /// Gives the lease back, so that the next node can take it after `delay`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The lease then ends by itself.
    pub async fn release_export(&self, claim: ExportClaim, delay: Duration) -> Result<(), sqlx::Error> {
        let released = sqlx::query!(
            "UPDATE audit_exports
                SET leased_until = clock_timestamp() + $3::interval
              WHERE endpoint = $1 AND leased_until = $2",
            claim.endpoint,
            claim.leased_until,
            delay as _,
        );
        self.0
            .run(|pool| async move { released.execute(&pool).await.map(drop) })
            .await
    }
}
