//! Logging to standard error (text or JSON) and OpenTelemetry span export.
//!
//! A log event has a short message and dotted fields. Neither events nor spans contain voucher codes, secrets
//! or bodies. JSON lines have the span's fields at the top level, so that a query finds `trace.id` in one
//! place.

mod collector;
#[cfg(feature = "otlp")]
mod export;
#[cfg(any(test, not(feature = "otlp")))]
mod export_disabled;
mod plain_fields;
pub mod refusal_counts;
pub mod refusal_log;
mod repeats;
pub mod security_event_metrics;
pub mod security_events;
pub mod trace;

use std::io::{IsTerminal as _, stderr};

use clap::ValueEnum;
use prometheus_client::registry::Registry as MetricsRegistry;
use tracing::Span;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{FilterExt as _, ParseError, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

pub use self::collector::{CollectorUrl, InvalidCollectorUrl};
use self::export::SpanExport;
#[cfg(not(feature = "otlp"))]
use self::export_disabled as export;
use self::plain_fields::PlainFields;
use self::repeats::RepeatFilter;
use vouchsafe_security::environment::Environment;

use crate::trace::Traceparent;

/// Malformed HTTP gets a response but no log line, because anyone could fill the disk with it.
/// `VOUCHSAFE_LOG` can override this by naming the target.
const MUTED_TARGETS: &str = "actix_http::h1::dispatcher=off";

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The running telemetry, to be finished at shutdown.
pub struct Telemetry {
    export: Option<SpanExport>,
}

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("VOUCHSAFE_LOG: {0}")]
    Filter(#[from] ParseError),
    #[error("VOUCHSAFE_OTLP_ENDPOINT: {0}")]
    Collector(#[from] InvalidCollectorUrl),
    /// The text is left out: it contains credentials.
    #[error("OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE, comma-separated")]
    Headers,
    #[error(
        "VOUCHSAFE_OTLP_ENDPOINT is set, but this program was built without the feature otlp; remove the setting, or \
         build with cargo build --release --features otlp"
    )]
    FeatureDisabled,
    #[error("VOUCHSAFE_OTLP_ENDPOINT: cannot create an HTTP client for the collector: {0}")]
    Client(String),
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Readable text.
    Terminal,
    /// One JSON object per line.
    Json,
}

/// What the process logs and exports.
#[derive(Clone, Copy)]
pub struct TelemetrySettings<'a> {
    /// Log level, or a filter such as `info,vouchsafe=debug`.
    pub log: &'a str,
    pub log_format: LogFormat,
    /// URL of the collector, which may contain credentials; `None`: no span is exported.
    pub otlp_endpoint: Option<&'a str>,
    /// Headers for the collector, `NAME=VALUE`, comma-separated.
    pub otlp_headers: &'a str,
    pub environment: Environment,
}

/// Starts logging, and span export if a collector is configured.
///
/// # Errors
/// [`TelemetryError`] for an invalid filter or collector URL, or if the exporter cannot start.
pub fn start(settings: TelemetrySettings<'_>) -> Result<Telemetry, TelemetryError> {
    let filter: Targets = format!("{MUTED_TARGETS},{}", settings.log).parse()?;
    let export = settings.otlp_endpoint.map(|text| {
        let collector: CollectorUrl = text.parse()?;
        let headers = collector::parse_headers(settings.otlp_headers).ok_or(TelemetryError::Headers)?;
        SpanExport::start(&collector, headers, settings.environment)
    });
    let export = export.transpose()?;
    // The log filter must not drop exported spans, so it applies to the log layer only. One filter: each
    // costs at every span.
    let filter = filter.and(RepeatFilter::default());
    let log = log_layer(settings.log_format).with_filter(filter).boxed();
    let spans = export.as_ref().map(SpanExport::layer);
    let layers: Vec<BoxedLayer> = [log].into_iter().chain(spans).collect();
    tracing_subscriber::registry().with(layers).init();
    Ok(Telemetry { export })
}

fn log_layer(format: LogFormat) -> BoxedLayer {
    match format {
        LogFormat::Terminal => {
            let text = tracing_subscriber::fmt::layer().with_writer(stderr);
            let text = text.with_target(false);
            if stderr().is_terminal() {
                text.with_ansi(true).boxed()
            } else {
                text.with_ansi(false).fmt_fields(PlainFields).boxed()
            }
        }
        LogFormat::Json => {
            let json = json_subscriber::layer().with_writer(stderr);
            let json = json.with_current_span(false).with_span_list(false);
            let json = json.flatten_event(true).flatten_span_list_on_top_level(true);
            json.boxed()
        }
    }
}

/// Starts a request's span in the given trace, as a child of the caller's span if there is one. Does nothing
/// without an exporter.
pub fn start_span(span: &Span, trace_id: &str, parent: Option<Traceparent<'_>>) {
    export::start_span(span, trace_id, parent);
}

impl Telemetry {
    /// Exports no spans and leaves the process's logging unchanged.
    #[must_use]
    pub const fn disabled() -> Self {
        Self { export: None }
    }

    /// Registers the metrics of exported and dropped spans, if export is enabled.
    pub fn register(&self, metrics: &mut MetricsRegistry) {
        if let Some(export) = &self.export {
            export.register(metrics);
        }
    }

    /// Sends the queued spans. Takes a few seconds at most, even if the collector does not respond.
    pub fn finish(self) {
        if let Some(export) = self.export {
            export.finish();
        }
    }
}
