//! `vouchsafe overview`, `actors`, `nodes`, `lanes`, `settings`,
//! `audit` and `checkpoints`: what runs, and the audit trail.

use clap::{Args, Subcommand};
use vouchsafe_domain::audit_log::{AuditFilter, CheckpointFilter};
use vouchsafe_wire::operator::actors::ActorsQuery;
use vouchsafe_wire::operator::monitoring::{
    GET_ACTOR, GET_OVERVIEW, LIST_ACTORS, LIST_AUDIT, LIST_AUDIT_CHECKPOINTS, LIST_LANES, LIST_NODES,
    LIST_SETTINGS, WRITE_AUDIT_CHECKPOINT,
};

use super::CommandOutput;
use super::admin::{AdminClient, AdminQuery, ListArgs};
use super::examples::examples;
use super::table::{Column, column, text};
use super::target::Target;

const ACTOR_COLUMNS: [Column; 10] = [
    column("KIND", "kind"),
    column("KEY", "key"),
    column("MAILBOX", "mailbox_depth"),
    column("HANDLED", "handled"),
    column("PER S", "handled_per_s"),
    column("P99 US", "handling_p99_us"),
    column("STATE", "state"),
    column("RESTARTS", "restarts"),
    text("LAST ERROR", "last_error.message", 12),
    column("AT", "last_error.at"),
];

const NODE_COLUMNS: [Column; 7] = [
    column("NODE", "node"),
    column("LIVE", "is_live"),
    column("VERSION", "version"),
    column("LEASE UNTIL", "lease_until"),
    column("SKUS", "claimed_skus"),
    column("CHUNKS", "claimed_chunks"),
    column("STARTS", "incarnation"),
];

const LANE_COLUMNS: [Column; 7] = [
    column("LANE", "lane"),
    column("QUEUED", "queued"),
    column("IN FLIGHT", "in_flight"),
    column("LAST BATCH", "last_batch_records"),
    column("LAST COMMIT US", "last_commit_us"),
    column("BATCHES", "batches"),
    column("CAN COMMIT", "can_commit"),
];

const AUDIT_COLUMNS: [Column; 5] = [
    column("ENTRY", "audit_id"),
    column("AT", "at"),
    text("ACTION", "action", 18),
    text("SUBJECT", "subject", 12),
    text("OPERATOR", "operator", 12),
];

const SETTING_COLUMNS: [Column; 4] = [
    column("NAME", "name"),
    text("VALUE", "value", 20),
    column("SOURCE", "source"),
    column("SECRET", "is_secret"),
];

const CHECKPOINT_COLUMNS: [Column; 6] = [
    column("CHECKPOINT", "number"),
    column("AT", "at"),
    column("ENTRIES", "entries"),
    column("NEWEST ENTRY", "newest_audit_id"),
    column("INTACT", "is_intact"),
    text("SHA-256", "hash", 16),
];

/// Checkpoints to list, or to write.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckpointsArgs {
    #[command(flatten)]
    pub(super) list: AdminQuery<ListArgs<CheckpointFilter>>,
    #[command(subcommand)]
    pub(super) action: Option<CheckpointAction>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum CheckpointAction {
    /// Write a checkpoint over all audit entries now, instead of within ten seconds.
    #[command(after_help = examples!["vouchsafe checkpoints write"])]
    Write,
}

/// Which actors to show.
#[derive(Debug, Args)]
pub struct ActorsArgs {
    #[command(flatten)]
    query: ActorsQuery,
    /// Show this actor and its last ten minutes, by its key as in the list.
    #[arg(long, requires = "kind", conflicts_with = "limit")]
    key: Option<String>,
}

pub(super) async fn actors(args: &ActorsArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let ActorsArgs { query, key } = args;
    match (query.kind, key) {
        (Some(kind), Some(key)) => {
            let actor = Target::from(GET_ACTOR).with("kind", kind.into());
            admin.run(actor.with("key", key)).await
        }
        _ => admin.list(LIST_ACTORS, query, &ACTOR_COLUMNS).await,
    }
}

pub(super) async fn overview(admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.run(GET_OVERVIEW).await
}

pub(super) async fn nodes(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_NODES, query, &NODE_COLUMNS).await
}

pub(super) async fn lanes(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_LANES, query, &LANE_COLUMNS).await
}

pub(super) async fn audit(
    query: &ListArgs<AuditFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_AUDIT, query, &AUDIT_COLUMNS).await
}

pub(super) async fn checkpoints(
    action: Option<CheckpointAction>,
    query: &ListArgs<CheckpointFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    match action {
        Some(CheckpointAction::Write) => admin.run(WRITE_AUDIT_CHECKPOINT).await,
        None => {
            admin
                .list(LIST_AUDIT_CHECKPOINTS, query, &CHECKPOINT_COLUMNS)
                .await
        }
    }
}

pub(super) async fn settings(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_SETTINGS, query, &SETTING_COLUMNS).await
}
