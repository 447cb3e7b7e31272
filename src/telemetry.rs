//! What the process tells of its work: log lines, for people on a terminal or in JSON, and the spans of each request, for a
//! collector.
//!
//! Rule: a line has a message for people and dotted fields for queries; never a code, a secret or a body, nor has a span. In
//! JSON the fields of the request stand beside those of the line, so that `trace.id` is asked for in one place.

mod collector;
#[cfg(feature = "otlp")]
mod export;
mod fields;
#[cfg(any(test, not(feature = "otlp")))]
mod no_export;

use std::io::{IsTerminal as _, stderr};

use prometheus_client::registry::Registry as Figures;
use tracing::Span;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry};

pub use self::collector::{CollectorUrl, NoCollector};
use self::export::Export;
use self::fields::PlainFields;
#[cfg(not(feature = "otlp"))]
use self::no_export as export;
use crate::secrets::expose;
use crate::settings::{LogFormat, ServeSettings};
use crate::trace::Traceparent;

/// What is no HTTP is answered and not logged: anybody could fill a disk with it. A filter that names this target has the
/// last word.
const GARBAGE: &str = "actix_http::h1::dispatcher=off";

type Tells = Box<dyn Layer<Registry> + Send + Sync>;

/// What was started and must be ended.
pub struct Telemetry {
    export: Option<Export>,
}

/// Why nothing is told.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("VOUCHSAFE_LOG: {0}")]
    Filter(#[from] ParseError),
    /// Whom spans are sent to.
    #[error("VOUCHSAFE_OTLP_ENDPOINT: {0}")]
    Collector(#[from] NoCollector),
    /// Spans are to be exported, and nothing that could is part of this program.
    #[error(
        "VOUCHSAFE_OTLP_ENDPOINT is set, and this program was built without the feature otlp: leave the setting out, or \
         build with cargo build --release --features otlp"
    )]
    BuiltWithout,
    /// Spans are to be exported, and what sends them cannot be had.
    #[error("VOUCHSAFE_OTLP_ENDPOINT: no client for the collector can be made: {0}")]
    NoClient(String),
}

/// Starts logging to standard error, and exporting spans where a collector is named.
///
/// # Errors
/// [`TelemetryError`].
pub fn start(settings: &ServeSettings) -> Result<Telemetry, TelemetryError> {
    let filter: EnvFilter = format!("{GARBAGE},{}", settings.log).parse()?;
    let export = settings.otlp_endpoint().map(|text| {
        let collector: CollectorUrl = expose(text).parse()?;
        Export::to(&collector, settings.environment)
    });
    let export = export.transpose()?;
    // The filter is that of the lines alone: what is exported is another question than what is logged.
    let lines = lines(settings.log_format).with_filter(filter).boxed();
    let spans = export.as_ref().map(Export::layer);
    let tells: Vec<Tells> = [lines].into_iter().chain(spans).collect();
    tracing_subscriber::registry().with(tells).init();
    Ok(Telemetry { export })
}

fn lines(format: LogFormat) -> Tells {
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

/// The span of a request begins, as part of this trace: as a child of the span of who calls, if it said one. Without an
/// exporter this is nothing.
pub fn begin(span: &Span, trace_id: &str, parent: Option<Traceparent<'_>>) {
    export::begin(span, trace_id, parent);
}

impl Telemetry {
    /// Shows how many spans were exported and how many were lost, if any are to be exported.
    pub(crate) fn register(&self, figures: &mut Figures) {
        if let Some(export) = &self.export {
            export.register(figures);
        }
    }

    /// Sends what was not sent yet. Takes a few seconds at most, also where nobody takes it.
    pub fn finish(self) {
        if let Some(export) = self.export {
            export.finish();
        }
    }
}
