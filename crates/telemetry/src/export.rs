//! OpenTelemetry span exporter: OTLP over HTTP, in batches, from a background thread.
//!
//! Requests never wait for the collector. Only spans with the target [`SPANS`] are exported, no log events.

mod queue;

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider};
use prometheus_client::registry::Registry as MetricsRegistry;
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use tracing::{Metadata, Span, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::Layer as _;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_domain::spans::SPANS;
use vouchsafe_http_client::tls;
use vouchsafe_security::environment::Environment;

use self::queue::SpanQueue;
use super::{BoxedLayer, CollectorUrl, TelemetryError};
use crate::trace::Traceparent;

/// Timeout of one batch, including retries.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the final flush. It runs last in a shutdown, when the grace period may be used up.
const FLUSH_DEADLINE: Duration = Duration::from_secs(2);

thread_local! {
    /// Trace id for the next root span of this thread.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// A running exporter.
pub(super) struct SpanExport {
    provider: SdkTracerProvider,
    queue: SpanQueue,
}

impl SpanExport {
    /// Starts the exporter without connecting; an unreachable collector shows when the first batch is sent.
    pub(super) fn start(
        collector: &CollectorUrl,
        headers: HashMap<String, String>,
        environment: Environment,
    ) -> Result<Self, TelemetryError> {
        let exporter = build_exporter(&collector.traces_url(), headers);
        let exporter = exporter.map_err(|error| TelemetryError::Client(describe_chain(&*error)))?;
        let queue = SpanQueue::default();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue.wrap(exporter))
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_id_generator(TraceIdGenerator::default())
            .with_resource(resource(environment))
            .build();
        Ok(Self { provider, queue })
    }

    /// The layer that turns `tracing` spans into OpenTelemetry spans, without source locations and threads.
    pub(super) fn layer(&self) -> BoxedLayer {
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

    pub(super) fn register(&self, metrics: &mut MetricsRegistry) {
        self.queue.register(metrics);
    }

    pub(super) fn finish(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_DEADLINE) {
            warn!(error.message = %error, "cannot flush spans to the collector");
        }
    }
}

/// Builds the OTLP client, without redirects and proxies: spans go only to the configured collector.
fn build_exporter(url: &str, headers: HashMap<String, String>) -> anyhow::Result<SpanExporter> {
    tls::install_crypto_provider();
    let client = Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .timeout(EXPORT_TIMEOUT);
    let client = if url.starts_with("https:") {
        client
    } else {
        client.tls_backend_preconfigured(tls::config_without_roots()?)
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client.build()?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_TIMEOUT)
        .with_headers(headers)
        .with_endpoint(url);
    Ok(exporter.build()?)
}

fn resource(environment: Environment) -> Resource {
    Resource::builder_empty()
        .with_service_name("vouchsafe")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new(
            "deployment.environment.name",
            environment.into_str(),
        ))
        .build()
}

/// Generates random ids, except for root spans whose trace id is already in the response and the log.
#[derive(Debug, Default)]
struct TraceIdGenerator {
    random: RandomIdGenerator,
}

impl IdGenerator for TraceIdGenerator {
    fn new_trace_id(&self) -> TraceId {
        NEXT_TRACE.take().unwrap_or_else(|| self.random.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.random.new_span_id()
    }
}

/// See [`super::start_span`].
pub(super) fn start_span(span: &Span, trace_id: &str, parent: Option<Traceparent<'_>>) {
    match parent.and_then(remote_span_context) {
        // Fails if the span is not exported, which does not matter here.
        Some(parent) => drop(span.set_parent(Context::new().with_remote_span_context(parent))),
        None => NEXT_TRACE.set(TraceId::from_hex(trace_id).ok()),
    }
    // Reading the context forces the layer to assign the ids now.
    drop(span.context());
    NEXT_TRACE.set(None);
}

/// The caller's span context with its sampling flag.
fn remote_span_context(parent: Traceparent<'_>) -> Option<SpanContext> {
    let flags = u8::from_str_radix(parent.flags, 16).ok()?;
    Some(SpanContext::new(
        TraceId::from_hex(parent.trace_id).ok()?,
        SpanId::from_hex(parent.span_id).ok()?,
        TraceFlags::new(flags) & TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    ))
}
