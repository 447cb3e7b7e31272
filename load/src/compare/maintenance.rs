//! Who cleans up after whom? The server's own upkeep comes when it likes and works in any database: in turns of seconds it would
//! be told as the cost of whoever has the turn. So the server does none while turns are taken; before its turn each database is
//! vacuumed and analysed, and everything is written out by a checkpoint.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Has the server leave upkeep to [`before_a_turn`], for as long as it lives.
///
/// # Errors
/// When it cannot be reached, or this is no superuser.
pub(crate) async fn disable_autovacuum(superuser: &PgConnectOptions) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(superuser).await?;
    connection.execute("ALTER SYSTEM SET autovacuum = off").await?;
    connection.execute("SELECT pg_reload_conf()").await?;
    Ok(())
}

/// Leaves nothing to be done in this database.
///
/// # Errors
/// When it cannot be reached, or this is no superuser.
pub(crate) async fn vacuum_and_checkpoint(database: &PgConnectOptions) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(database).await?;
    connection.execute("VACUUM (ANALYZE)").await?;
    connection.execute("CHECKPOINT").await?;
    Ok(())
}
