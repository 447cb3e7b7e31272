//! Log lines: for people on a terminal, or JSON.
//!
//! Rule: a line has a message for people and dotted fields for queries; never a code, a secret or a body.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::settings::LogFormat;

/// Starts logging to standard error.
///
/// # Errors
/// [`ParseError`] when the filter is none.
pub fn start(filter: &str, format: LogFormat) -> Result<(), ParseError> {
    let filter: EnvFilter = filter.parse()?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Terminal => lines
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
