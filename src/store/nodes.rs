//! Which process writes here: a node takes its next incarnation at each start, and keeps a lease while it lives.
//!
//! Rule: a later start of the same node shuts this one out at once; a stranger may take its stock only after the lease.

use sqlx::PgPool;

/// How long a node that says nothing keeps its stock. Seconds.
pub const LEASE_S: i32 = 15;

/// Under which name, and in which of its lives, a process writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The name; a restart has the same one.
    pub name: String,
    /// Which start of it this is.
    pub incarnation: i64,
}

/// Takes the next incarnation of the node called `name`, and a lease.
pub(super) async fn start(pool: &PgPool, name: String) -> Result<NodeIdentity, sqlx::Error> {
    let incarnation = sqlx::query_scalar(
        "INSERT INTO nodes AS n (node, incarnation, lease_until)
         VALUES ($1, 1, clock_timestamp() + make_interval(secs => $2))
         ON CONFLICT (node) DO UPDATE
            SET incarnation = n.incarnation + 1,
                lease_until = EXCLUDED.lease_until
         RETURNING incarnation",
    )
    .bind(&name)
    .bind(f64::from(LEASE_S))
    .fetch_one(pool)
    .await?;
    Ok(NodeIdentity { name, incarnation })
}

/// Renews the lease. `false` when a later start of this node has taken over.
pub(super) async fn renew(pool: &PgPool, node: &NodeIdentity) -> Result<bool, sqlx::Error> {
    let renewed = sqlx::query(
        "UPDATE nodes
            SET lease_until = clock_timestamp() + make_interval(secs => $3)
          WHERE node = $1 AND incarnation = $2",
    )
    .bind(&node.name)
    .bind(node.incarnation)
    .bind(f64::from(LEASE_S))
    .execute(pool)
    .await?;
    Ok(renewed.rows_affected() == 1)
}
