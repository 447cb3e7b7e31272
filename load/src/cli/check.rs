//! `load check`: consistency check of a recorded history.

use std::io::Write as _;
use std::path::Path;

use vouchsafe_api_client::history::History;
use vouchsafe_api_client::history::check::check;
use vouchsafe_load::report::Verdict;

pub(crate) fn command(path: &Path) -> anyhow::Result<Verdict> {
    let history = History::read(path)?;
    let mut out = std::io::stdout().lock();
    match check(&history) {
        Ok(summary) => {
            writeln!(out, "{}", serde_json::to_string(&summary)?)?;
            Ok(Verdict::Passed)
        }
        Err(violation) => {
            writeln!(out, "VIOLATION: {violation}")?;
            Ok(Verdict::AuditFailed)
        }
    }
}
