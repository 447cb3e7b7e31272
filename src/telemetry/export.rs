//! Spans on their way to a collector: by OTLP over HTTP, in batches, from a thread of their own.
//!
//! Rule: who is served never waits for a collector. What is exported are the spans of [`SPANS`], and no log line.

mod queue;

use std::cell::Cell;
use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider};
use prometheus_client::registry::Registry as Figures;
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use tracing::{Metadata, Span, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::Layer as _;
use vouchsafe_actors::SPANS;

use self::queue::Queue;
use super::{CollectorUrl, TelemetryError, Tells};
use crate::access::environment::Environment;
use crate::tls;
use crate::trace::Traceparent;

/// How long the collector may take for a batch, attempts that follow a failed one included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the end of the program waits for what is not sent yet: it comes after everything else, when what a shutdown may
/// take may be spent.
const FLUSH_DEADLINE: Duration = Duration::from_secs(2);

thread_local! {
    /// The trace that the next span without a parent begins.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// An exporter that runs.
pub(super) struct Export {
    provider: SdkTracerProvider,
    queue: Queue,
}

impl Export {
    /// Starts it; whether the collector is there is seen when spans are sent.
    pub(super) fn to(collector: &CollectorUrl, environment: Environment) -> Result<Self, TelemetryError> {
        let exporter = exporter(&collector.traces());
        let exporter = exporter.map_err(|error| TelemetryError::NoClient(format!("{error:#}")))?;
        let queue = Queue::default();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue.in_front_of(exporter))
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_id_generator(Ids::default())
            .with_resource(resource(environment))
            .build();
        Ok(Self { provider, queue })
    }

    /// Makes spans of what is traced. Without the place in the sources and the thread: they say nothing of an order.
    pub(super) fn layer(&self) -> Tells {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("vouchsafe"))
            .with_context_activation(false)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let exported = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target() == SPANS;
        spans
            .with_filter(filter_fn(exported).with_max_level_hint(LevelFilter::DEBUG))
            .boxed()
    }

    pub(super) fn register(&self, figures: &mut Figures) {
        self.queue.register(figures);
    }

    pub(super) fn finish(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_DEADLINE) {
            warn!(%error, "the last spans were not sent");
        }
    }
}

/// It follows no redirect, and no proxy stands between: the collector is where it was said to be.
fn exporter(url: &str) -> anyhow::Result<SpanExporter> {
    tls::provide();
    let client = Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .timeout(EXPORT_TIMEOUT);
    let client = if url.starts_with("https:") {
        client
    } else {
        client.tls_backend_preconfigured(tls::trusting_nobody()?)
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client.build()?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_TIMEOUT)
        .with_endpoint(url);
    Ok(exporter.build()?)
}

fn resource(environment: Environment) -> Resource {
    Resource::builder_empty()
        .with_service_name("vouchsafe")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("deployment.environment.name", environment.as_str()))
        .build()
}

/// Random ids, except for a trace whose id was told already: to who calls, and in log lines.
#[derive(Debug, Default)]
struct Ids {
    random: RandomIdGenerator,
}

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT_TRACE.take().unwrap_or_else(|| self.random.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.random.new_span_id()
    }
}

/// The span of a request begins, as part of this trace.
pub(super) fn begin(span: &Span, trace_id: &str, parent: Option<Traceparent<'_>>) {
    match parent.and_then(remote) {
        // It fails where the span is not exported.
        Some(parent) => drop(span.set_parent(Context::new().with_remote_span_context(parent))),
        None => NEXT_TRACE.set(TraceId::from_hex(trace_id).ok()),
    }
    // Who asks for its context begins it.
    drop(span.context());
    NEXT_TRACE.set(None);
}

/// The span of who calls, and whether it is recorded.
fn remote(parent: Traceparent<'_>) -> Option<SpanContext> {
    let flags = u8::from_str_radix(parent.flags, 16).ok()?;
    Some(SpanContext::new(
        TraceId::from_hex(parent.trace_id).ok()?,
        SpanId::from_hex(parent.span_id).ok()?,
        TraceFlags::new(flags) & TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    ))
}
