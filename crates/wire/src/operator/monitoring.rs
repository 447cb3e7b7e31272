//! Operations on the overview, live actors, nodes, the audit trail, and the search.

use vouchsafe_domain::audit_log::{AuditFilter, AuditRow, CheckpointFilter, CheckpointRow};
use vouchsafe_domain::node::{LaneBody, NodeRow};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::period::Period;

use crate::column::{Column, col};
use crate::filter::WholeList;
use crate::operation::{Page, operations};
use crate::operator::actors::{ActorHistory, ActorsQuery, LiveActors};
use crate::operator::live::{LiveEvent, Overview, SampleList, SamplesQuery, TrafficList};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::operator::refusals::{RefusalCount, RefusalsQuery};
use crate::operator::search::{SearchQuery, SearchResults};
use crate::operator::settings::Setting;

/// Columns of the sums over the actors of a kind.
pub const ACTOR_SUM_COLUMNS: [Column; 6] = [
    col("Kind", "kind").link("/actors/{kind}"),
    col("Actors", "actors"),
    col("Not ready", "not_ready"),
    col("Mailbox", "mailbox_depth"),
    col("Handled", "handled"),
    col("Restarts", "restarts"),
];

operations! {
    OperatorAccess;
    SEARCH: Operation<SearchQuery, SearchResults> =
        get("/search", Role::Viewer, "search", "Find objects by ID, name, reference or trace ID")
            .table_columns(&[
                col("Kind", "kind"),
                col("ID", "id"),
                col("Name", "label").text(12),
                col("Partner", "partner_id").at(2),
                col("Order", "order_id"),
            ]);
    GET_OVERVIEW: Operation<(), Overview> =
        get("/overview", Role::Viewer, "getOverview", "Get the overview")
            .table_columns(&[
                col("Product", "product_id").text(20),
                col("Denomination", "denomination currency"),
                col("Available", "free"),
                col("Sold in 7 days", "sold_7d"),
                col("Days left", "days_left"),
            ]);
    LIST_SAMPLES: Operation<SamplesQuery, SampleList> =
        get("/samples", Role::Viewer, "listSamples", "List traffic samples")
            .table_columns(&[
                col("Time", "at"),
                col("Orders/s", "orders_per_s"),
                col("Requests/s", "requests_per_s"),
                col("Order p50 (ms)", "order_p50_ms"),
                col("Order p99 (ms)", "order_p99_ms"),
                col("Answered with 503", "unavailable_share"),
                col("Commit (ms)", "commit_ms"),
                col("Records in flight", "records_in_flight"),
            ]);
    LIST_TRAFFIC: Operation<Period, TrafficList> =
        get("/traffic", Role::Viewer, "listTraffic", "List the traffic of all nodes")
            .table_columns(&[
                col("Time", "at"),
                col("Orders/s", "orders_per_s"),
                col("Requests/s", "requests_per_s"),
                col("Order p50 (ms)", "order_p50_ms"),
                col("Order p99 (ms)", "order_p99_ms"),
                col("503", "unavailable_share"),
                col("Commit (ms)", "commit_ms"),
            ]);
    FOLLOW_LIVE_FEED: Operation<(), LiveEvent<'static>> = get("/live", Role::Viewer, "followLiveFeed", "Follow the live feed");
    LIST_SETTINGS: Operation<WholeList, Page<Setting>> =
        get("/settings", Role::Viewer, "listSettings", "List settings")
            .columns(&[
                col("Name", "name"),
                col("Value", "value").text(20),
                col("Secret", "is_secret").at(3),
                col("Source", "source"),
                col("Description", "description").console_only(),
            ]);
    LIST_REFUSALS: Operation<RefusalsQuery, Page<RefusalCount>> =
        get("/refusals", Role::Viewer, "listRefusals", "List refused requests")
            .columns(&[
                col("Code", "code"),
                col("Status", "status"),
                col("Partner", "partner_id"),
                col("Requests", "requests"),
            ]);
    LIST_ACTORS: Operation<ActorsQuery, LiveActors> =
        get("/actors", Role::Viewer, "listActors", "List live actors")
            .table_columns(&[
                col("Key", "key").link("/actors/{kind}/{key}"),
                col("Kind", "kind").at(0),
                col("State", "state").at(5),
                col("Mailbox", "mailbox_depth"),
                col("Handled/s", "handled_per_s"),
                col("Handled", "handled").at(7),
                col("p50 (µs)", "handling_p50_us").console_only(),
                col("p99 (µs)", "handling_p99_us"),
                col("Restarts", "restarts"),
                col("Last error", "last_error.at last_error.message").text(12),
            ]);
    GET_ACTOR: Operation<(), ActorHistory> = get("/actors/{kind}/{key}", Role::Viewer, "getActor", "Get a live actor");
    LIST_NODES: Operation<WholeList, Page<NodeRow>> =
        get("/nodes", Role::Viewer, "listNodes", "List nodes")
            .columns(&[
                col("Node", "node"),
                col("Live", "is_live"),
                col("Version", "version"),
                col("Migration", "migration"),
                col("Started", "started_at").console_only(),
                col("Starts of the node", "incarnation").at(6),
                col("Lease until", "lease_until"),
                col("SKUs", "claimed_skus"),
                col("Chunks", "claimed_chunks"),
            ]);
    LIST_LANES: Operation<WholeList, Page<LaneBody>> =
        get("/lanes", Role::Viewer, "listLanes", "List lanes")
            .columns(&[
                col("Lane", "lane"),
                col("Can commit", "can_commit").at(6),
                col("Queued", "queued"),
                col("In flight", "in_flight"),
                col("Last batch", "last_batch_records"),
                col("Last commit (µs)", "last_commit_us"),
                col("Batches", "batches"),
            ]);
    LIST_AUDIT: Operation<AuditFilter, Page<AuditRow>> =
        get("/audit", Role::Viewer, "listAudit", "List audit entries")
            .columns(&[
                col("Number", "audit_id"),
                col("Time", "at"),
                col("Operator", "operator").text(12).at(4),
                col("Action", "action").text(18),
                col("Subject", "subject").text(12),
                col("Before", "before").console_only(),
                col("After", "after").console_only(),
                col("Trace", "trace_id").console_only(),
            ]);
    LIST_AUDIT_CHECKPOINTS: Operation<CheckpointFilter, Page<CheckpointRow>> =
        get("/audit/checkpoints", Role::Viewer, "listAuditCheckpoints", "List audit checkpoints")
            .columns(&[
                col("Number", "number"),
                col("Time", "at"),
                col("Entries", "entries"),
                col("Newest entry", "newest_audit_id"),
                col("Intact", "is_intact"),
                col("SHA-256", "hash").text(16),
            ]);
    WRITE_AUDIT_CHECKPOINT: Operation<(), CheckpointRow> =
        post("/audit/checkpoints", Role::Operator, Never, "writeAuditCheckpoint", "Write an audit checkpoint");
}
