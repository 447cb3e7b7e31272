//! What every route is given: the engine, the store, and the little that is kept in memory beside them.

use std::sync::{Arc, PoisonError, RwLock};

use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::domain::catalogue::{Assortment, Catalogue};
use vouchsafe_actors::domain::clock::Clock;
use vouchsafe_actors::domain::product::Product;
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::procurement::Procurement;

use crate::access::client_address::TrustedProxies;
use crate::access::environment::Environment;
use crate::access::rate_limits::RateLimits;
use crate::access::register::{PartnerAccess, Register};
use crate::certification::Watch;
use crate::delivery::HttpSender;
use crate::http::Gate;
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::settings::Preview;
use crate::store::{PgNode, PgStore};

/// One process of the service.
pub struct Service {
    pub environment: Environment,
    pub gate: Arc<Gate>,
    pub engine: Arc<Engine>,
    /// Buys what orders wait for.
    pub procurement: Procurement,
    pub store: PgStore,
    /// Postgres, as this node writes to it.
    pub node: PgNode,
    pub register: Register,
    /// How much they asked for of late.
    pub rate_limits: RateLimits,
    /// Whom to believe where a request comes from.
    pub trusted_proxies: TrustedProxies,
    /// What can be ordered.
    pub catalogue: Arc<CurrentCatalogue>,
    /// Seals and opens codes.
    pub keyring: Arc<Keyring>,
    /// Tells partners of their events.
    pub deliveries: Deliveries,
    pub(crate) sender: HttpSender,
    /// The SHA-256 of the operator's token.
    pub operator_token: crate::admin::OperatorToken,
    /// Whether partners see reconciliations.
    pub reconciliation_preview: Preview,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    /// What is seen of partners for their certification; in production nothing is.
    pub certification: Option<Arc<Watch>>,
}

/// The products as they are now; a change replaces the whole.
#[derive(Debug, Default)]
pub struct CurrentCatalogue(RwLock<Arc<Catalogue>>);

impl CurrentCatalogue {
    /// The products of this moment.
    #[must_use]
    pub fn now(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What this partner may order at this moment.
    #[must_use]
    pub fn of(&self, partner: &PartnerAccess) -> Assortment {
        Assortment::new(self.now(), partner.scope.clone())
    }

    /// Replaces all products.
    pub fn replace(&self, catalogue: Catalogue) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
    }

    /// Adds or replaces one product.
    pub fn put(&self, product: Product) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.with(product));
    }
}
