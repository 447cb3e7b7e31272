//! Database maintenance between turns. Autovacuum runs at arbitrary times in any database and would be
//! charged to whichever contender runs then. So it is off during a comparison; before its turn each database
//! is vacuumed and analysed, and a checkpoint writes all dirty pages.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Disables autovacuum for the lifetime of the server.
pub(crate) async fn disable_autovacuum(superuser: &PgConnectOptions) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(superuser).await?;
    connection.execute("ALTER SYSTEM SET autovacuum = off").await?;
    connection.execute("SELECT pg_reload_conf()").await?;
    Ok(())
}

pub(crate) async fn vacuum_and_checkpoint(database: &PgConnectOptions) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(database).await?;
    connection.execute("VACUUM (ANALYZE)").await?;
    connection.execute("CHECKPOINT").await?;
    Ok(())
}
