//! What tests read from an order's body.

use serde_json::Value;

pub fn id_of(order: &Value) -> String {
    order["order_id"].as_str().unwrap().to_owned()
}

/// Returns status, actor and reason of each timeline entry.
pub fn stages(order: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let timeline = order["timeline"].as_array().unwrap().iter();
    timeline
        .map(|stage| {
            let text = |field| stage[field].as_str();
            (text("status").unwrap(), text("by").unwrap(), text("reason"))
        })
        .collect()
}

/// Returns the status of each timeline entry.
pub fn statuses(order: &Value) -> Vec<&str> {
    stages(order).into_iter().map(|(status, ..)| status).collect()
}

/// Returns the delivered, pending and failed counts of the first line; with the cancelled they add up to its
/// quantity.
pub fn line_counts(order: &Value) -> [u64; 3] {
    let line = &order["items"][0];
    let counts = ["delivered", "pending", "failed"].map(|field| line[field].as_u64().unwrap());
    let cancelled = line["cancelled"].as_u64().unwrap();
    assert_eq!(counts.iter().sum::<u64>() + cancelled, line["quantity"], "{line}");
    counts
}
