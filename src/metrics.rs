//! Prometheus metrics of the service, served under `/metrics`.

mod process;

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use vouchsafe_actors::delivery::{Deliveries, DeliveryMetrics};
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::journal::JournalMetrics;
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_actors::supervisor::ActorTotals;
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_procurement::metrics::VendorMetrics;
use vouchsafe_security::rate_limiter::RateLimiter;
use vouchsafe_webhooks::metrics::EndpointMetrics;
use vouchsafe_wire::error_code::Code;

use crate::telemetry::Telemetry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActorLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    listener: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

type ActorGauges = Family<ActorLabels, Gauge>;

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    journal: JournalMetrics,
    vendors: VendorMetrics,
    actors: ActorGauges,
    mailbox_depth: ActorGauges,
    deepest_mailbox: ActorGauges,
    not_ready: ActorGauges,
    handled: Family<ActorLabels, Counter<u64, AtomicU64>>,
    restarts: Family<ActorLabels, Counter<u64, AtomicU64>>,
    records_in_flight: Gauge,
    http_responses: Family<ResponseLabels, Counter>,
    http_response_seconds: Family<ListenerLabels, Histogram>,
    rate_limit_windows: Gauge,
    failing_addresses: Gauge,
    rate_limited: Family<ClassLabels, Counter>,
    authentication_failures: Family<CodeLabels, Counter>,
    deliveries: DeliveryMetrics,
    endpoints: EndpointMetrics,
}

impl Metrics {
    /// Registers all metrics, including those of span export if it is enabled.
    #[must_use]
    pub fn new(telemetry: &Telemetry) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("vouchsafe"),
            journal: JournalMetrics::default(),
            vendors: VendorMetrics::default(),
            actors: Family::default(),
            mailbox_depth: Family::default(),
            deepest_mailbox: Family::default(),
            not_ready: Family::default(),
            handled: Family::default(),
            restarts: Family::default(),
            records_in_flight: Gauge::default(),
            http_responses: Family::default(),
            http_response_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
            }),
            rate_limit_windows: Gauge::default(),
            failing_addresses: Gauge::default(),
            rate_limited: Family::default(),
            authentication_failures: Family::default(),
            deliveries: DeliveryMetrics::default(),
            endpoints: EndpointMetrics::default(),
        };
        metrics.register();
        telemetry.register(&mut metrics.registry);
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        self.journal.register(registry);
        registry.register("actors", "Running actors", self.actors.clone());
        registry.register(
            "actor_mailbox_depth",
            "Queued messages, by actor kind",
            self.mailbox_depth.clone(),
        );
        registry.register(
            "actor_mailbox_deepest",
            "Queued messages in the fullest mailbox, by actor kind",
            self.deepest_mailbox.clone(),
        );
        registry.register(
            "actors_not_ready",
            "Actors that are loading their state or have stopped",
            self.not_ready.clone(),
        );
        registry.register(
            "actor_messages_handled",
            "Messages handled, by actor kind",
            self.handled.clone(),
        );
        registry.register(
            "actor_restarts",
            "Actors rebuilt from the store after a panic",
            self.restarts.clone(),
        );
        registry.register(
            "records_in_flight",
            "Journal records between decision and verdict",
            self.records_in_flight.clone(),
        );
        registry.register(
            "http_responses",
            "HTTP responses, by listener, method and status",
            self.http_responses.clone(),
        );
        let seconds = "Time from request headers to response, by listener";
        registry.register_with_unit(
            "http_response",
            seconds,
            Unit::Seconds,
            self.http_response_seconds.clone(),
        );
        self.vendors.register(registry);
        self.deliveries.register(registry);
        self.endpoints.register(registry);
        self.register_limits();
    }

    fn register_limits(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "rate_limit_windows",
            "Rate-limit windows in memory, one per API key and class",
            self.rate_limit_windows.clone(),
        );
        registry.register(
            "failing_addresses",
            "Client addresses with recent authentication failures",
            self.failing_addresses.clone(),
        );
        registry.register(
            "rate_limited",
            "Requests rejected with 429, by class; class auth includes addresses with too many failures",
            self.rate_limited.clone(),
        );
        registry.register(
            "failed_authentications",
            "Requests that failed authentication, by error code, including those rejected with 429",
            self.authentication_failures.clone(),
        );
    }

    /// The metrics of the journal, for the engine.
    #[must_use]
    pub fn journal(&self) -> JournalMetrics {
        self.journal.clone()
    }

    /// The metrics of vendors.
    #[must_use]
    pub fn vendors(&self) -> VendorMetrics {
        self.vendors.clone()
    }

    /// The metrics of webhook deliveries.
    #[must_use]
    pub fn deliveries(&self) -> DeliveryMetrics {
        self.deliveries.clone()
    }

    /// The metrics of webhook endpoints.
    #[must_use]
    pub fn endpoints(&self) -> EndpointMetrics {
        self.endpoints.clone()
    }

    /// Counts a response and its duration.
    pub fn record_response(&self, listener: &'static str, method: &'static str, status: u16, seconds: f64) {
        self.http_responses
            .get_or_create(&ResponseLabels {
                listener,
                method,
                status,
            })
            .inc();
        self.http_response_seconds
            .get_or_create(&ListenerLabels { listener })
            .observe(seconds);
    }

    /// Counts a request that was rejected with 429.
    pub fn record_rate_limited(&self, class: RequestClass) {
        let class = class.as_str();
        self.rate_limited.get_or_create(&ClassLabels { class }).inc();
    }

    /// Counts a request that failed authentication.
    pub fn record_authentication_failure(&self, code: Code) {
        let code = code.as_str();
        self.authentication_failures
            .get_or_create(&CodeLabels { code })
            .inc();
    }

    /// Renders all metrics in the Prometheus text format.
    #[must_use]
    pub fn render(
        &self,
        engine: &Engine,
        procurement: &Procurement,
        deliveries: &Deliveries,
        rate_limits: &RateLimiter,
    ) -> String {
        self.refresh_rate_limits(rate_limits);
        self.refresh_actors("wallet", engine.wallets.totals());
        self.refresh_actors("inventory", engine.inventory.totals());
        self.refresh_actors("procurement", procurement.totals());
        self.refresh_actors("delivery", deliveries.totals());
        self.records_in_flight
            .set(i64::try_from(engine.in_flight()).unwrap_or(i64::MAX));
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing into a string fails only out of memory.
            text.clear();
        }
        process::append_resident_memory(&mut text);
        text
    }

    fn refresh_rate_limits(&self, rate_limits: &RateLimiter) {
        let (windows, addresses) = rate_limits.window_counts();
        self.rate_limit_windows
            .set(i64::try_from(windows).unwrap_or(i64::MAX));
        self.failing_addresses
            .set(i64::try_from(addresses).unwrap_or(i64::MAX));
    }

    fn refresh_actors(&self, kind: &'static str, total: ActorTotals) {
        let labels = ActorLabels { kind };
        for (figures, value) in [
            (&self.actors, total.actors),
            (&self.mailbox_depth, total.mailbox_depth),
            (&self.deepest_mailbox, total.deepest_mailbox),
            (&self.not_ready, total.not_ready),
        ] {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            figures.get_or_create(&labels).set(value);
        }
        set_counter(&self.handled.get_or_create(&labels), total.handled);
        set_counter(&self.restarts.get_or_create(&labels), total.restarts);
    }
}

/// Sets a counter to the total that the actors maintain.
fn set_counter(counter: &Counter<u64, AtomicU64>, value: u64) {
    counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
}
