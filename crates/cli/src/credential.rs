//! `vouchsafe credential`: issue, list, rotate and revoke credentials.

use clap::Subcommand;
use vouchsafe_wire::operator::credentials::{
    ISSUE_CREDENTIAL, LIST_CREDENTIALS, NewCredential, REVOKE_CREDENTIAL, ROTATE_CREDENTIAL, RevocationQuery,
};
use vouchsafe_wire::partner::credentials::RotateRequest;
use vouchsafe_wire::query;

use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{CredentialRef, ObjectRef as _, PartnerRef};
use super::{CommandOutput, output};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Issue a credential; its secret is shown once.
    #[command(after_help = examples![
        "vouchsafe credential issue PARTNER_ID --allow 203.0.113.7",
        "vouchsafe credential issue PARTNER_ID --scope orders --scope codes",
    ])]
    Issue(RequestArgs<PartnerRef, NewCredential>),
    /// List the credentials of a partner, newest first, including revoked ones.
    #[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
    List {
        #[command(flatten)]
        partner: PartnerRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Rotate a credential: issue its successor, whose secret is shown once, and end it after an overlap.
    #[command(after_help = examples!["vouchsafe credential rotate CREDENTIAL_ID --overlap-seconds 3600"])]
    Rotate(RequestArgs<CredentialRef, RotateRequest>),
    /// Revoke a credential and those rotated from it, effective at once.
    #[command(after_help = examples![
        "vouchsafe credential revoke CREDENTIAL_ID",
        "vouchsafe credential revoke CREDENTIAL_ID --descendants keep",
    ])]
    Revoke {
        #[command(flatten)]
        credential: CredentialRef,
        #[command(flatten)]
        query: RevocationQuery,
    },
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Issue(args) => args.send(ISSUE_CREDENTIAL, admin).await,
        Action::List { partner, list } => admin.list(partner.at(LIST_CREDENTIALS), &list).await,
        Action::Rotate(args) => args.send(ROTATE_CREDENTIAL, admin).await,
        Action::Revoke { credential, query } => {
            let query = query::to_string(&query)?;
            let response = admin.query(credential.at(REVOKE_CREDENTIAL), &query).await?;
            admin.show(response, output::format_object)
        }
    }
}
