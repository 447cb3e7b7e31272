//! `vouchsafe credential`: handing access out, looking at it, and taking it back.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, NO_BODY, PageOptions, escaped};
use super::examples::examples;
use super::id;
use super::partner::path_of;
use super::show::Column;

const COLUMNS: [Column; 6] = [
    ("CREDENTIAL", "credential_id"),
    ("LIVE", "live"),
    ("FROM", "not_before"),
    ("UNTIL", "not_after"),
    ("REVOKED", "revoked_at"),
    ("ROTATED", "rotated_at"),
];

/// Arguments of `vouchsafe credential`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
pub struct CredentialArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be done to credentials.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Issue a credential. Its secret is shown once.
    #[command(after_help = examples!["vouchsafe credential issue PARTNER_ID --allow 203.0.113.7"])]
    Issue {
        /// Whose.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        /// Narrows the partner's allowlist. May be repeated.
        #[arg(long = "allow", value_name = "CIDR")]
        allow: Vec<String>,
    },
    /// List the credentials of a partner, newest first, those out of force too.
    #[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
    List {
        /// Whose.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Take a credential out of force, at once.
    #[command(after_help = examples!["vouchsafe credential revoke CREDENTIAL_ID"])]
    Revoke {
        /// Its id.
        #[arg(value_parser = id::credential)]
        credential_id: String,
    },
}

/// Runs `vouchsafe credential`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::Issue { partner_id, allow } => {
            let body = if allow.is_empty() {
                json!({})
            } else {
                json!({ "allowlist": allow })
            };
            let path = format!("{}/credentials", path_of(&partner_id));
            admin.change(Method::POST, &path, Some(&body)).await
        }
        Action::List { partner_id, page } => {
            let path = format!("{}/credentials", path_of(&partner_id));
            admin.list(&path, &page.query(), &COLUMNS).await
        }
        Action::Revoke { credential_id } => {
            let path = format!("/credentials/{}", escaped(&credential_id));
            let answer = admin.call(Method::DELETE, &path, NO_BODY).await?;
            admin.show(answer, |_| Ok(format!("{credential_id} is revoked")))
        }
    }
}
