//! OpenAPI operations of `/actors`, `/audit` and `/metrics`.

use serde_json::json;
use utoipa::openapi::HttpMethod;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::actors::{ActorList as Actors, DEFAULT_LIMIT, KINDS, MAX_LIMIT};
use vouchsafe_wire::operator::audit::AuditEntryBody;

use super::{MONITORING, SERVICE, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, enum_text, filter, integer};

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
    read_operation("/actors", "listActors")
        .describe(
            MONITORING,
            "List live actors",
            "Totals by kind, and the busiest actors first.",
        )
        .query_parameter(
            "limit",
            "Maximum number of actors.",
            integer(1, MAX_LIMIT, DEFAULT_LIMIT),
        )
        .query_parameter("kind", "Filter by kind.", enum_text(KINDS))
        .response(OperationResponse::json::<Actors>(
            200,
            "Live actors.",
            json!({ "sums": [sum], "data": [actor], "has_more": false }),
        ))
        .errors(&[Code::ValidationFailed])
}

fn audit() -> Operation {
    let entry = json!({
        "audit_id": 7, "at": "2026-11-20T12:00:00.123456Z", "operator": "admin", "action": "partner.change",
        "subject": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "before": { "suspended": false }, "after": { "suspended": true },
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    read_operation("/audit", "listAudit")
        .describe(
            MONITORING,
            "List audit entries",
            "Actions of operators and partners, newest first, without codes, secrets or bodies.",
        )
        .query_parameter("operator", "Filter by operator.", filter("admin"))
        .query_parameter("action", "Filter by action.", filter("partner.change"))
        .query_parameter(
            "subject",
            "Filter by subject.",
            filter("ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"),
        )
        .with_period()
        .paginated()
        .response(OperationResponse::page::<AuditEntryBody>(
            "Page of audit entries.",
            entry,
        ))
}

fn metrics() -> Operation {
    Operation::new(HttpMethod::Get, "/metrics", "getMetrics")
        .describe(
            SERVICE,
            "Get metrics",
            "For Prometheus, in the OpenMetrics text format.",
        )
        .response(OperationResponse::text(
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "Metrics.",
            "# EOF\n",
        ))
}
