//! Which environment a database belongs to: stamped once, and refused by the other ever after (contract §1).

use super::PgStore;
use crate::access::environment::Environment;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
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
    /// It does not answer.
    #[error("the database does not answer")]
    Database(#[from] sqlx::Error),
}

impl PgStore {
    /// Stamps an unused database with its environment, or checks the stamp of a used one.
    ///
    /// # Errors
    /// [`StampError`].
    pub async fn stamp_environment(&self, wanted: Environment) -> Result<(), StampError> {
        let word = wanted.as_str();
        let found: String = self
            .run(move |pool| async move {
                sqlx::query("INSERT INTO deployment (environment) VALUES ($1) ON CONFLICT DO NOTHING")
                    .bind(word)
                    .execute(&pool)
                    .await?;
                sqlx::query_scalar("SELECT environment FROM deployment")
                    .fetch_one(&pool)
                    .await
            })
            .await?;
        if found == word {
            Ok(())
        } else {
            Err(StampError::OtherEnvironment { found, wanted })
        }
    }
}
