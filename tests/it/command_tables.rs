//! Tables of the list commands with long values: at most 100 columns wide, with complete IDs.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::command_help::{
    commands, create_example_files, is_path_match, routes, run_in_shell, start_recording_server,
};
use crate::commands::utf8;
use vouchsafe_test_harness::{Listener, program};

const LONGEST_SLUG: &str = "a-slug-of-sixty-four-characters-which-is-the-longest-one-allowed";

/// Fields with a label of the API, and its longest label where an example has another.
const LABELS: [(&str, Option<&str>); 13] = [
    ("pending_reason", Some("APPROVAL")),
    ("fault", Some("connection")),
    ("outcome", None),
    ("event", Some("order.partially_delivered")),
    ("last_response", Some("OUT_OF_STOCK")),
    ("currency", None),
    ("date", None),
    ("role", None),
    ("status", None),
    ("state", None),
    ("kind", None),
    ("type", Some("PAYOUT_REVERSAL")),
    ("resolution", Some("escalated")),
];

/// Replaces the texts in an example by long ones; IDs and times stay.
fn lengthen(name: &str, value: &mut Value) {
    if let Some((_, longest)) = LABELS.iter().find(|(label, _)| *label == name) {
        if let Some(longest) = longest {
            *value = json!(longest);
        }
        return;
    }
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| lengthen(name, value)),
        Value::Array(values) => values.iter_mut().for_each(|value| lengthen(name, value)),
        Value::String(text)
            if text.contains('_') || text.ends_with('Z') || text.matches('-').count() == 4 => {}
        Value::String(text) if name.ends_with("_id") || name == "vendor" => LONGEST_SLUG.clone_into(text),
        Value::String(text) => *text = format!("begin {} end\u{1b}", "長い値 ".repeat(40)),
        _ => {}
    }
}

/// Returns the longest response that the document shows for a path.
fn long_response(path: &str) -> Value {
    let document = Listener::Operator.document();
    let paths = document.served()["paths"].as_object().unwrap();
    let mut templates = paths.iter().filter(|(template, _)| is_path_match(template, path));
    let content =
        |item: &Value| item["get"]["responses"]["200"]["content"]["application/json"]["example"].clone();
    let mut body = templates
        .find_map(|(_, item)| Some(content(item)).filter(Value::is_object))
        .unwrap_or(json!({}));
    lengthen("", &mut body);
    if path.ends_with("/operators") {
        body["data"][0]["name"] = json!(LONGEST_SLUG);
    }
    if path.ends_with("/identities") {
        body["data"][0]["subject"] = json!("f".repeat(36));
    }
    if path.ends_with("/nodes") {
        body["data"][0]["node"] = json!(format!("node-{}", "f".repeat(32)));
    }
    if path.ends_with("/expiries") {
        body["data"][0]["month"] = json!("2027-12");
    }
    if path.ends_with("/orders") {
        body["data"][0]["status"] = json!("PARTIALLY_DELIVERED");
    }
    body
}

#[tokio::test]
async fn tables_with_long_values_fit_and_show_whole_ids() {
    let (url, requests) = start_recording_server(|path| long_response(path).to_string());
    let directory = create_example_files();
    let shell_function = format!("vouchsafe() {{ {} \"$@\"; }}", program().display());
    let environment = [
        ("VOUCHSAFE_ADMIN_URL", url.as_str()),
        ("VOUCHSAFE_OPERATOR_TOKEN", "any"),
        ("COLUMNS", "100"),
    ];
    let mut tables = 0;
    for command in commands().iter().filter(|command| command.is_operator_command) {
        for example in command
            .examples
            .iter()
            .filter(|example| !example.contains("--json"))
        {
            let output = run_in_shell(&shell_function, example, directory.path(), &environment);
            let sent: Vec<_> = requests.try_iter().collect();
            let (method, path) = &sent[0];
            let first = long_response(path)["data"][0].clone();
            if *method != "GET" || !first.is_object() {
                continue;
            }
            tables += 1;
            let table = utf8(&output.stdout);
            let lines: Vec<_> = table.lines().collect();
            for line in &lines {
                assert!(
                    line.width() <= 100 && !line.contains(char::is_control),
                    "{example}:\n{table}"
                );
            }
            // The first column names the entry.
            let values: Vec<_> = first.as_object().unwrap().values().collect();
            let shown = lines[1].split("  ").next().unwrap();
            assert!(
                values
                    .iter()
                    .any(|value| value.to_string().trim_matches('"') == shown)
                    // A time is printed without its fraction.
                    || shown.width() <= 20,
                "{example}:\n{table}"
            );
        }
    }
    let lists = routes()
        .into_iter()
        .filter(|(method, path)| method == "GET" && long_response(path)["data"].is_array());
    assert!(tables >= lists.count(), "{tables}");
}

/// The columns that an operator needs first are there with long values, too.
#[tokio::test]
async fn tables_keep_the_most_important_columns() {
    let (url, _requests) = start_recording_server(|path| long_response(path).to_string());
    for (line, headings) in [
        ("order list", &["ORDER", "PARTNER", "STATUS", "WAITS"][..]),
        (
            "webhook deliveries",
            &["DELIVERY", "WEBHOOK", "STATUS", "RESPONSE"],
        ),
        ("webhook list", &["WEBHOOK", "PARTNER", "STATUS", "BACKLOG"]),
        ("partner list", &["PARTNER", "NAME", "SUSPENDED", "CREATED"]),
        ("payout list", &["PAYOUT", "PARTNER", "STATUS", "AMOUNT"]),
    ] {
        let output = run_in_shell(
            &format!("vouchsafe() {{ {} \"$@\"; }}", program().display()),
            &format!("vouchsafe {line}"),
            std::path::Path::new("/"),
            &[
                ("VOUCHSAFE_ADMIN_URL", url.as_str()),
                ("VOUCHSAFE_OPERATOR_TOKEN", "any"),
            ],
        );
        let table = utf8(&output.stdout);
        let shown: Vec<_> = table
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        assert!(
            headings.iter().all(|heading| shown.contains(heading)),
            "{line}:\n{table}{}",
            utf8(&output.stderr)
        );
    }
}
