//! Connection budget: the connections of all nodes, compared with `max_connections` of the server.

use vouchsafe_database::error::StoreError;

use vouchsafe_database::database::Database;

/// Connections that this node needs, and those that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionBudget {
    /// The most that this node opens.
    pub per_node: u32,
    /// Running nodes, this one included.
    pub nodes: u32,
    /// Connections of the server that are not reserved for superusers.
    pub available: u32,
}

/// See [`super::store::PgStore::connection_budget`].
pub(super) async fn load(database: &Database, lanes: u16) -> Result<ConnectionBudget, StoreError> {
    let per_node = database.connection_settings().total(lanes) + u32::from(database.watches_primary());
    let server = sqlx::query!(
        r#"SELECT count(*) AS "nodes!",
                  current_setting('max_connections')::bigint
                  - current_setting('superuser_reserved_connections')::bigint
                  - COALESCE(current_setting('reserved_connections', true)::bigint, 0) AS "available!"
             FROM nodes
            WHERE is_lease_live_v1(lease_until, renewed_at)"#
    );
    let server = database
        .run(|pool| async move { server.fetch_one(&pool).await })
        .await?;
    let count = |number: i64| u32::try_from(number).unwrap_or_default();
    Ok(ConnectionBudget {
        per_node,
        nodes: count(server.nodes).max(1),
        available: count(server.available),
    })
}
