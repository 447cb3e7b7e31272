//! Which environment a database belongs to, and whether it may be trusted with money: asked before anything is written.
//!
//! Rule: a database of the other environment is refused as it is found (contract §1): not migrated, not stamped.

use sqlx::PgPool;

use super::error::{describe, may_pass};
use super::{PgStore, on, schema};
use crate::access::environment::Environment;

/// Settings of the server without which an answer is not durable.
const DURABLE: [&str; 2] = ["fsync", "full_page_writes"];

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It belongs to the other environment.
    #[error(
        "the database belongs to the {found} environment, and this service is {wanted}: give each its own"
    )]
    OtherEnvironment {
        /// What the database says.
        found: String,
        /// What this service is.
        wanted: Environment,
    },
    /// Its server may lose what it has acknowledged.
    #[error("the database server has {setting} off: production needs it on")]
    NotDurable {
        setting: &'static str,
    },
    /// It does not answer, or its schema is not ours.
    #[error("the database cannot be used: {}", describe(.0))]
    Database(#[from] sqlx::Error),
}

impl PrepareError {
    /// Whether the database may only be starting.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Database(error) if may_pass(error))
    }
}

impl PgStore {
    /// Checks the database, brings its schema up to date, and stamps an unused one with its environment.
    ///
    /// # Errors
    /// [`PrepareError`].
    pub async fn prepare(&self, wanted: Environment) -> Result<(), PrepareError> {
        let off = self.run(|pool| async move { settings_off(&pool).await }).await?;
        if let Some(setting) = off {
            match wanted {
                Environment::Production => return Err(PrepareError::NotDurable { setting }),
                Environment::Sandbox => {
                    tracing::warn!(setting, "the database server may lose what it has acknowledged")
                }
            }
        }
        let found = self.run(|pool| async move { stamp(&pool).await }).await?;
        refuse_other(found, wanted)?;
        let database = self.database.clone();
        on(
            &self.runtime,
            async move { schema::bring_up_to_date(&database).await },
        )
        .await?;
        let found = self.run(move |pool| async move { stamp_with(&pool, wanted).await });
        refuse_other(Some(found.await?), wanted)
    }
}

fn refuse_other(found: Option<String>, wanted: Environment) -> Result<(), PrepareError> {
    match found {
        Some(found) if found != wanted.as_str() => Err(PrepareError::OtherEnvironment { found, wanted }),
        _ => Ok(()),
    }
}

async fn settings_off(pool: &PgPool) -> Result<Option<&'static str>, sqlx::Error> {
    for setting in DURABLE {
        let value: String = sqlx::query_scalar("SELECT current_setting($1)")
            .bind(setting)
            .fetch_one(pool)
            .await?;
        if value == "off" {
            return Ok(Some(setting));
        }
    }
    Ok(None)
}

/// The stamp of a database that has one.
async fn stamp(pool: &PgPool) -> Result<Option<String>, sqlx::Error> {
    let has_table: bool = sqlx::query_scalar("SELECT to_regclass('deployment') IS NOT NULL")
        .fetch_one(pool)
        .await?;
    if !has_table {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT environment FROM deployment")
        .fetch_optional(pool)
        .await
}

async fn stamp_with(pool: &PgPool, wanted: Environment) -> Result<String, sqlx::Error> {
    sqlx::query("INSERT INTO deployment (environment) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(wanted.as_str())
        .execute(pool)
        .await?;
    sqlx::query_scalar("SELECT environment FROM deployment")
        .fetch_one(pool)
        .await
}
