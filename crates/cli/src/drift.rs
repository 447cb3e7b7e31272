//! `vouchsafe drift`: list and resolve differences between vendor records and purchases.

use clap::Subcommand;
use vouchsafe_domain::reconciliation::drift::DriftFilter;
use vouchsafe_wire::operator::reconciliation::drifts::ResolveRequest;
use vouchsafe_wire::operator::reconciliation::{LIST_DRIFTS, RESOLVE_DRIFT};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::DriftRef;

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List drifts, newest first.
    #[command(after_help = examples![
        "vouchsafe drift list --resolution pending",
        "vouchsafe drift list --date 2026-11-20 --vendor acme-cards --kind MISSING --json",
    ])]
    List(ListArgs<DriftFilter>),
    /// Mark a drift as resolved, or as escalated to the vendor.
    #[command(after_help = examples![
        "vouchsafe drift resolve DRIFT_ID --reason 'the vendor has corrected its records'",
        "vouchsafe drift resolve DRIFT_ID --as escalated --reason 'asked the vendor, ticket 4711'",
    ])]
    Resolve(RequestArgs<DriftRef, ResolveRequest>),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => admin.list(LIST_DRIFTS, &args).await,
        Action::Resolve(args) => args.send(RESOLVE_DRIFT, admin).await,
    }
}
