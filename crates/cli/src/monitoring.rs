//! `vouchsafe overview`, `traffic`, `actors`, `nodes`, `lanes`, `settings`,
//! `audit` and `checkpoints`: what runs, and the audit trail.

use clap::{Args, Subcommand};
use vouchsafe_domain::audit_log::{AuditFilter, CheckpointFilter};
use vouchsafe_domain::period::Period;
use vouchsafe_wire::operator::actors::ActorsQuery;
use vouchsafe_wire::operator::monitoring::{
    GET_ACTOR, GET_OVERVIEW, LIST_ACTORS, LIST_AUDIT, LIST_AUDIT_CHECKPOINTS, LIST_LANES, LIST_NODES,
    LIST_SETTINGS, LIST_TRAFFIC, WRITE_AUDIT_CHECKPOINT,
};

use super::CommandOutput;
use super::admin::{AdminClient, AdminQuery, ListArgs};
use super::examples::examples;
use super::target::Target;

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
        _ => admin.list(LIST_ACTORS, query).await,
    }
}

pub(super) async fn overview(admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.run(GET_OVERVIEW).await
}

pub(super) async fn traffic(period: &Period, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_TRAFFIC, period).await
}

pub(super) async fn nodes(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_NODES, query).await
}

pub(super) async fn lanes(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_LANES, query).await
}

pub(super) async fn audit(
    query: &ListArgs<AuditFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_AUDIT, query).await
}

pub(super) async fn checkpoints(
    action: Option<CheckpointAction>,
    query: &ListArgs<CheckpointFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    match action {
        Some(CheckpointAction::Write) => admin.run(WRITE_AUDIT_CHECKPOINT).await,
        None => admin.list(LIST_AUDIT_CHECKPOINTS, query).await,
    }
}

pub(super) async fn settings(query: &ListArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(LIST_SETTINGS, query).await
}
