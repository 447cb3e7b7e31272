//! `vouchsafe request`: changes that need a second operator.

use clap::Subcommand;
use vouchsafe_domain::change_request::ChangeRequestFilter;
use vouchsafe_wire::operator::change_requests::{
    CONFIRM_CHANGE_REQUEST, DECLINE_CHANGE_REQUEST, GET_CHANGE_REQUEST, LIST_CHANGE_REQUESTS,
};
use vouchsafe_wire::operator::decision::DeclineRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{ChangeRequestRef, ObjectRef as _};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List change requests, newest first.
    #[command(after_help = examples!["vouchsafe request list --status WAITING", "vouchsafe request list --kind TOP_UP"])]
    List(ListArgs<ChangeRequestFilter>),
    /// Show a change request with the change, without codes.
    #[command(after_help = examples!["vouchsafe request show REQUEST_ID"])]
    Show(ChangeRequestRef),
    /// Confirm the change of another operator: it is carried out, and its result is shown.
    #[command(after_help = examples!["vouchsafe request confirm REQUEST_ID"])]
    Confirm(ChangeRequestRef),
    /// Decline a change request, or withdraw your own.
    #[command(after_help = examples!["vouchsafe request decline REQUEST_ID --reason 'the statement has another amount'"])]
    Decline(RequestArgs<ChangeRequestRef, DeclineRequest>),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(list) => admin.list(LIST_CHANGE_REQUESTS, &list).await,
        Action::Show(request) => admin.run(request.at(GET_CHANGE_REQUEST)).await,
        Action::Confirm(request) => admin.run(request.at(CONFIRM_CHANGE_REQUEST)).await,
        Action::Decline(args) => args.send(DECLINE_CHANGE_REQUEST, admin).await,
    }
}
