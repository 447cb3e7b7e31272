//! Application state shared by all routes: engine, store and in-memory registries.

use std::sync::{Arc, PoisonError, RwLock};

use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_domain::catalogue::{Assortment, Catalogue};
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::product::Product;
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::procurement::Procurement;

use vouchsafe_security::client_address::TrustedProxies;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::rate_limiter::RateLimiter;
use vouchsafe_security::registry::{AccessRegistry, PartnerAccess};
use crate::certification::Observer;
use crate::delivery::HttpSender;
use crate::readiness::ReadinessGate;
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::settings::Preview;
use crate::store::{PgNode, PgStore};

/// The state of one service process.
pub struct Service {
    pub environment: Environment,
    pub gate: Arc<ReadinessGate>,
    pub engine: Arc<Engine>,
    /// Buys vouchers for pending orders from vendors.
    pub procurement: Procurement,
    pub store: PgStore,
    /// The store with this node's lanes and batched lookups.
    pub node: PgNode,
    pub registry: AccessRegistry,
    pub rate_limits: RateLimiter,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    pub catalogue: Arc<CurrentCatalogue>,
    /// Keys that encrypt voucher codes.
    pub keyring: Arc<Keyring>,
    pub deliveries: Deliveries,
    pub(crate) sender: HttpSender,
    pub operator_token: vouchsafe_security::operator_token::OperatorToken,
    pub reconciliation_preview: Preview,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    /// Observes partners for certification; `None` in production.
    pub certification: Option<Arc<Observer>>,
}

/// The current catalogue. A change replaces it as a whole.
#[derive(Debug, Default)]
pub struct CurrentCatalogue(RwLock<Arc<Catalogue>>);

impl CurrentCatalogue {
    /// A snapshot of all products.
    #[must_use]
    pub fn current(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A snapshot of the products that a partner can order.
    #[must_use]
    pub fn assortment_for(&self, partner: &PartnerAccess) -> Assortment {
        Assortment::new(self.current(), partner.scope.clone())
    }

    /// Replaces all products.
    pub fn replace(&self, catalogue: Catalogue) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
    }

    /// Adds or replaces one product.
    pub fn put(&self, product: Product) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.with_product(product));
    }
}
