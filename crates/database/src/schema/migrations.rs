//! Migrations of a program: those that add, and those that remove what earlier programs use.
//!
//! | Kind | Declared in the first lines of its file | Runs |
//! |---|---|---|
//! | expand | `-- expand` | while earlier programs serve |
//! | contract | `-- contract: 12 (1.1.0)`: version 1.1.0, with migration 12, no longer uses what it removes | once no earlier program serves |

use sqlx::PgConnection;
use sqlx::migrate::{Migration, Migrator};

use super::mismatch::SchemaMismatch;

/// Version of the first migration, the schema of the first release.
const BASELINE: i64 = 1;

/// What a migration asks of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationKind {
    Expand,
    Contract(ProgramRequirement),
}

/// The first program that no longer uses what a migration removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRequirement {
    /// Its last migration, or an earlier one that no program before it has.
    pub migration: i64,
    pub version: String,
}

impl MigrationKind {
    /// The kind that the first lines of a migration declare.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut comments = text.lines().map_while(|line| line.strip_prefix("-- "));
        comments.find_map(|comment| {
            if comment == "expand" {
                return Some(Self::Expand);
            }
            let required = comment.strip_prefix("contract: ")?.strip_suffix(')')?;
            let (migration, version) = required.split_once(" (")?;
            Some(Self::Contract(ProgramRequirement {
                migration: migration.parse().ok()?,
                version: version.to_owned(),
            }))
        })
    }

    fn of(migration: &Migration) -> Self {
        // Those of 1.0.0-rc.1 declare none, and remove nothing that a program needs. A test refuses others.
        Self::parse(migration.sql.as_str()).unwrap_or(Self::Expand)
    }
}

/// The migrations of a program.
#[derive(Debug)]
pub struct Migrations(Migrator);

impl Migrations {
    /// Those of this program.
    #[must_use]
    pub fn of_program() -> Self {
        Self(sqlx::migrate!("../../migrations"))
    }

    /// The version of the last one.
    #[must_use]
    pub fn newest(&self) -> i64 {
        let versions = self.0.iter().map(|migration| migration.version);
        versions.max().unwrap_or_default()
    }

    /// Whether no newer version of the program has migrated the database.
    pub(super) fn is_newest(&self, applied: &AppliedMigrations) -> bool {
        applied.0.iter().all(|(version, _)| *version <= self.newest())
    }

    pub(super) fn expanding(&self) -> impl Iterator<Item = &Migration> {
        let migrations = self.0.iter();
        migrations.filter(|migration| MigrationKind::of(migration) == MigrationKind::Expand)
    }

    pub(super) fn contracting(&self) -> impl Iterator<Item = (&Migration, ProgramRequirement)> {
        self.0
            .iter()
            .filter_map(|migration| match MigrationKind::of(migration) {
                MigrationKind::Expand => None,
                MigrationKind::Contract(required) => Some((migration, required)),
            })
    }

    /// Finds a migration of this program that the database has run with another text. The first one differs
    /// in a database that a version before the baseline has set up.
    pub(super) fn find_changed(&self, applied: &AppliedMigrations) -> Option<SchemaMismatch> {
        let changed = applied.0.iter().find(|(version, checksum)| {
            let mut migrations = self.0.iter();
            migrations.any(|migration| migration.version == *version && *migration.checksum != **checksum)
        });
        changed.map(|(version, _)| match *version {
            BASELINE => SchemaMismatch::BeforeBaseline,
            version => SchemaMismatch::ChangedMigration(version),
        })
    }
}

impl From<Migrator> for Migrations {
    fn from(migrator: Migrator) -> Self {
        Self(migrator)
    }
}

/// The migrations that a database has run, by version, with their checksums.
pub(super) struct AppliedMigrations(Vec<(i64, Vec<u8>)>);

impl AppliedMigrations {
    pub(super) async fn read(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let has_migrations: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
            .fetch_one(&mut *connection)
            .await?;
        if !has_migrations {
            return Ok(Self(Vec::new()));
        }
        sqlx::query_as("SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version")
            .fetch_all(connection)
            .await
            .map(Self)
    }

    pub(super) fn has(&self, migration: &Migration) -> bool {
        self.0.iter().any(|(version, _)| *version == migration.version)
    }
}

#[cfg(test)]
mod tests;
