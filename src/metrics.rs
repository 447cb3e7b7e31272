//! What operators see under `/metrics`: the journal, the actors, the requests.

use std::fmt::Write as _;
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
use vouchsafe_actors::supervisor::Total;

use crate::access::limits::Class;
use crate::access::rate_limits::RateLimits;
use crate::errors::Code;
use crate::store::Look;
use crate::telemetry::Telemetry;

/// Which actors a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActorLabels {
    kind: &'static str,
}

/// Which answers a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    listener: &'static str,
    method: &'static str,
    status: u16,
}

/// Which class of requests a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: &'static str,
}

/// Which error a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

/// Which listener a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

/// Which vendor a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VendorLabels {
    vendor: String,
}

/// What is counted of vendors.
#[derive(Debug, Clone, Default)]
pub struct VendorMetrics {
    refused: Family<VendorLabels, Counter>,
}

impl VendorMetrics {
    /// A vendor's answer was refused.
    pub fn refused(&self, vendor: &str) {
        let vendor = vendor.to_owned();
        self.refused.get_or_create(&VendorLabels { vendor }).inc();
    }
}

type Figures = Family<ActorLabels, Gauge>;

/// All figures of the process.
pub struct Metrics {
    registry: Registry,
    journal: JournalMetrics,
    vendors: VendorMetrics,
    actors: Figures,
    mailbox_depth: Figures,
    deepest_mailbox: Figures,
    not_ready: Figures,
    handled: Family<ActorLabels, Counter<u64, AtomicU64>>,
    restarts: Family<ActorLabels, Counter<u64, AtomicU64>>,
    under_way: Gauge,
    answers: Family<AnswerLabels, Counter>,
    seconds: Family<ListenerLabels, Histogram>,
    windows: Gauge,
    failing_addresses: Gauge,
    rate_limited: Family<ClassLabels, Counter>,
    unauthenticated: Family<CodeLabels, Counter>,
    drifts_open: Family<VendorLabels, Gauge>,
    reconciled_day: Family<VendorLabels, Gauge>,
    unreconciled: Family<VendorLabels, Counter>,
    deliveries: DeliveryMetrics,
    endpoints: Gauge,
    failing_endpoints: Gauge,
    backlog_seconds: Gauge,
}

impl Metrics {
    /// All figures at zero; those of spans among them if spans are exported.
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
            under_way: Gauge::default(),
            answers: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_25, 2.0, 16))),
            windows: Gauge::default(),
            failing_addresses: Gauge::default(),
            rate_limited: Family::default(),
            unauthenticated: Family::default(),
            drifts_open: Family::default(),
            reconciled_day: Family::default(),
            unreconciled: Family::default(),
            deliveries: DeliveryMetrics::default(),
            endpoints: Gauge::default(),
            failing_endpoints: Gauge::default(),
            backlog_seconds: Gauge::default(),
        };
        metrics.register();
        telemetry.register(&mut metrics.registry);
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        self.journal.register(registry);
        registry.register("actors", "Live actors", self.actors.clone());
        registry.register(
            "actor_mailbox_depth",
            "Messages that wait, all actors of a kind",
            self.mailbox_depth.clone(),
        );
        registry.register(
            "actor_mailbox_deepest",
            "Messages that wait in the fullest mailbox",
            self.deepest_mailbox.clone(),
        );
        registry.register(
            "actors_not_ready",
            "Actors that load their state or have ended",
            self.not_ready.clone(),
        );
        registry.register("actor_messages_handled", "Messages handled", self.handled.clone());
        registry.register(
            "actor_restarts",
            "Actors rebuilt from the store after a panic",
            self.restarts.clone(),
        );
        registry.register(
            "records_under_way",
            "Records between decision and verdict",
            self.under_way.clone(),
        );
        registry.register(
            "http_answers",
            "Answers by listener, method and status",
            self.answers.clone(),
        );
        let seconds = "Time from the request's head to its answer";
        registry.register_with_unit("http_answer", seconds, Unit::Seconds, self.seconds.clone());
        let refused = "Answers of vendors that were refused, and nothing of them taken";
        registry.register("vendor_answers_refused", refused, self.vendors.refused.clone());
        self.register_limits();
        self.register_reconciliation();
        self.register_deliveries();
    }

    fn register_reconciliation(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "drifts_open",
            "Places where a vendor's books and ours differ that are not resolved",
            self.drifts_open.clone(),
        );
        let day = "When the last whole day began that was reconciled with a vendor, in Unix time";
        registry.register_with_unit("reconciled_day", day, Unit::Seconds, self.reconciled_day.clone());
        registry.register(
            "reconciliations_failed",
            "Attempts to reconcile a day that failed",
            self.unreconciled.clone(),
        );
    }

    fn register_deliveries(&mut self) {
        let registry = &mut self.registry;
        self.deliveries.register(registry);
        registry.register(
            "webhook_endpoints",
            "Endpoints that are switched on",
            self.endpoints.clone(),
        );
        registry.register(
            "webhook_endpoints_failing",
            "Endpoints of which only the oldest delivery is tried",
            self.failing_endpoints.clone(),
        );
        registry.register_with_unit(
            "webhook_backlog_age",
            "Age of the oldest event that an endpoint which is switched on has not seen to",
            Unit::Seconds,
            self.backlog_seconds.clone(),
        );
    }

    fn register_limits(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "rate_limit_windows",
            "Windows of API keys and classes in memory",
            self.windows.clone(),
        );
        registry.register(
            "failing_addresses",
            "Client addresses whose failures to authenticate are remembered",
            self.failing_addresses.clone(),
        );
        registry.register(
            "rate_limited",
            "Requests answered 429, by class; auth also for failures of an address",
            self.rate_limited.clone(),
        );
        registry.register(
            "failed_authentications",
            "Requests that failed to authenticate, by why; those answered 429 too",
            self.unauthenticated.clone(),
        );
    }

    /// Where a vendor stands: drifts that are not resolved, and when the last whole day began that was compared.
    pub fn reconciled(&self, vendor: &str, open: i64, last_day_s: Option<i64>) {
        let labels = VendorLabels {
            vendor: vendor.to_owned(),
        };
        self.drifts_open.get_or_create(&labels).set(open);
        if let Some(last_day_s) = last_day_s {
            self.reconciled_day.get_or_create(&labels).set(last_day_s);
        }
    }

    /// A day could not be compared with a vendor.
    pub fn reconciliation_failed(&self, vendor: &str) {
        let labels = VendorLabels {
            vendor: vendor.to_owned(),
        };
        self.unreconciled.get_or_create(&labels).inc();
    }

    /// What the engine counts into.
    #[must_use]
    pub fn journal(&self) -> JournalMetrics {
        self.journal.clone()
    }

    /// What is counted of vendors.
    #[must_use]
    pub fn vendors(&self) -> VendorMetrics {
        self.vendors.clone()
    }

    /// What deliveries count into.
    #[must_use]
    pub fn deliveries(&self) -> DeliveryMetrics {
        self.deliveries.clone()
    }

    /// How endpoints stand, at a look.
    pub fn saw_deliveries(&self, look: &Look) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.endpoints.set(gauge(look.enabled));
        self.failing_endpoints.set(gauge(look.failing));
        let age = look.backlog_age.as_secs();
        self.backlog_seconds.set(i64::try_from(age).unwrap_or(i64::MAX));
    }

    /// An answer was given.
    pub fn answered(&self, listener: &'static str, method: &'static str, status: u16, seconds: f64) {
        self.answers
            .get_or_create(&AnswerLabels {
                listener,
                method,
                status,
            })
            .inc();
        self.seconds
            .get_or_create(&ListenerLabels { listener })
            .observe(seconds);
    }

    /// A request was answered 429.
    pub fn rate_limited(&self, class: Class) {
        let class = class.as_str();
        self.rate_limited.get_or_create(&ClassLabels { class }).inc();
    }

    /// A request failed to authenticate.
    pub fn unauthenticated(&self, code: Code) {
        let code = code.as_str();
        self.unauthenticated.get_or_create(&CodeLabels { code }).inc();
    }

    /// The text that a Prometheus server reads.
    #[must_use]
    pub fn render(
        &self,
        engine: &Engine,
        procurement: &Procurement,
        deliveries: &Deliveries,
        rate_limits: &RateLimits,
    ) -> String {
        self.read_limits(rate_limits);
        self.read_actors("wallet", engine.wallets.total());
        self.read_actors("inventory", engine.inventory.total());
        self.read_actors("procurement", procurement.total());
        self.read_actors("delivery", deliveries.total());
        self.under_way
            .set(i64::try_from(engine.under_way()).unwrap_or(i64::MAX));
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing into a string fails only out of memory.
            text.clear();
        }
        resident_memory(&mut text);
        text
    }

    fn read_limits(&self, rate_limits: &RateLimits) {
        let (windows, addresses) = rate_limits.counts();
        self.windows.set(i64::try_from(windows).unwrap_or(i64::MAX));
        self.failing_addresses
            .set(i64::try_from(addresses).unwrap_or(i64::MAX));
    }

    fn read_actors(&self, kind: &'static str, total: Total) {
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
        set(&self.handled.get_or_create(&labels), total.handled);
        set(&self.restarts.get_or_create(&labels), total.restarts);
    }
}

/// The actors count for themselves; the figure follows them.
fn set(counter: &Counter<u64, AtomicU64>, value: u64) {
    counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
}

/// The process's resident memory, where the system tells; before the closing line of the text.
fn resident_memory(text: &mut String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    let Some(kib) = kib else { return };
    let end = text.rfind("# EOF").unwrap_or(text.len());
    text.truncate(end);
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {}\n# EOF",
        kib * 1024
    );
}
