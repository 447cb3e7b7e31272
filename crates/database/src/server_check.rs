//! Check that a database can be used: a connection of one's own to Postgres, in UTF-8, with the schema
//! `public`.
//!
//! | Found | Why it is refused |
//! |---|---|
//! | two connections with one backend | a pooler changes the backend between statements: session locks, settings and prepared statements are lost |
//! | another encoding than UTF8 | texts would be stored in bytes that cannot be read back |
//! | another current schema than `public` | functions with the rights of their owner look up tables in `public` |

use sqlx::Connection as _;
use sqlx::postgres::PgConnectOptions;

use crate::database::{COMMAND_SETTINGS, FIXED_SETTINGS};
use crate::session::open;

/// Why a database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsuitableDatabase {
    #[error(
        "DATABASE_URL leads to a pooler in transaction or statement mode, such as PgBouncer with pool_mode \
         = transaction: the service needs connections of its own; connect to Postgres directly, or with \
         pool_mode = session"
    )]
    TransactionPooler,
    #[error(
        "the database has the encoding {0}: create one with ENCODING 'UTF8', for example CREATE DATABASE \
         vouchsafe ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding(String),
    #[error(
        "the role of DATABASE_URL creates tables in {found}, and the service needs schema public: ALTER \
         ROLE {role} IN DATABASE {database} SET search_path = public, and GRANT USAGE, CREATE ON SCHEMA \
         public TO the owner of the database"
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

/// Statements on two connections in turn. A pooler gives the second one the backend that the first has
/// returned.
const ROUNDS: usize = 3;

/// Checks the database of these options on two connections of its own.
///
/// # Errors
/// [`UnsuitableDatabase`] as [`sqlx::Error::Configuration`]; another error when the database does not answer.
pub async fn check_server(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let options = options.clone().options(FIXED_SETTINGS).options(COMMAND_SETTINGS);
    let mut connections = [open(&options).await?, open(&options).await?];
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
    let (encoding, schema, role, database): (String, Option<String>, String, String) = sqlx::query_as(
        "SELECT current_setting('server_encoding'), current_schema()::text, current_user::text, current_database()::text",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
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
