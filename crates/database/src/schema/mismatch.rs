//! Differences between the schema of a database and the one of this program.

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What distinguishes the schema of a database from the one of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    #[error(
        "the database lacks migration {0}: run `vouchsafe migrate` of this version, {this}, before \
         `vouchsafe serve`, or serve with an earlier version", this = VERSION
    )]
    MissingMigration(i64),
    /// A migration has removed what this program uses.
    #[error(
        "the database needs a program with migration {migration}, and version {this} ends with migration {newest}: install version \
         {version} or a later one", this = VERSION
    )]
    TooOld {
        migration: i64,
        version: String,
        newest: i64,
    },
    #[error(
        "the database was set up by a version before 1.0.0-rc.1, and later versions do not migrate it: \
         serve it with the version that set it up, or let this one begin with an empty database"
    )]
    BeforeBaseline,
    #[error("migration {0} of the database differs from this program's: run a released version")]
    ChangedMigration(i64),
    #[error(
        "the database lacks the function {0}, or has another text of it: run `vouchsafe migrate` of this \
         version before `vouchsafe serve`"
    )]
    Function(String),
    #[error(
        "the database lacks the rights that this version grants: run `vouchsafe migrate` of this version before `vouchsafe serve`"
    )]
    Rights,
}

impl From<SchemaMismatch> for sqlx::Error {
    fn from(mismatch: SchemaMismatch) -> Self {
        Self::Configuration(Box::new(mismatch))
    }
}
