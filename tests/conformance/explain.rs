//! Query plans from the server's log (`auto_explain`).

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use vouchsafe_test_harness::Database;

/// Settings that make the server log its plans, including those of statements inside functions.
pub(crate) const EXPLAIN: [(&str, &str); 5] = [
    ("session_preload_libraries", "auto_explain"),
    ("auto_explain.log_min_duration", "0"),
    ("auto_explain.log_nested_statements", "on"),
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_format", "json"),
];

/// Reserves the server's log for one test and truncates it, because the server's guard truncates a log of
/// several megabytes.
pub(crate) async fn lock_log() -> MutexGuard<'static, ()> {
    static LOG: Mutex<()> = Mutex::const_new(());
    let log = LOG.lock().await;
    Database::truncate_log();
    log
}

/// Plans in a section of the log, each with its statement.
pub(crate) fn plans(log: &str) -> Vec<Value> {
    let plans = log.split("plan:\n").skip(1).map(|rest| {
        let lines = rest.lines().take_while(|line| line.starts_with('\t'));
        lines.collect::<Vec<_>>().join("\n")
    });
    plans.map(|plan| serde_json::from_str(&plan).unwrap()).collect()
}

/// Number of rows that a plan node and its children read from tables, including filtered rows.
pub(crate) fn rows_read(node: &Value) -> f64 {
    let below = node["Plans"].as_array().into_iter().flatten();
    let below: f64 = below.map(rows_read).sum();
    let is_scan = node["Node Type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("Scan"));
    if !is_scan {
        return below;
    }
    let number = |name: &str| node[name].as_f64().unwrap_or_default();
    let each =
        number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    below + each * number("Actual Loops")
}
