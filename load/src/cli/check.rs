//! `load check`: consistency check of a recorded history.

use std::io::Write as _;
use std::path::Path;

use vouchsafe_api_client::history::History;
use vouchsafe_api_client::history::check::check;

/// Returns whether the history is consistent.
pub(crate) fn command(path: &Path) -> anyhow::Result<bool> {
    let history = History::read(path)?;
    let mut out = std::io::stdout().lock();
    match check(&history) {
        Ok(summary) => {
            writeln!(out, "{}", serde_json::to_string(&summary)?)?;
            Ok(true)
        }
        Err(violation) => {
            writeln!(out, "VIOLATION: {violation}")?;
            Ok(false)
        }
    }
}
