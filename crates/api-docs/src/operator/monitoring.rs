//! OpenAPI operations of `/overview`, `/samples`, `/live`, `/refusals`, `/settings`,
//! `/actors`, `/nodes`, `/lanes`, `/audit` and `/metrics`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::metrics::{GET_METRICS, OPEN_METRICS, PROMETHEUS_TEXT};
use vouchsafe_wire::operator::monitoring;

use super::stock::level as stock_level;
use super::{describe, describe_public};
use crate::openapi::Operation;

pub(super) fn monitoring() -> [Operation; monitoring::OPERATIONS.len()] {
    [
        describe(monitoring::SEARCH, "The object of any kind with the ID, or up to 20 orders with the \
            trace ID or the reference, newest first. Names and codes are not searched.")
            .query()
            .ok("The objects found.", json!({ "data": [{
                "kind": "order", "id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "label": "DELIVERED",
            }], "has_more": false })),
        describe(monitoring::GET_OVERVIEW, "Traffic of the node that responds; of the deployment, the \
            numbers of orders, payouts and changes that wait for a decision, open drifts, failing \
            webhooks, nodes, and SKUs with little stock.")
            .ok("Overview.", overview()),
        describe(monitoring::LIST_SAMPLES, "Traffic of the node that responds: a sample per second for ten \
            minutes, or per ten seconds for six hours, oldest first. They begin with the start of the \
            process.")
            .query()
            .ok("Samples.", json!({ "data": [sample()] })),
        describe(monitoring::LIST_TRAFFIC, "Traffic of all nodes in a range of the last 30 days, by default of \
            the last day, from the minutes that every node stores: at most 360 periods, oldest first.")
            .query()
            .ok("Traffic.", json!({ "step_s": 240, "data": [{
                "at": "2026-11-20T12:00:00.000000Z", "requests_per_s": 812.4, "orders_per_s": 354.02, "unavailable_share": 0.0,
                "order_p50_ms": 3.584, "order_p99_ms": 14.336, "commit_ms": 1.85,
            }] })),
        describe(monitoring::FOLLOW_LIVE_FEED, "Traffic of the last second and the busiest actors of the \
            node that responds, and the overview, which is up to five seconds old. The actors are up to \
            ten seconds old if there are very many: their scan takes at most 1 % of a thread. With \
            `Accept: text/event-stream` the response is a stream of server-sent events: each second an \
            event `sample` with this object as its data. A stream ends after a minute; connect again, so \
            that your token is checked again. At most 64 streams per node.")
            .ok("Traffic and actors.", json!({ "sample": sample(), "overview": overview(), "actors": { "sums": [], "data": [], "has_more": false } }))
            .or_text("text/event-stream", "retry: 1000\n\nevent: sample\ndata: \
                {\"sample\":null,\"overview\":null,\"actors\":{\"sums\":[],\"data\":[],\"has_more\":false}}\n\n"),
        describe(monitoring::LIST_SETTINGS, "The settings in force on the node that responds, with their \
            sources. Values of secrets are not shown.")
            .list("Page of settings.", json!({
                "name": "VOUCHSAFE_LANES", "value": "2", "is_secret": false, "source": "default",
                "description": "Number of lanes that write to the database",
            })),
        describe(monitoring::LIST_REFUSALS, "Requests that the node that responds refused with 4xx or 5xx, \
            by error code and partner, the most frequent first. Counted in slots of ten minutes since the \
            start of the process, for a day at most.")
            .list("Page of refused requests.", json!({
                "code": "INSUFFICIENT_FUNDS", "status": 402, "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "requests": 12,
            })),
        describe(monitoring::LIST_ACTORS, "Actors of the node that responds: totals by kind, and the busiest actors first.")
            .query()
            .ok("Live actors.",
            json!({ "sums": [{
                "kind": "wallet", "actors": 1, "not_ready": 0, "mailbox_depth": 0, "handled": 12, "restarts": 0,
            }], "data": [actor_example()], "has_more": false })),
        describe(monitoring::GET_ACTOR, "An actor of the node that responds, and its last ten minutes: a \
            sample for each ten seconds, of the busiest actors and of those that an operator reads here.")
            .ok("Actor.", actor_with_samples()),
        describe(monitoring::LIST_NODES, "The nodes of the deployment with lease, version and claimed \
            stock, in byte order of their names.")
            .list("Page of nodes.", json!({
                "node": "node-3f6a", "incarnation": 4, "version": "1.0.0-rc.1", "migration": 10, "started_at": "2026-11-20T12:00:00.123456Z",
                "is_live": true, "renewed_at": "2026-11-20T12:10:00.123456Z", "lease_until": "2026-11-20T12:10:15.123456Z",
                "claimed_skus": 12, "claimed_chunks": 30,
            })),
        describe(monitoring::LIST_LANES, "The lanes of the node that responds: each commits the orders of its partners in batches.")
            .list("Page of lanes.", json!({
                "lane": 0, "in_flight": 21, "queued": 5, "batches": 4711, "last_batch_records": 16, "last_commit_us": 1850,
                "can_commit": true,
            })),
        describe(monitoring::LIST_AUDIT, "Actions of operators and partners, newest first, without codes, secrets or bodies.")
            .list("Page of audit entries.", json!({
                "audit_id": 7, "at": "2026-11-20T12:00:00.123456Z", "operator": "admin", "action": "partner.change",
                "subject": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "before": { "suspended": false }, "after": { "suspended": true },
                "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
            })),
        describe(monitoring::LIST_AUDIT_CHECKPOINTS, "The hash chain over the audit trail, newest first. \
            With `check`, each is compared with its entries; `vouchsafe verify` compares all, and with an \
            exported file it detects that the newest checkpoints were removed together with their entries.")
            .list("Page of checkpoints.", checkpoint()),
        describe(monitoring::WRITE_AUDIT_CHECKPOINT, "Covers all audit entries now, also the one of this \
            request, instead of within ten seconds. The response is the newest checkpoint.")
            .ok("Newest checkpoint.", checkpoint()),
    ]
}

fn actor_with_samples() -> Value {
    let mut actor = actor_example();
    actor["samples"] =
        json!([{ "at": "2026-11-20T12:00:00.123456Z", "mailbox_depth": 0, "handled_per_s": 1.2 }]);
    actor
}

fn actor_example() -> Value {
    json!({
        "kind": "wallet", "key": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "mailbox_depth": 0, "handled": 12, "handled_per_s": 1.2,
        "handling_p50_us": 16, "handling_p99_us": 64, "restarts": 0, "state": "ready",
        "last_error": { "at": "2026-11-20T12:00:00.123456Z", "message": "cannot read wallet: no connection to the database" },
    })
}

fn sales(partner_id: Option<&str>, product_id: Option<&str>) -> Value {
    json!({
        "partner_id": partner_id, "product_id": product_id, "currency": "USD",
        "orders_today": 310, "vouchers_today": 480, "amount_today": 12_000,
        "orders_yesterday": 295, "vouchers_yesterday": 460, "amount_yesterday": 11_500,
    })
}

fn overview() -> Value {
    json!({
        "node": "node-3f6a", "version": "1.0.0-rc.1", "environment": "production", "is_ready": true,
        "replication": "synchronous", "replica_lag_s": 0.412, "traffic": sample(),
        "orders_at_vendors": 12, "orders_to_approve": 1, "payouts_to_decide": 0, "requests_to_confirm": 2, "purchases_to_end": 0,
        "drifts_open": 3, "webhooks_failing": 1, "webhooks_gone": 0, "nodes_live": 2, "nodes_lost": 0,
        "sales": {
            "by_currency": [sales(None, None)],
            "by_partner": [sales(Some("ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"), None)],
            "by_product": [sales(None, Some("amzn-us"))],
        },
        "circuits_open": 0, "exports_behind": 0, "low_stock_skus": 1, "low_stock": [stock_level()],
    })
}

fn sample() -> Value {
    json!({
        "at": "2026-11-20T12:00:00.123456Z", "requests_per_s": 152.0, "orders_per_s": 101.5, "unavailable_share": 0.0,
        "order_p50_ms": 2.048, "order_p99_ms": 7.168, "commit_ms": 1.85, "records_in_flight": 3,
    })
}

fn checkpoint() -> Value {
    json!({
        "number": 12, "at": "2026-11-20T12:00:10.123456Z", "entries": 3, "newest_audit_id": 7,
        "hash": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
        "is_intact": true,
    })
}

pub(super) fn metrics() -> Operation {
    let text = "# HELP vouchsafe_journal_records_in_flight Journal records between decision and verdict.\n\
                # TYPE vouchsafe_journal_records_in_flight gauge\nvouchsafe_journal_records_in_flight 0\n";
    let description = "For Prometheus: the text format 0.0.4, or OpenMetrics if `Accept` prefers it.";
    describe_public(GET_METRICS, description)
        .text(PROMETHEUS_TEXT, "Metrics.", text)
        .or_text(OPEN_METRICS, "# EOF\n")
}
