//! `vouchsafe credential`: issue, list and revoke credentials.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::admin::{AdminClient, AdminOptions, NO_BODY, PageOptions, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::partner::partner_path;
use super::{CommandOutput, id};

const COLUMNS: [Column; 6] = [
    ("CREDENTIAL", "credential_id"),
    ("LIVE", "live"),
    ("FROM", "not_before"),
    ("UNTIL", "not_after"),
    ("REVOKED", "revoked_at"),
    ("ROTATED", "rotated_at"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
pub struct CredentialArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Issue a credential; its secret is shown once.
    #[command(after_help = examples!["vouchsafe credential issue PARTNER_ID --allow 203.0.113.7"])]
    Issue {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        /// Network or address to which the credential is restricted. Can be repeated.
        #[arg(long = "allow", value_name = "CIDR")]
        allow: Vec<String>,
    },
    /// List the credentials of a partner, newest first, including revoked ones.
    #[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
    List {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Revoke a credential, effective at once.
    #[command(after_help = examples!["vouchsafe credential revoke CREDENTIAL_ID"])]
    Revoke {
        /// Credential ID.
        #[arg(value_parser = id::credential)]
        credential_id: String,
    },
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Issue { partner_id, allow } => {
            let body = if allow.is_empty() {
                json!({})
            } else {
                json!({ "allowlist": allow })
            };
            let path = format!("{}/credentials", partner_path(&partner_id));
            admin.change(Method::POST, &path, Some(&body)).await
        }
        Action::List { partner_id, page } => {
            let path = format!("{}/credentials", partner_path(&partner_id));
            admin.show_list(&path, &page.query(), &COLUMNS).await
        }
        Action::Revoke { credential_id } => {
            let path = format!("/credentials/{}", percent_encode(&credential_id));
            let response = admin.call(Method::DELETE, &path, NO_BODY).await?;
            admin.show(response, |_| Ok(format!("{credential_id} is revoked")))
        }
    }
}
