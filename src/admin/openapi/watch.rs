//! What is said of actors, the trail and the figures.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::{SERVICE, WATCH, looks};
use crate::admin::actors::{Answer as Actors, DEFAULT_SHOWN, MAX_SHOWN};
use crate::admin::audit::EntryBody;
use crate::errors::Code;
use crate::openapi::{Answer, Operation, filter, integer, word};

pub(super) fn operations() -> [Operation; 3] {
    [actors(), audit(), metrics()]
}

fn actors() -> Operation {
    let sum = json!({
        "kind": "wallet", "actors": 1, "not_ready": 0, "mailbox_depth": 0, "handled": 12, "restarts": 0,
    });
    let actor = json!({
        "kind": "wallet", "key": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "mailbox_depth": 0, "handled": 12, "restarts": 0,
        "state": "ready",
    });
    looks("/actors", "listActors")
        .says(
            WATCH,
            "List live actors",
            "Sums of each kind, and the busiest first.",
        )
        .query(
            "limit",
            "How many are shown.",
            integer(1, MAX_SHOWN, DEFAULT_SHOWN),
        )
        .query(
            "kind",
            "Only those of this kind.",
            word(["wallet", "inventory", "delivery"]),
        )
        .answers(Answer::of::<Actors>(
            200,
            "The actors.",
            json!({ "sums": [sum], "data": [actor], "has_more": false }),
        ))
        .refuses(&[Code::ValidationFailed])
}

fn audit() -> Operation {
    let entry = json!({
        "audit_id": 7, "at": "2026-11-20T12:00:00.123456Z", "operator": "admin", "action": "partner.change",
        "subject": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "before": { "suspended": false }, "after": { "suspended": true },
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    looks("/audit", "listAudit")
        .says(
            WATCH,
            "Read the trail",
            "What operators did, newest first. It never holds a code, a secret or a body.",
        )
        .query("operator", "Only what this operator did.", filter("admin"))
        .query("action", "Only what was done so.", filter("partner.change"))
        .query(
            "subject",
            "Only what was done to this.",
            filter("ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"),
        )
        .dated()
        .paged()
        .answers(Answer::page_of::<EntryBody>("Entries.", entry))
}

fn metrics() -> Operation {
    Operation::new(HttpMethod::Get, "/metrics", "getMetrics")
        .says(
            SERVICE,
            "Figures for Prometheus",
            "In the OpenMetrics text format.",
        )
        .answers(Answer::text(
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "The figures.",
            "# EOF\n",
        ))
}
