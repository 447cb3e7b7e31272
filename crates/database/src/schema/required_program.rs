//! The oldest program that can use the schema, and the nodes that run older ones.
//!
//! A migration that removes something first requires the programs that no longer use it. A node registers and
//! then reads the requirement; the requirement is written under a lock of the table of nodes. So either the
//! node reads it, or the migration finds the node.

use std::fmt;

use sqlx::{Connection as _, PgConnection};

use super::migrations::ProgramRequirement;
use super::mismatch::SchemaMismatch;

/// A migration that was not run: it removes what programs of live nodes use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredMigration {
    pub migration: i64,
    required: ProgramRequirement,
    /// Names of the nodes with their versions.
    nodes: Vec<String>,
}

impl fmt::Display for DeferredMigration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "migration {} removes what these nodes use: {}; upgrade them to version {} or a later one, and \
             run `vouchsafe migrate` again",
            self.migration,
            self.nodes.join(", "),
            self.required.version
        )
    }
}

/// Requires a program from now on, unless live nodes run earlier ones.
pub(super) async fn require(
    connection: &mut PgConnection,
    migration: i64,
    required: &ProgramRequirement,
) -> Result<Option<DeferredMigration>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("LOCK TABLE nodes IN SHARE MODE")
        .execute(&mut *transaction)
        .await?;
    let nodes: Vec<String> = sqlx::query_scalar(
        "SELECT format('%s (%s)', n.node, n.version)
           FROM nodes AS n
          WHERE is_lease_live_v1(n.lease_until, n.renewed_at)
            AND (n.program_incarnation = n.incarnation AND n.program_migration >= $1) IS NOT TRUE
          ORDER BY n.node",
    )
    .bind(required.migration)
    .fetch_all(&mut *transaction)
    .await?;
    if !nodes.is_empty() {
        return Ok(Some(DeferredMigration {
            migration,
            required: required.clone(),
            nodes,
        }));
    }
    sqlx::query("UPDATE required_program SET migration = $1, version = $2 WHERE migration < $1")
        .bind(required.migration)
        .bind(&required.version)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await.map(|()| None)
}

/// Whether a program whose last migration is `newest` is too old for the schema.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
pub async fn find_too_old(
    connection: &mut PgConnection,
    newest: i64,
) -> Result<Option<SchemaMismatch>, sqlx::Error> {
    let has_requirement: bool = sqlx::query_scalar("SELECT to_regclass('required_program') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !has_requirement {
        return Ok(None);
    }
    let required: Option<(i64, String)> =
        sqlx::query_as("SELECT migration, version FROM required_program WHERE migration > $1")
            .bind(newest)
            .fetch_optional(connection)
            .await?;
    Ok(required.map(|(migration, version)| SchemaMismatch::TooOld {
        migration,
        version,
        newest,
    }))
}
