//! Totals of the campaigns of docs/reliability/campaigns.jsonl.

use std::fmt::Write as _;

use serde_json::Value;

/// Campaigns with what a batch counts.
const CAMPAIGNS: [(&str, &str); 6] = [
    (
        "kills",
        "kills of the service, its server, a backend, its guard, or several of them",
    ),
    ("node-kills", "kills of one of two nodes"),
    (
        "cuts",
        "histories of six clients on two nodes, checked for strict serialisability",
    ),
    ("power-cuts", "power cuts of the machine of service and database"),
    ("walks", "random walks of 400 steps"),
    ("races", "schedules for each race"),
];

/// The table of docs/reliability.md.
pub(crate) fn table(lines: &str) -> String {
    let batches: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut table = String::from(
        "| Campaign | Count | Seen in them | Batches | Last commit | Failed batches |\n|---|---|---|---|---|---|\n",
    );
    for (name, counted) in CAMPAIGNS {
        let own: Vec<_> = batches.iter().filter(|batch| batch["campaign"] == name).collect();
        let sum = |field: &str| own.iter().filter_map(|batch| batch[field].as_u64()).sum::<u64>();
        let Some(last) = own.last() else {
            continue;
        };
        let seen = ["orders", "operations", "cut_responses"].map(|field| (field, sum(field)));
        let seen = seen.iter().filter(|(_, count)| *count > 0);
        let seen: Vec<_> = seen
            .map(|(field, count)| format!("{count} {}", field.replace('_', " ")))
            .collect();
        writeln!(
            table,
            "| {counted} | {} | {} | {} | `{}` | {} |",
            sum("count"),
            seen.join(", "),
            own.len(),
            last["commit"].as_str().unwrap(),
            sum("failures")
        )
        .unwrap();
    }
    table
}

#[test]
fn batches_of_a_campaign_are_added_up() {
    let lines = r#"{"campaign":"kills","commit":"a","count":14,"orders":100,"failures":0}
{"campaign":"walks","commit":"a","count":500,"failures":0}
{"campaign":"kills","commit":"b","count":6,"orders":11,"failures":1}"#;
    let table = table(lines);
    assert!(table.contains("| 20 | 111 orders | 2 | `b` | 1 |"), "{table}");
    assert!(
        table.contains("| random walks of 400 steps | 500 |  | 1 | `a` | 0 |"),
        "{table}"
    );
}
