//! Log lines: for people on a terminal, or JSON.
//!
//! Rule: a line has a message for people and dotted fields for queries; never a code, a secret or a body. In JSON the
//! fields of the request stand beside those of the line, so that `trace.id` is asked for in one place.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::LogFormat;

/// Starts logging to standard error.
///
/// # Errors
/// [`ParseError`] when the filter is none.
pub fn start(filter: &str, format: LogFormat) -> Result<(), ParseError> {
    let filter: EnvFilter = filter.parse()?;
    let lines = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Terminal => {
            let text = tracing_subscriber::fmt::layer().with_writer(stderr);
            let text = text.with_ansi(stderr().is_terminal()).with_target(false);
            lines.with(text).init();
        }
        LogFormat::Json => {
            let json = json_subscriber::layer().with_writer(stderr);
            let json = json.with_current_span(false).with_span_list(false);
            let json = json.flatten_event(true).flatten_span_list_on_top_level(true);
            lines.with(json).init();
        }
    }
    Ok(())
}
