//! Node identity and lease: each start of a node takes its next incarnation and renews a lease while it runs.
//!
//! A later start of the same node fences off this one at once. Other nodes may claim its stock after the
//! lease ends, or on demand.

use sqlx::PgPool;
use vouchsafe_database::schema;

/// How long a node keeps its stock after its last renewal. Seconds.
pub const LEASE_S: i32 = 15;

/// The name of a node and the incarnation of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Stays the same across restarts.
    pub name: String,
    /// Counts the starts of the node.
    pub incarnation: i64,
}

/// Takes the next incarnation of the node called `name`, and a lease.
///
/// # Errors
/// [`schema::SchemaMismatch`] as [`sqlx::Error::Configuration`] when a migration has just removed what this
/// program uses.
pub(super) async fn start(pool: &PgPool, name: String) -> Result<NodeIdentity, sqlx::Error> {
    let migration = schema::Migrations::of_program().newest();
    let incarnation = sqlx::query_scalar!(
        "INSERT INTO nodes AS n (node, incarnation, lease_until, renewed_at, latest_clock, version, started_at,
                                 program_migration, program_incarnation)
         VALUES ($1, 1, clock_timestamp() + make_interval(secs => $2), clock_timestamp(), clock_timestamp(), $3, clock_timestamp(),
                 $4, 1)
         ON CONFLICT (node) DO UPDATE
            SET incarnation = n.incarnation + 1,
                lease_until = EXCLUDED.lease_until,
                renewed_at = EXCLUDED.renewed_at,
                latest_clock = GREATEST(n.latest_clock, EXCLUDED.latest_clock),
                version = EXCLUDED.version,
                started_at = EXCLUDED.started_at,
                wrapping_keys = NULL,
                program_migration = EXCLUDED.program_migration,
                program_incarnation = n.incarnation + 1
         RETURNING incarnation",
        name,
        f64::from(LEASE_S),
        env!("CARGO_PKG_VERSION"),
        migration,
    );
    let incarnation = incarnation.fetch_one(pool).await?;
    let node = NodeIdentity { name, incarnation };
    // Read after the registration: a migration that found no node of this program may run from now on.
    match schema::find_too_old(&mut *pool.acquire().await?, migration).await? {
        None => Ok(node),
        Some(too_old) => {
            end_lease(pool, &node).await?;
            Err(too_old.into())
        }
    }
}

/// Why an incarnation of a node is no longer the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedRegistration {
    /// A later start of the node has taken over.
    Superseded,
    /// The database has lost the start: it was restored, or another server that did not have it has become
    /// the primary.
    Lost,
}

/// Finds out why the lease could not be renewed, or a lane not be recovered.
pub(super) async fn find_end(pool: &PgPool, node: &NodeIdentity) -> Result<EndedRegistration, sqlx::Error> {
    let current = sqlx::query_scalar!("SELECT incarnation FROM nodes WHERE node = $1", node.name);
    let current = current.fetch_optional(pool).await?;
    // Each start takes a higher incarnation.
    Ok(if current > Some(node.incarnation) {
        EndedRegistration::Superseded
    } else {
        EndedRegistration::Lost
    })
}

/// Renews the lease. Returns `false` if this incarnation is no longer the one in the database.
pub(super) async fn renew(pool: &PgPool, node: &NodeIdentity) -> Result<bool, sqlx::Error> {
    let renewed = sqlx::query!(
        "UPDATE nodes
            SET lease_until = clock_timestamp() + make_interval(secs => $3),
                renewed_at = clock_timestamp(),
                latest_clock = GREATEST(latest_clock, clock_timestamp())
          WHERE node = $1 AND incarnation = $2",
        node.name,
        node.incarnation,
        f64::from(LEASE_S),
    );
    Ok(renewed.execute(pool).await?.rows_affected() == 1)
}

/// Ends the lease.
pub(super) async fn end_lease(pool: &PgPool, node: &NodeIdentity) -> Result<(), sqlx::Error> {
    let ended = sqlx::query!(
        "UPDATE nodes SET lease_until = clock_timestamp() WHERE node = $1 AND incarnation = $2",
        node.name,
        node.incarnation,
    );
    ended.execute(pool).await.map(drop)
}
