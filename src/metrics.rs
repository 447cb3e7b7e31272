//! Prometheus metrics of the service, served under `/metrics`.

mod exemplar;
mod format;
mod labels;
mod process;
mod runtimes;
mod slow_clients;
mod stock;

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::exponential_buckets;
use prometheus_client::registry::{Registry, Unit};
use vouchsafe_actors::delivery::{Deliveries, DeliveryMetrics};
use vouchsafe_actors::engine::Engine;
use vouchsafe_actors::journal::JournalMetrics;
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_actors::supervisor::ActorTotals;
use vouchsafe_audit_export::AuditExportMetrics;
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_procurement::metrics::VendorMetrics;
use vouchsafe_security::rate_limiter::RateLimiter;
use vouchsafe_store::ConnectionMetrics;
use vouchsafe_webhooks::metrics::EndpointMetrics;
use vouchsafe_wire::error_code::Code;

pub(crate) use self::exemplar::ExemplarLabels;
pub(crate) use self::format::MetricsFormat;
use self::labels::{
    ActorLabels, BuildLabels, ClassLabels, CodeLabels, ListenerLabels, RefusalLabels, RequestLabels,
    RouteLabels,
};
use self::process::ProcessMetrics;
pub(crate) use self::runtimes::Runtimes;
use self::stock::StockMetrics;
pub(crate) use self::stock::StockTotals;
use crate::live::Traffic;
use vouchsafe_telemetry::Telemetry;
use vouchsafe_telemetry::security_event_metrics::SecurityEventMetrics;

/// Label of the listener of partners.
pub(crate) const PARTNER_LISTENER: &str = "partner";

/// Label of the listener of operators.
pub(crate) const OPERATOR_LISTENER: &str = "operator";

/// Route of orders.
pub(crate) const ORDERS_ROUTE: &str = "/api/v1/orders";

/// A request with its response.
pub(crate) struct FinishedRequest {
    pub(crate) listener: &'static str,
    pub(crate) method: &'static str,
    /// Its route template; `None` if no route matches.
    pub(crate) route: Option<String>,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) exemplar: Option<ExemplarLabels>,
}

type ActorGauges = Family<ActorLabels, Gauge>;
type ActorCounters = Family<ActorLabels, Counter<u64, AtomicU64>>;

/// Declares metrics with their names and descriptions, and registers them.
macro_rules! own_metrics {
    ($($field:ident: $metric:ty = $name:literal $help:literal;)+) => {
        /// Metrics of actors, requests and rate limits.
        struct OwnMetrics {
            $($field: $metric,)+
        }

        impl OwnMetrics {
            fn register(registry: &mut Registry) -> Self {
                let own = Self { $($field: <$metric>::default(),)+ };
                $(registry.register($name, $help, own.$field.clone());)+
                own
            }
        }
    };
}

own_metrics! {
    actors: ActorGauges = "actors" "Running actors";
    mailbox_depth: ActorGauges = "actor_mailbox_messages" "Queued messages, by actor kind";
    deepest_mailbox: ActorGauges = "actor_mailbox_messages_max" "Queued messages in the fullest mailbox, by actor kind";
    not_ready: ActorGauges = "actors_not_ready" "Actors that are loading their state or have stopped";
    handled: ActorCounters = "actor_messages_handled" "Messages handled, by actor kind";
    restarts: ActorCounters = "actor_restarts" "Actors rebuilt from the store after a panic";
    records_in_flight: Gauge = "journal_records_in_flight" "Journal records between decision and verdict";
    build: Family<BuildLabels, Gauge> = "build_info" "Version and build of the program; the value is 1";
    requests: Family<RequestLabels, Counter> = "http_requests" "HTTP requests, by listener, method and status";
    refusals: Family<RefusalLabels, Counter> =
        "http_requests_refused" "Requests refused with 4xx or 5xx, by error code and request class";
    rate_limit_windows: Gauge = "rate_limit_windows" "Rate-limit windows in memory, one per class and API \
        key with those rotated from it";
    failing_addresses: Gauge = "authentication_failing_addresses" "Client addresses with recent authentication failures";
    rate_limited: Family<ClassLabels, Counter> =
        "rate_limited_requests" "Requests rejected with 429, by class; class auth includes addresses with too many failures";
    authentication_failures: Family<CodeLabels, Counter> =
        "authentication_failures" "Requests that failed authentication, by error code, including those rejected with 429";
    certificate_files_rejected: Family<ListenerLabels, Gauge> =
        "certificate_files_rejected" "1 while a listener uses other certificate files than those on disk, which it cannot use";
    wrapping_keys_failing: Gauge =
        "wrapping_keys_failing" "Wrapping keys that did not work when this node probed them last";
    replica_lag_seconds: Gauge<f64, AtomicU64> =
        "replica_lag_seconds" "Time by which the standby of VOUCHSAFE_REPLICA_URL is behind, as of the \
            last comparison; -1 while it is not read";
    replication_missing: Gauge =
        "replication_missing" "1 while VOUCHSAFE_DURABILITY is replicated and commits were not found to wait for a standby, else 0";
    refused_connections: Family<ListenerLabels, Counter> =
        "http_connections_refused" "Connections closed at once because their client address had too many";
    unread_responses: Counter =
        "http_responses_unread" "Responses that the client did not read in time, so that its connection was reset";
}

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Registry,
    own: OwnMetrics,
    request_duration: Family<RouteLabels, HistogramWithExemplars<ExemplarLabels>>,
    stock: StockMetrics,
    journal: JournalMetrics,
    vendors: VendorMetrics,
    deliveries: DeliveryMetrics,
    endpoints: EndpointMetrics,
    connections: ConnectionMetrics,
    runtimes: Runtimes,
    security_events: SecurityEventMetrics,
    audit_export: AuditExportMetrics,
    traffic: Traffic,
}

impl Metrics {
    /// Registers all metrics, including those of span export if it is enabled.
    pub(crate) fn new(telemetry: &Telemetry) -> Self {
        let mut root = Registry::default();
        root.register_collector(Box::new(ProcessMetrics));
        let registry = root.sub_registry_with_prefix("vouchsafe");
        let metrics = Self {
            own: OwnMetrics::register(registry),
            // Every route has these series.
            request_duration: Family::new_with_constructor(|| {
                HistogramWithExemplars::new(exponential_buckets(0.000_5, 2.0, 15))
            }),
            stock: StockMetrics::default(),
            journal: JournalMetrics::default(),
            vendors: VendorMetrics::default(),
            deliveries: DeliveryMetrics::default(),
            endpoints: EndpointMetrics::default(),
            connections: ConnectionMetrics::default(),
            runtimes: Runtimes::default(),
            security_events: SecurityEventMetrics::default(),
            audit_export: AuditExportMetrics::default(),
            traffic: Traffic::default(),
            registry: Registry::default(),
        };
        // From the start, so that the first increase is one.
        let failures = &metrics.own.authentication_failures;
        for code in Code::ALL.iter().filter(|code| code.status() == 401) {
            drop(failures.get_or_create(&CodeLabels { code: code.as_str() }));
        }
        registry.register_with_unit(
            "http_request_duration",
            "Time from request headers to response, by listener, route and status class",
            Unit::Seconds,
            metrics.request_duration.clone(),
        );
        let build = BuildLabels {
            version: env!("CARGO_PKG_VERSION"),
            profile: env!("VOUCHSAFE_PROFILE"),
            commit: env!("VOUCHSAFE_COMMIT"),
            rustc: env!("VOUCHSAFE_RUSTC"),
            span_export: if cfg!(feature = "otlp") { "otlp" } else { "none" },
        };
        metrics.own.build.get_or_create(&build).set(1);
        metrics.stock.register(registry);
        metrics.journal.register(registry);
        metrics.vendors.register(registry);
        metrics.deliveries.register(registry);
        metrics.endpoints.register(registry);
        metrics.connections.register(registry);
        metrics.security_events.register(registry);
        metrics.audit_export.register(registry);
        registry.register_collector(Box::new(metrics.runtimes.clone()));
        telemetry.register(registry);
        Self {
            registry: root,
            ..metrics
        }
    }

    /// The metrics of the journal, for the engine.
    pub(crate) fn journal(&self) -> JournalMetrics {
        self.journal.clone()
    }

    /// The metrics of vendors.
    pub(crate) fn vendors(&self) -> VendorMetrics {
        self.vendors.clone()
    }

    /// The metrics of webhook deliveries.
    pub(crate) fn deliveries(&self) -> DeliveryMetrics {
        self.deliveries.clone()
    }

    /// The metrics of webhook endpoints.
    pub(crate) fn endpoints(&self) -> EndpointMetrics {
        self.endpoints.clone()
    }

    /// The metrics of database connections.
    pub(crate) fn connections(&self) -> ConnectionMetrics {
        self.connections.clone()
    }

    /// The metrics of the audit export.
    pub(crate) fn audit_export(&self) -> AuditExportMetrics {
        self.audit_export.clone()
    }

    /// The runtimes whose metrics are served.
    pub(crate) const fn runtimes(&self) -> &Runtimes {
        &self.runtimes
    }

    /// The traffic of partners since the last sample.
    pub(crate) const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Counts a request and its duration.
    pub(crate) fn record_request(&self, request: FinishedRequest) {
        let FinishedRequest {
            listener,
            method,
            route,
            status,
            duration,
            exemplar,
        } = request;
        if listener == PARTNER_LISTENER {
            let is_order = method == "POST" && route.as_deref() == Some(ORDERS_ROUTE);
            self.traffic.record(is_order, status, duration);
        }
        let labels = RequestLabels {
            listener,
            method,
            status,
        };
        self.own.requests.get_or_create(&labels).inc();
        let labels = RouteLabels {
            listener,
            route: route.map_or(Cow::Borrowed("none"), Cow::Owned),
            status_class: match status / 100 {
                1 => "1xx",
                2 => "2xx",
                3 => "3xx",
                4 => "4xx",
                _ => "5xx",
            },
        };
        let durations = self.request_duration.get_or_create(&labels);
        // Without a timestamp, which would cost more than the rest: Prometheus takes the time of the scrape.
        durations.observe(duration.as_secs_f64(), exemplar, None);
    }

    /// Counts a request that was refused with an error code. A request of a partner has a class.
    pub(crate) fn record_refusal(&self, code: Code, class: Option<RequestClass>) {
        let labels = RefusalLabels {
            code: code.as_str(),
            class: class.map_or("none", |class| class.into_str()),
        };
        self.own.refusals.get_or_create(&labels).inc();
    }

    /// The metrics of the stock.
    pub(crate) const fn stock(&self) -> &StockMetrics {
        &self.stock
    }

    /// Counts a request that was rejected with 429.
    pub(crate) fn record_rate_limited(&self, class: RequestClass) {
        let class = class.into_str();
        self.own.rate_limited.get_or_create(&ClassLabels { class }).inc();
    }

    /// Counts a request that failed authentication.
    pub(crate) fn record_authentication_failure(&self, code: Code) {
        let code = code.as_str();
        self.own
            .authentication_failures
            .get_or_create(&CodeLabels { code })
            .inc();
    }

    /// The metrics of security events.
    pub(crate) const fn security_events(&self) -> &SecurityEventMetrics {
        &self.security_events
    }

    /// Records whether the certificate files of a listener could be used.
    pub(crate) fn record_certificate_files(&self, listener: &'static str, are_used: bool) {
        let rejected = &self.own.certificate_files_rejected;
        rejected
            .get_or_create(&ListenerLabels { listener })
            .set((!are_used).into());
    }

    /// Records the lag of the standby that operators read; `None` if it is not read.
    pub(crate) fn record_replica_lag(&self, lag: Option<Duration>) {
        self.own
            .replica_lag_seconds
            .set(lag.map_or(-1.0, |lag| lag.as_secs_f64()));
    }

    /// Records whether commits should wait for a standby and were not found to do so.
    pub(crate) fn record_replication(&self, is_missing: bool) {
        self.own.replication_missing.set(i64::from(is_missing));
    }

    /// Records the number of wrapping keys that did not work when they were probed last.
    pub(crate) fn record_failing_wrapping_keys(&self, failing: usize) {
        self.own
            .wrapping_keys_failing
            .set(i64::try_from(failing).unwrap_or(i64::MAX));
    }

    /// Renders all metrics.
    pub(crate) fn render(
        &self,
        format: MetricsFormat,
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
        self.own
            .records_in_flight
            .set(i64::try_from(engine.in_flight()).unwrap_or(i64::MAX));
        self.encode(format)
    }

    fn encode(&self, format: MetricsFormat) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing into a string fails only out of memory.
            text.clear();
        }
        format.render(text)
    }

    fn refresh_rate_limits(&self, rate_limits: &RateLimiter) {
        let (windows, addresses) = rate_limits.window_counts();
        self.own
            .rate_limit_windows
            .set(i64::try_from(windows).unwrap_or(i64::MAX));
        self.own
            .failing_addresses
            .set(i64::try_from(addresses).unwrap_or(i64::MAX));
    }

    fn refresh_actors(&self, kind: &'static str, total: ActorTotals) {
        let labels = ActorLabels { kind };
        for (figures, value) in [
            (&self.own.actors, total.actors),
            (&self.own.mailbox_depth, total.mailbox_depth),
            (&self.own.deepest_mailbox, total.deepest_mailbox),
            (&self.own.not_ready, total.not_ready),
        ] {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            figures.get_or_create(&labels).set(value);
        }
        set_counter(&self.own.handled.get_or_create(&labels), total.handled);
        set_counter(&self.own.restarts.get_or_create(&labels), total.restarts);
    }
}

/// Sets a counter to the total that the actors maintain.
fn set_counter(counter: &Counter<u64, AtomicU64>, value: u64) {
    counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
