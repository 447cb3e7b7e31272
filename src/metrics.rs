//! Prometheus metrics of the service, served under `/metrics`.

mod format;
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
use vouchsafe_store::ConnectionMetrics;
use vouchsafe_webhooks::metrics::EndpointMetrics;
use vouchsafe_wire::error_code::Code;

pub(crate) use self::format::MetricsFormat;
use self::process::ResidentMemory;
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
struct RejectionLabels {
    code: &'static str,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
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
    mailbox_depth: ActorGauges = "actor_mailbox_depth" "Queued messages, by actor kind";
    deepest_mailbox: ActorGauges = "actor_mailbox_deepest" "Queued messages in the fullest mailbox, by actor kind";
    not_ready: ActorGauges = "actors_not_ready" "Actors that are loading their state or have stopped";
    handled: ActorCounters = "actor_messages_handled" "Messages handled, by actor kind";
    restarts: ActorCounters = "actor_restarts" "Actors rebuilt from the store after a panic";
    records_in_flight: Gauge = "records_in_flight" "Journal records between decision and verdict";
    http_responses: Family<ResponseLabels, Counter> = "http_responses" "HTTP responses, by listener, method and status";
    rejections: Family<RejectionLabels, Counter> =
        "requests_rejected" "Requests rejected with 429 or 503, by error code and request class";
    rate_limit_windows: Gauge = "rate_limit_windows" "Rate-limit windows in memory, one per API key and class";
    failing_addresses: Gauge = "failing_addresses" "Client addresses with recent authentication failures";
    rate_limited: Family<ClassLabels, Counter> =
        "rate_limited" "Requests rejected with 429, by class; class auth includes addresses with too many failures";
    authentication_failures: Family<CodeLabels, Counter> =
        "failed_authentications" "Requests that failed authentication, by error code, including those rejected with 429";
}

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Registry,
    own: OwnMetrics,
    http_response_seconds: Family<ListenerLabels, Histogram>,
    journal: JournalMetrics,
    vendors: VendorMetrics,
    deliveries: DeliveryMetrics,
    endpoints: EndpointMetrics,
    connections: ConnectionMetrics,
}

impl Metrics {
    /// Registers all metrics, including those of span export if it is enabled.
    pub(crate) fn new(telemetry: &Telemetry) -> Self {
        let mut root = Registry::default();
        root.register_collector(Box::new(ResidentMemory));
        let registry = root.sub_registry_with_prefix("vouchsafe");
        let metrics = Self {
            own: OwnMetrics::register(registry),
            http_response_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
            }),
            journal: JournalMetrics::default(),
            vendors: VendorMetrics::default(),
            deliveries: DeliveryMetrics::default(),
            endpoints: EndpointMetrics::default(),
            connections: ConnectionMetrics::default(),
            registry: Registry::default(),
        };
        registry.register_with_unit(
            "http_response",
            "Time from request headers to response, by listener",
            Unit::Seconds,
            metrics.http_response_seconds.clone(),
        );
        metrics.journal.register(registry);
        metrics.vendors.register(registry);
        metrics.deliveries.register(registry);
        metrics.endpoints.register(registry);
        metrics.connections.register(registry);
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

    /// Counts a response and its duration.
    pub(crate) fn record_response(
        &self,
        listener: &'static str,
        method: &'static str,
        status: u16,
        seconds: f64,
    ) {
        self.own
            .http_responses
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

    /// Counts a request that was rejected with 429 or 503. A request of a partner has a class.
    pub(crate) fn record_rejection(&self, code: Code, class: Option<RequestClass>) {
        let labels = RejectionLabels {
            code: code.as_str(),
            class: class.map_or("none", |class| class.into_str()),
        };
        self.own.rejections.get_or_create(&labels).inc();
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
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use vouchsafe_domain::delivery::AttemptOutcome;

    use super::*;

    const OPERATIONS_PAGE: &str = include_str!("../docs/operations.md");

    /// Metrics that have a series in each family.
    fn recorded() -> Metrics {
        let metrics = Metrics::new(&Telemetry::disabled());
        metrics.record_response("partner", "GET", 200, 0.001);
        metrics.record_rate_limited(RequestClass::Orders);
        metrics.record_rejection(Code::ServiceUnavailable, Some(RequestClass::Orders));
        metrics.record_authentication_failure(Code::InvalidSignature);
        metrics.refresh_actors("wallet", ActorTotals::default());
        metrics.vendors().record_rejected_response("mock");
        metrics.vendors().record_failed_reconciliation("mock");
        metrics
            .vendors()
            .set_reconciliation("mock", 0, Some(1_767_225_600));
        metrics
            .deliveries()
            .record_attempt(AttemptOutcome::Delivered, Duration::from_millis(5));
        metrics
    }

    /// Type and help text of each family in the Prometheus text format.
    fn families(text: &str) -> BTreeMap<&str, (&str, &str)> {
        let mut families = BTreeMap::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let described = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
            let (of, kind) = described.and_then(|rest| rest.split_once(' ')).unwrap();
            assert_eq!(of, name);
            let sample = lines.peek().unwrap();
            assert!(sample.starts_with(name), "{name} has no series: {sample}");
            assert!(
                families.insert(name, (kind, help)).is_none(),
                "{name} is registered twice"
            );
        }
        families
    }

    #[test]
    fn metrics_have_help_and_names_of_their_type_and_unit() {
        let text = recorded().encode(MetricsFormat::PrometheusText);
        let families = families(&text);
        assert!(families.len() > 25, "{families:?}");
        for (name, (kind, help)) in families {
            assert!(
                help.len() > 10 && help.ends_with('.') && !help.contains('\\'),
                "{name}: {help}"
            );
            assert!(
                ["counter", "gauge", "histogram"].contains(&kind),
                "{name}: {kind}"
            );
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}: {kind}");
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(is_plain), "{name}");
            assert!(
                name.starts_with("vouchsafe_") || name.starts_with("process_"),
                "{name}"
            );
            let words: Vec<_> = name.split('_').collect();
            for foreign in [
                "ms",
                "milliseconds",
                "minutes",
                "hours",
                "days",
                "kb",
                "kib",
                "percent",
                "time",
                "duration",
            ] {
                assert!(
                    !words.contains(&foreign),
                    "{name}: {foreign}; use seconds, bytes or a ratio"
                );
            }
            let is_time = ["Time ", "Duration ", "Age ", "Start "]
                .iter()
                .any(|word| help.starts_with(word));
            assert_eq!(is_time, name.ends_with("_seconds"), "{name}: {help}");
        }
    }

    #[test]
    fn every_metric_is_in_the_operations_page() {
        let text = recorded().encode(MetricsFormat::PrometheusText);
        for name in families(&text).into_keys() {
            let is_listed = ["`", "{"]
                .iter()
                .any(|end| OPERATIONS_PAGE.contains(&format!("`{name}{end}")));
            assert!(is_listed, "docs/operations.md does not list {name}");
        }
    }

    #[test]
    fn open_metrics_end_with_their_mark() {
        let text = recorded().encode(MetricsFormat::OpenMetrics);
        assert!(text.contains("# UNIT vouchsafe_http_response_seconds seconds\n"));
        assert!(text.contains("# TYPE vouchsafe_http_responses counter\n"));
        assert!(text.ends_with("\n# EOF\n"));
    }
}
