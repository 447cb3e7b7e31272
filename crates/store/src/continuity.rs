//! Continuity of the database: detects that it was restored, or that another server took over, and
//! quarantines the free stock.
//!
//! A voucher that is free in a restored database may have been sold after the backup. The primary key of
//! `allocations` cannot tell, because its row is lost. The first lane that connects to such a database
//! therefore quarantines all free stock before it commits anything
//! (`docs/decisions/0016-quarantine-after-restore.md`):
//!
//! | Evidence | Recognised by |
//! |---|---|
//! | another cluster | system identifier |
//! | point-in-time recovery, promoted standby | timeline |
//! | restored dump, copied database | oids of the database and of `allocations` |
//! | an acknowledged commit of this process is missing | batch number and generation of the lane |
//!
//! A quarantine raises the epoch of the row `continuity`, whatever the amount of stock: chunks that were
//! cleared in an earlier epoch are not claimed, and a commit rejects what a shelf in memory still offers of
//! them. A release clears chunks for the current epoch.
//!
//! It also replaces the id of the history, under which leases of endpoints are held: a delivery actor that
//! has read events which the database has lost writes nothing.

use serde::Serialize;
use sqlx::{Connection as _, PgConnection};
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_domain::audit_action::AuditAction;

/// Subject of the audit entries: the stock of all SKUs.
const SUBJECT: &str = "stock";

/// Audited state of a quarantine.
#[derive(Serialize)]
struct QuarantineAuditState<'a> {
    epoch: i64,
    reason: &'a str,
}

/// The server and the tables behind a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerIdentity {
    system_identifier: i64,
    timeline: i64,
    database_oid: i64,
    table_oid: i64,
}

impl ServerIdentity {
    /// Whether the tables are others than before, though on the same timeline: they were restored or copied.
    pub(super) const fn has_other_tables(self, last: Self) -> bool {
        self.database_oid != last.database_oid || self.table_oid != last.table_oid
    }

    /// Why commits may be missing, compared with the server that the service last wrote to.
    const fn difference_from(self, last: Self) -> Option<&'static str> {
        if self.system_identifier != last.system_identifier {
            Some("the database runs in another cluster")
        } else if self.has_other_tables(last) {
            Some("the database was restored from a dump or copied")
        } else if self.timeline != last.timeline {
            Some("the database has another timeline: point-in-time recovery or failover")
        } else {
            None
        }
    }
}

/// Records the server at the first use of the database, and quarantines the free stock if it is not the
/// recorded one.
pub(super) async fn check(connection: &mut PgConnection) -> Result<ServerIdentity, sqlx::Error> {
    let current = load_current(connection).await?;
    let recorded = load_recorded(connection).await?;
    let recorded = match recorded {
        Some(recorded) => recorded,
        None => record_first(connection, current).await?,
    };
    if current.difference_from(recorded).is_some() {
        quarantine(connection, None, &AuditActor::service()).await?;
    }
    Ok(current)
}

/// The timeline comes from the current WAL position: the control file has the new one only after a
/// checkpoint.
async fn load_current(connection: &mut PgConnection) -> Result<ServerIdentity, sqlx::Error> {
    sqlx::query_as!(
        ServerIdentity,
        r#"SELECT s.system_identifier AS "system_identifier!",
                  ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint AS "timeline!",
                  d.oid::bigint AS "database_oid!",
                  'allocations'::regclass::oid::bigint AS "table_oid!"
             FROM pg_control_system() AS s
            CROSS JOIN pg_database AS d
            WHERE d.datname = current_database()"#,
    )
    .fetch_one(connection)
    .await
}

async fn load_recorded(connection: &mut PgConnection) -> Result<Option<ServerIdentity>, sqlx::Error> {
    sqlx::query_as!(
        ServerIdentity,
        "SELECT system_identifier, timeline, database_oid, table_oid FROM continuity",
    )
    .fetch_optional(connection)
    .await
}

/// Records the server at the first use. Returns what is recorded: another connection may have been first.
async fn record_first(
    connection: &mut PgConnection,
    current: ServerIdentity,
) -> Result<ServerIdentity, sqlx::Error> {
    let recorded = sqlx::query!(
        "INSERT INTO continuity (system_identifier, timeline, database_oid, table_oid)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        current.system_identifier,
        current.timeline,
        current.database_oid,
        current.table_oid,
    );
    recorded.execute(&mut *connection).await?;
    Ok(load_recorded(connection).await?.unwrap_or(current))
}

/// Quarantines all stock that is free now, and records the server. Without a `reason` it does so only if the
/// server is not the recorded one.
pub(super) async fn quarantine(
    connection: &mut PgConnection,
    reason: Option<&str>,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let current = load_current(&mut transaction).await?;
    record_first(&mut transaction, current).await?;
    // A commit writes its lane's row before it reads the epoch. Those in flight are waited for, later ones
    // read the new epoch.
    sqlx::query!("LOCK TABLE lanes IN SHARE MODE /* guard: running-commits */")
        .execute(&mut *transaction)
        .await?;
    // Several lanes detect the change at once: the first one quarantines, the others find the server
    // recorded.
    let recorded = sqlx::query_as!(
        ServerIdentity,
        "SELECT system_identifier, timeline, database_oid, table_oid FROM continuity FOR UPDATE",
    );
    let recorded = recorded.fetch_one(&mut *transaction).await?;
    let Some(reason) = reason.or(current.difference_from(recorded)) else {
        return Ok(());
    };
    let epoch = sqlx::query_scalar!(
        "UPDATE continuity
            SET system_identifier = $1,
                timeline = $2,
                database_oid = $3,
                table_oid = $4,
                quarantine_epoch = quarantine_epoch + 1,
                history = gen_random_uuid(),
                quarantined_at = COALESCE(quarantined_at, clock_timestamp()),
                quarantine_reason = COALESCE(quarantine_reason, $5),
                compared_at = NULL,
                last_code_id = COALESCE(last_code_id, (SELECT max(code_id) FROM codes), 0)
         RETURNING quarantine_epoch",
        current.system_identifier,
        current.timeline,
        current.database_oid,
        current.table_oid,
        reason,
    );
    let epoch = epoch.fetch_one(&mut *transaction).await?;
    let state = QuarantineAuditState { epoch, reason };
    write_audit_entry(&mut transaction, actor, AuditAction::QuarantineStock, &state).await?;
    transaction.commit().await?;
    tracing::error!(
        stock.quarantine_epoch = epoch,
        reason,
        "free stock quarantined; compare it with what was sold, then release it"
    );
    Ok(())
}

/// Writes the audit entry of a change to the stock of all SKUs.
pub(super) async fn write_audit_entry(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: AuditAction,
    state: &(impl Serialize + Sync),
) -> Result<(), sqlx::Error> {
    audit::write(connection, actor, action, SUBJECT, NO_STATE, Some(state)).await
}
