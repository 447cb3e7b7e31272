//! OpenAPI operations of `/actors`, `/audit` and `/metrics`.

use serde_json::json;
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::actors::{ActorList as Actors, ActorsQuery};

use super::{MONITORING, SERVICE, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse};
use crate::metrics::MetricsFormat;

pub(crate) fn actors(operation: Operation) -> Operation {
    let sum = json!({
        "kind": "wallet", "actors": 1, "not_ready": 0, "mailbox_depth": 0, "handled": 12, "restarts": 0,
    });
    let actor = json!({
        "kind": "wallet", "key": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "mailbox_depth": 0, "handled": 12, "restarts": 0,
        "state": "ready",
    });
    read_operation(operation, "listActors")
        .describe(
            MONITORING,
            "List live actors",
            "Totals by kind, and the busiest actors first.",
        )
        .query::<ActorsQuery>()
        .ok::<Actors>(
            "Live actors.",
            json!({ "sums": [sum], "data": [actor], "has_more": false }),
        )
        .errors(&[Code::ValidationFailed])
}

pub(crate) fn audit(operation: Operation) -> Operation {
    let entry = json!({
        "audit_id": 7, "at": "2026-11-20T12:00:00.123456Z", "operator": "admin", "action": "partner.change",
        "subject": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "before": { "suspended": false }, "after": { "suspended": true },
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    read_operation(operation, "listAudit")
        .describe(
            MONITORING,
            "List audit entries",
            "Actions of operators and partners, newest first, without codes, secrets or bodies.",
        )
        .list::<AuditFilter, AuditRow>("Page of audit entries.", entry)
}

pub(crate) fn metrics(operation: Operation) -> Operation {
    let [plain, open_metrics] =
        [MetricsFormat::PrometheusText, MetricsFormat::OpenMetrics].map(MetricsFormat::content_type);
    operation
        .id("getMetrics")
        .describe(
            SERVICE,
            "Get metrics",
            "For Prometheus: the text format 0.0.4, or OpenMetrics if `Accept` prefers it.",
        )
        .response(
            OperationResponse::text(
                plain,
                "Metrics.",
                "# HELP vouchsafe_journal_records_in_flight Journal records between decision and verdict.\n\
                 # TYPE vouchsafe_journal_records_in_flight gauge\nvouchsafe_journal_records_in_flight 0\n",
            )
            .or_text(open_metrics, "# EOF\n"),
        )
}
