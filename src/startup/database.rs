//! Preparation of the database at startup: schema, the number of connections, and the caches loaded from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tracing::warn;
use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::sandbox_clock::SandboxClocks;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::rate_limiter::RateLimiter;
use vouchsafe_security::registry::AccessRegistry;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{ConnectionBudget, PgNode, PgStore, SharedLimits};

use crate::service::Service;
use crate::settings::ServeSettings;

/// The database may be starting at the same time.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(60);

const DATABASE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Waits for the database and migrates it.
pub(super) async fn prepare(store: &PgStore, environment: Environment) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        match store.prepare(environment).await {
            Err(error) if error.is_transient() && started.elapsed() < DATABASE_TIMEOUT => {
                warn!(error.message = %error, "waiting for the database");
                tokio::time::sleep(DATABASE_RETRY_DELAY).await;
            }
            prepared => return prepared.context("open the database"),
        }
    }
}

/// From now on a rotation of the wrapping key refuses if this node cannot follow. One that began before has
/// ended.
pub(super) async fn report_wrapping_keys(
    store: &PgStore,
    node: &PgNode,
    keyring: &Keyring,
) -> anyhow::Result<()> {
    let report = store
        .nodes
        .report_wrapping_keys(node.identity(), keyring.probe_wrapping_keys().await);
    report.await.context("report the wrapping keys")?;
    keyring.confirm().await.context("unlock the data keys")
}

/// Rejects a production database that permits fewer connections than this node needs: it could lose its
/// lease.
pub(super) async fn check_connections(store: &PgStore, settings: &ServeSettings) -> anyhow::Result<()> {
    let budget = load_budget(store, settings).await?;
    let (per_node, available) = (budget.per_node, budget.available);
    if per_node > available && settings.environment == Environment::Production {
        bail!(
            "this node needs {per_node} connections, and the database permits {available}: raise max_connections, or lower \
             VOUCHSAFE_PARTNER_CONNECTIONS, VOUCHSAFE_OPERATOR_CONNECTIONS or VOUCHSAFE_LANES"
        );
    }
    Ok(())
}

/// Warns if the running nodes need more connections than the database permits. This node has taken its
/// incarnation.
pub(super) async fn warn_of_missing_connections(
    store: &PgStore,
    settings: &ServeSettings,
) -> anyhow::Result<()> {
    let ConnectionBudget {
        per_node,
        nodes,
        available,
    } = load_budget(store, settings).await?;
    if per_node.saturating_mul(nodes) > available {
        warn!(
            connections.per_node = per_node,
            connections.available = available,
            nodes,
            "the database permits fewer connections than the running nodes need; raise max_connections"
        );
    }
    Ok(())
}

async fn load_budget(store: &PgStore, settings: &ServeSettings) -> anyhow::Result<ConnectionBudget> {
    let budget = store.connection_budget(settings.lanes).await;
    budget.context("read the limits of the database")
}

pub(super) async fn load_registry(
    environment: Environment,
    store: &PgStore,
) -> anyhow::Result<AccessRegistry> {
    let registry = AccessRegistry::new(environment);
    // The first poll for changes reports forged rows.
    let access = store.credentials.load_access().await?;
    access
        .partners
        .into_iter()
        .for_each(|partner| registry.upsert_partner(partner));
    access
        .credentials
        .into_iter()
        .for_each(|credential| registry.upsert_credential(credential));
    Ok(registry)
}

/// The test clocks of partners. Production has none.
pub(super) async fn load_sandbox_clocks(
    environment: Environment,
    store: &PgStore,
) -> anyhow::Result<SandboxClocks> {
    let clocks = SandboxClocks::default();
    if environment == Environment::Sandbox {
        store.sandbox_clocks.refresh(&clocks).await?;
    }
    Ok(clocks)
}

/// The rate limits as far as this node knows, and those of all nodes.
pub(super) async fn share_limits(
    settings: &ServeSettings,
    node: &PgNode,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(Arc<RateLimiter>, SharedLimits)> {
    let rate_limits = Arc::new(RateLimiter::new(settings.limits.defaults()));
    let shared = node.share_limits(Arc::clone(&rate_limits), Arc::clone(clock));
    let shared = shared.await.context("load the use of rate limits")?;
    Ok((rate_limits, shared))
}

/// Waits until the other nodes know of this one. Called before the first request.
pub(super) async fn join_other_nodes(service: &Service) -> anyhow::Result<()> {
    let joined = service.shared_limits.join().await;
    joined.context("share the rate limits with the other nodes")
}

pub(super) async fn load_catalogue(store: &PgStore) -> anyhow::Result<CurrentCatalogue> {
    let catalogue = CurrentCatalogue::default();
    catalogue.replace(Catalogue::new(store.products.load_all().await?));
    Ok(catalogue)
}
