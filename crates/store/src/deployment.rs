//! Database preparation at start: durability settings, environment check (production or sandbox), schema and
//! rights.
//!
//! A database of the other environment is rejected unchanged (contract §1).

use sqlx::PgPool;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::server_check::check_server;
use vouchsafe_security::environment::Environment;

use super::service_role::{self, ExcessRight};
use vouchsafe_database::database::Database;
use vouchsafe_database::error::{describe, is_transient};
use vouchsafe_database::schema::{self, SchemaMismatch};

/// Server settings without which an acknowledged commit may be lost.
const DURABILITY_SETTINGS: [&str; 2] = ["fsync", "full_page_writes"];

/// SQLSTATE of a missing right: the role was created, or given to the service, after the last `vouchsafe
/// migrate`.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(
        "the database belongs to the {found} environment, but this service runs in {expected}: use a separate database for each"
    )]
    OtherEnvironment { found: String, expected: Environment },
    #[error("the database server runs with {setting} = off: production requires it on")]
    NotDurable { setting: &'static str },
    #[error(transparent)]
    NotMigrated(#[from] SchemaMismatch),
    #[error(transparent)]
    ExcessRight(#[from] ExcessRight),
    #[error(
        "the role of DATABASE_URL lacks rights ({}): run `vouchsafe migrate` of this version with the URL of the owner",
        describe(.0)
    )]
    MissingRight(sqlx::Error),
    /// The database does not answer, or a migration fails.
    #[error("cannot prepare the database: {}", describe(.0))]
    Database(sqlx::Error),
}

impl From<StoreError> for PrepareError {
    fn from(error: StoreError) -> Self {
        sqlx::Error::from(error).into()
    }
}

impl From<sqlx::Error> for PrepareError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        if code.as_deref() == Some(INSUFFICIENT_PRIVILEGE) {
            Self::MissingRight(error)
        } else {
            Self::Database(error)
        }
    }
}

impl PrepareError {
    /// Whether the database may become reachable soon.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if is_transient(error))
    }
}

/// See [`super::store::PgStore::prepare`].
pub(super) async fn prepare(database: &Database, expected: Environment) -> Result<(), PrepareError> {
    let options = database.find_primary().await?;
    let checked = database.spawn(async move { check_server(&options).await.map_err(StoreError::from) });
    checked.await?;
    let disabled = database
        .run(|pool| async move { find_disabled_setting(&pool).await })
        .await?;
    if let Some(setting) = disabled {
        match expected {
            Environment::Production => return Err(PrepareError::NotDurable { setting }),
            Environment::Sandbox => {
                tracing::warn!(setting, "database server may lose acknowledged commits")
            }
        }
    }
    let found = database
        .run(|pool| async move { read_environment(&pool).await })
        .await?;
    check_environment(found, expected)?;
    let mismatch = database.run(|pool| async move { schema::find_mismatch(&pool).await });
    let mismatch = mismatch.await?;
    if let Some(too_old @ SchemaMismatch::TooOld { .. }) = mismatch {
        return Err(too_old.into());
    }
    match expected {
        // The operator decides when the schema of a production database changes.
        Environment::Production => {
            if let Some(mismatch) = mismatch {
                return Err(mismatch.into());
            }
            let excess = database.run(|pool| async move { service_role::find_excess_right(&pool).await });
            if let Some(excess) = excess.await? {
                return Err(excess.into());
            }
        }
        // A role that may not migrate serves a database that its owner has migrated.
        Environment::Sandbox if mismatch.is_some() => {
            let options = database.find_primary().await?;
            let report_wait = || tracing::info!("waiting for a migration by another program");
            database
                .spawn(async move { schema::migrate(&options, report_wait).await })
                .await?;
        }
        Environment::Sandbox => {}
    }
    let found = database.run(move |pool| async move { claim_environment(&pool, expected).await });
    check_environment(Some(found.await?), expected)
}

fn check_environment(found: Option<String>, expected: Environment) -> Result<(), PrepareError> {
    match found {
        Some(found) if found != expected.into_str() => {
            Err(PrepareError::OtherEnvironment { found, expected })
        }
        _ => Ok(()),
    }
}

async fn find_disabled_setting(pool: &PgPool) -> Result<Option<&'static str>, sqlx::Error> {
    for setting in DURABILITY_SETTINGS {
        let value = sqlx::query_scalar!(r#"SELECT current_setting($1) AS "value!""#, setting);
        if value.fetch_one(pool).await? == "off" {
            return Ok(Some(setting));
        }
    }
    Ok(None)
}

/// Returns `None` for an unused database.
async fn read_environment(pool: &PgPool) -> Result<Option<String>, sqlx::Error> {
    let has_table = sqlx::query_scalar!(r#"SELECT to_regclass('deployment') IS NOT NULL AS "exists!""#);
    if !has_table.fetch_one(pool).await? {
        return Ok(None);
    }
    sqlx::query_scalar!("SELECT environment FROM deployment")
        .fetch_optional(pool)
        .await
}

async fn claim_environment(pool: &PgPool, expected: Environment) -> Result<String, sqlx::Error> {
    sqlx::query!(
        "INSERT INTO deployment (environment) VALUES ($1) ON CONFLICT DO NOTHING",
        expected.into_str(),
    )
    .execute(pool)
    .await?;
    sqlx::query_scalar!("SELECT environment FROM deployment")
        .fetch_one(pool)
        .await
}
