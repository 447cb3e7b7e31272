//! Operations on the overview, live actors, nodes, the audit trail, and the search.

use vouchsafe_domain::audit_log::{AuditFilter, AuditRow, CheckpointFilter, CheckpointRow};
use vouchsafe_domain::node::{LaneReading, NodeRow};
use vouchsafe_domain::operator::Role;

use crate::filter::WholeList;
use crate::operation::{Page, operations};
use crate::operator::actors::{ActorHistory, ActorsQuery, LiveActors};
use crate::operator::live::{LiveEvent, Overview, SampleList, SamplesQuery};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::operator::refusals::{RefusalCount, RefusalsQuery};
use crate::operator::search::{SearchQuery, SearchResults};
use crate::operator::settings::Setting;

operations! {
    OperatorAccess;
    SEARCH: Operation<SearchQuery, SearchResults> = get("/search", Role::Viewer, "search", "Find an object by ID or reference");
    GET_OVERVIEW: Operation<(), Overview> = get("/overview", Role::Viewer, "getOverview", "Get the overview");
    LIST_SAMPLES: Operation<SamplesQuery, SampleList> = get("/samples", Role::Viewer, "listSamples", "List traffic samples");
    FOLLOW_LIVE_FEED: Operation<(), LiveEvent<'static>> = get("/live", Role::Viewer, "followLiveFeed", "Follow the live feed");
    LIST_SETTINGS: Operation<WholeList, Page<Setting>> = get("/settings", Role::Viewer, "listSettings", "List settings");
    LIST_REFUSALS: Operation<RefusalsQuery, Page<RefusalCount>> =
        get("/refusals", Role::Viewer, "listRefusals", "List refused requests");
    LIST_ACTORS: Operation<ActorsQuery, LiveActors> = get("/actors", Role::Viewer, "listActors", "List live actors");
    GET_ACTOR: Operation<(), ActorHistory> = get("/actors/{kind}/{key}", Role::Viewer, "getActor", "Get a live actor");
    LIST_NODES: Operation<WholeList, Page<NodeRow>> = get("/nodes", Role::Viewer, "listNodes", "List nodes");
    LIST_LANES: Operation<WholeList, Page<LaneReading>> = get("/lanes", Role::Viewer, "listLanes", "List lanes");
    LIST_AUDIT: Operation<AuditFilter, Page<AuditRow>> = get("/audit", Role::Viewer, "listAudit", "List audit entries");
    LIST_AUDIT_CHECKPOINTS: Operation<CheckpointFilter, Page<CheckpointRow>> =
        get("/audit/checkpoints", Role::Viewer, "listAuditCheckpoints", "List audit checkpoints");
    WRITE_AUDIT_CHECKPOINT: Operation<(), CheckpointRow> =
        post("/audit/checkpoints", Role::Operator, Never, "writeAuditCheckpoint", "Write an audit checkpoint");
}
