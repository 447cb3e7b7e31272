//! Application state: engine, in-memory registries, and the store of each kind of work.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_audit_export::AuditExport;
use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::replication::Replication;
use vouchsafe_domain::sandbox_clock::SandboxClocks;
use vouchsafe_domain::sandbox_fault::SandboxFaults;
use vouchsafe_domain::vendor::VendorNetwork;
use vouchsafe_procurement::ProcurementService;
use vouchsafe_security::concurrency_limit::ConcurrencyLimit;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::metrics_access::MetricsAccess;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::rate_limiter::RateLimiter;
use vouchsafe_security::registry::AccessRegistry;
use vouchsafe_sign_in::oidc::OidcProvider;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{PgNode, PgStore, Replica, SharedLimits};
use vouchsafe_webhooks::{AttemptLogWriter, HttpSender};
use vouchsafe_wire::operator::settings::Setting;

use crate::connections::ClientLimits;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::readiness::ReadinessGate;
use crate::settings::{Durability, FourEyes, Preview};
use vouchsafe_certification::Observer;
use vouchsafe_telemetry::refusal_counts::RefusalCounts;
use vouchsafe_telemetry::refusal_log::RefusalLog;
use vouchsafe_telemetry::security_events::SecurityEvents;

/// The state of one service process.
pub(crate) struct Service {
    pub(crate) environment: Environment,
    pub(crate) durability: Durability,
    pub(crate) gate: Arc<ReadinessGate>,
    pub(crate) engine: Arc<Engine>,
    /// Buys vouchers for pending orders from vendors.
    pub(crate) procurement: Procurement,
    /// The vendors' adapters, which the procurement actors call.
    pub(crate) purchasing: Arc<ProcurementService>,
    /// A standby for lists and statistics of operators; `None` without the setting.
    pub(crate) replica: Option<Replica>,
    /// The store with this node's lanes and batched lookups.
    pub(crate) node: PgNode,
    pub(crate) registry: AccessRegistry,
    /// The rate limits as far as this node knows, and those of all nodes.
    pub(crate) rate_limits: Arc<RateLimiter>,
    pub(crate) shared_limits: SharedLimits,
    /// Rotations of a credential and its successors within 24 hours.
    pub(crate) rotations_per_day: u32,
    /// Requests in flight of the families of credentials.
    pub(crate) in_flight: ConcurrencyLimit<CredentialId>,
    /// What the client addresses of each listener hold.
    pub(crate) partner_clients: ClientLimits,
    pub(crate) operator_clients: ClientLimits,
    /// Caps of partners without their own; `None` without any.
    pub(crate) default_caps: Option<Arc<PartnerCaps>>,
    pub(crate) catalogue: Arc<CurrentCatalogue>,
    /// Keys that encrypt voucher codes.
    pub(crate) keyring: Arc<Keyring>,
    /// Age of a data key at which the next one is created; `None`: never.
    pub(crate) max_data_key_age: Option<Duration>,
    pub(crate) deliveries: Deliveries,
    /// `None`: delivery attempts are not logged.
    pub(crate) attempt_log: Option<Arc<AttemptLogWriter>>,
    pub(crate) delivery_log_days: u16,
    pub(crate) audit_export: AuditExport,
    pub(crate) sender: HttpSender,
    pub(crate) metrics_access: MetricsAccess,
    /// The token of the settings; others are in the database.
    pub(crate) operator_token: Option<OperatorTokenHash>,
    /// The origin of operators' browsers.
    pub(crate) console_url: ConsoleUrl,
    /// Where operators sign in; `None` without the settings.
    pub(crate) identity_provider: Option<Box<OidcProvider>>,
    /// Which changes need a second operator.
    pub(crate) four_eyes: FourEyes,
    pub(crate) vendor_network: VendorNetwork,
    pub(crate) reconciliation_preview: Preview,
    /// The settings in force, without secrets.
    pub(crate) settings: Vec<Setting>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) refusals: RefusalLog,
    pub(crate) refusal_counts: RefusalCounts,
    pub(crate) security_events: SecurityEvents,
    pub(crate) live: Live,
    /// Observes partners for certification; `None` in production.
    pub(crate) certification: Option<Arc<Observer>>,
    /// Requested by partners in the sandbox; always empty in production.
    pub(crate) sandbox_faults: Arc<SandboxFaults>,
    /// Advanced by partners in the sandbox; always empty in production.
    pub(crate) sandbox_clocks: SandboxClocks,
}

impl Service {
    /// What this node has found about the replication of commits.
    pub(crate) fn replication(&self) -> Replication {
        match self.durability {
            Durability::Local => Replication::NotRequired,
            Durability::Replicated => self.node.replication(),
        }
    }
}

/// The service, with a store whose statements use the connections of one class. The type of the class is
/// private to the code that may use its connections, so a handler of one listener that takes the connections
/// of the other does not compile.
pub(crate) struct State<C> {
    pub(crate) store: PgStore,
    service: Arc<Service>,
    class: PhantomData<fn() -> C>,
}

impl<C> State<C> {
    /// `store` uses the connections of `C`.
    pub(crate) const fn new(service: Arc<Service>, store: PgStore) -> Self {
        Self {
            store,
            service,
            class: PhantomData,
        }
    }
}

impl<C> Deref for State<C> {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

/// Class of the connections of background jobs.
pub(crate) struct JobConnections;

/// State of background jobs.
pub(crate) type JobState = State<JobConnections>;
