//! Check that a database can be used: a connection of one's own to Postgres, in UTF-8, with the schema `public`.
//!
//! | Found | Why it is refused |
//! |---|---|
//! | two connections with one backend | a pooler changes the backend between statements: session locks, settings and prepared statements are lost |
//! | a session setting without effect | a pooler drops the startup parameter `options` |
//! | another encoding than UTF8 | texts would be stored in bytes that cannot be read back |
//! | another current schema than `public` | functions with the rights of their owner look up tables in `public` |

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

use crate::database::FIXED_SETTINGS;

/// Why a database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsuitableDatabase {
    #[error(
        "DATABASE_URL leads to a pooler in transaction or statement mode, such as PgBouncer with pool_mode = transaction: the service needs \
         connections of its own; connect to Postgres directly"
    )]
    TransactionPooler,
    #[error(
        "DATABASE_URL leads to a pooler that drops the session settings of the startup parameter options, such as PgBouncer with \
         ignore_startup_parameters: connect to Postgres directly"
    )]
    SettingsDropped,
    #[error(
        "the database has the encoding {0}: create one with ENCODING 'UTF8', for example CREATE DATABASE vouchsafe ENCODING 'UTF8' TEMPLATE \
         template0"
    )]
    Encoding(String),
    #[error(
        "the role of DATABASE_URL creates tables in {found}, and the service needs schema public: ALTER ROLE {role} IN DATABASE {database} SET \
         search_path = public, and GRANT USAGE, CREATE ON SCHEMA public TO the owner of the database"
    )]
    Schema {
        /// Text for people.
        found: String,
        role: String,
        database: String,
    },
}

impl From<UnsuitableDatabase> for sqlx::Error {
    fn from(error: UnsuitableDatabase) -> Self {
        Self::Configuration(Box::new(error))
    }
}

/// A setting with which a connection shows that it has its settings: no server has it by default.
const PROBE: (&str, &str) = ("statement_timeout", "14987ms");

/// Statements on two connections in turn. A pooler gives the second one the backend that the first has returned.
const ROUNDS: usize = 3;

/// Checks the database of these options on two connections of its own.
///
/// # Errors
/// [`UnsuitableDatabase`] as [`sqlx::Error::Configuration`]; another error when the database does not answer.
pub async fn check_server(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let options = options.clone().options(FIXED_SETTINGS).options([PROBE]);
    let mut connections = [
        PgConnection::connect_with(&options).await?,
        PgConnection::connect_with(&options).await?,
    ];
    let mut backends = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = [0; 2];
        for (connection, backend) in connections.iter_mut().zip(&mut round) {
            *backend = sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()")
                .persistent(false)
                .fetch_one(connection)
                .await?;
        }
        backends.push(round);
    }
    if !are_own_backends(&backends) {
        return Err(UnsuitableDatabase::TransactionPooler.into());
    }
    let [mut connection, other] = connections;
    other.close().await?;
    let (probe, encoding, schema, role, database): (String, String, Option<String>, String, String) = sqlx::query_as(
        "SELECT current_setting('statement_timeout'), current_setting('server_encoding'), current_schema()::text, current_user::text,
                current_database()::text",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    if probe != PROBE.1 {
        return Err(UnsuitableDatabase::SettingsDropped.into());
    }
    if encoding != "UTF8" {
        return Err(UnsuitableDatabase::Encoding(encoding).into());
    }
    match schema.as_deref() {
        Some("public") => Ok(()),
        other => Err(UnsuitableDatabase::Schema {
            found: other.map_or_else(|| "no schema".to_owned(), |name| format!("schema {name}")),
            role,
            database,
        }
        .into()),
    }
}

/// Whether each connection had the same backend in all rounds, and no other one had it.
fn are_own_backends(rounds: &[[i32; 2]]) -> bool {
    rounds.iter().all(|[one, other]| one != other) && rounds.windows(2).all(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_that_changes_or_is_shared_is_that_of_a_pooler() {
        assert!(are_own_backends(&[[1, 2], [1, 2], [1, 2]]));
        for pooled in [[[1, 1], [1, 1]], [[1, 2], [2, 1]], [[1, 2], [1, 3]]] {
            assert!(!are_own_backends(&pooled), "{pooled:?}");
        }
    }
}
