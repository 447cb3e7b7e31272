//! Identity of the server and of the tables behind a connection.

use sqlx::PgConnection;

/// The server and the tables behind a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerIdentity {
    pub(super) system_identifier: i64,
    pub(super) timeline: i64,
    pub(super) database_oid: i64,
    pub(super) table_oid: i64,
}

impl ServerIdentity {
    /// Whether a standby of the former server may have been promoted to this one.
    pub(super) const fn is_later_timeline_of(self, former: Self) -> bool {
        self.system_identifier == former.system_identifier
            && !self.has_other_tables(former)
            && self.timeline > former.timeline
    }

    /// Whether the tables are others than before, though on the same timeline: they were restored or copied.
    pub(super) const fn has_other_tables(self, last: Self) -> bool {
        self.database_oid != last.database_oid || self.table_oid != last.table_oid
    }

    /// Why commits may be missing, compared with the server that the service last wrote to.
    pub(super) const fn difference_from(self, last: Self) -> Option<&'static str> {
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

/// The timeline comes from the current WAL position: the control file has the new one only after a checkpoint.
pub(super) async fn load_current(connection: &mut PgConnection) -> Result<ServerIdentity, sqlx::Error> {
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
