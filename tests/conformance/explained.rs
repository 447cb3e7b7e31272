//! How did the server run a statement? It says so in its log (`auto_explain`), and each test reads what it asked for itself.

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::server;

/// What makes the server tell its plans, those of statements inside of functions too.
pub(crate) const EXPLAIN: [(&str, &str); 5] = [
    ("session_preload_libraries", "auto_explain"),
    ("auto_explain.log_min_duration", "0"),
    ("auto_explain.log_nested_statements", "on"),
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_format", "json"),
];

/// The server's log for one test alone, and empty: what is read of it is what this test asked for, and the server's guard cuts
/// a log that has grown by megabytes.
pub(crate) async fn log_to_itself() -> MutexGuard<'static, ()> {
    static LOG: Mutex<()> = Mutex::const_new(());
    let log = LOG.lock().await;
    server::empty_log();
    log
}

/// The plans in a piece of the log, each with its statement.
pub(crate) fn plans(log: &str) -> Vec<Value> {
    let plans = log.split("plan:\n").skip(1).map(|rest| {
        let lines = rest.lines().take_while(|line| line.starts_with('\t'));
        lines.collect::<Vec<_>>().join("\n")
    });
    plans.map(|plan| serde_json::from_str(&plan).unwrap()).collect()
}

/// How many rows a node of a plan and those below it got out of tables, kept or not.
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
