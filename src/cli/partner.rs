//! `vouchsafe partner`: partners, their terms and certification.

use clap::{Args, Subcommand};
use reqwest::Method;
use vouchsafe_wire::operator::partners::{NewPartner, PartnerPatch};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, NO_BODY};
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef};
use super::output::{self, Column};

const COLUMNS: [Column; 5] = [
    ("PARTNER", "partner_id"),
    ("NAME", "name"),
    ("SUSPENDED", "suspended"),
    ("ALLOWLIST", "allowlist"),
    ("CREATED", "created_at"),
];

const CERTIFICATION_COLUMNS: [Column; 5] = [
    ("CHECK", "check"),
    ("STATE", "state"),
    ("AT", "at"),
    ("REASON", "reason"),
    ("ADVICE", "advice"),
];

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Create a partner; its first secret is shown once.
    #[command(after_help = examples![
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.0/24",
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.7 --limit orders=500/60 --json",
    ])]
    Create(NewPartner),
    /// List partners, newest first.
    #[command(after_help = examples!["vouchsafe partner list --limit 20"])]
    List(ListArgs),
    /// Show a partner with its credentials.
    #[command(after_help = examples!["vouchsafe partner show PARTNER_ID"])]
    Show(PartnerRef),
    /// Change the terms of a partner, effective at once.
    Set(Box<SetArgs>),
    /// Show the certification checks of a partner in the sandbox.
    #[command(after_help = examples![
        "vouchsafe partner certification PARTNER_ID --json > certification.json",
        "vouchsafe partner certification PARTNER_ID --start-over",
    ])]
    Certification {
        #[command(flatten)]
        partner: PartnerRef,
        /// Delete the observations, so that every check is open again.
        #[arg(long)]
        start_over: bool,
    },
    /// Suspend a partner: its requests are rejected.
    #[command(after_help = examples!["vouchsafe partner suspend PARTNER_ID"])]
    Suspend(PartnerRef),
    /// Resume a suspended partner.
    #[command(after_help = examples!["vouchsafe partner resume PARTNER_ID"])]
    Resume(PartnerRef),
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe partner set PARTNER_ID --limit orders=500/60 --limit general=default",
    r#"vouchsafe partner set PARTNER_ID --approval-rule '{"amount_over":{"USD":500}}' --cancel-window 3600"#,
])]
#[group(id = "terms", required = true, multiple = true, args = TERMS)]
pub struct SetArgs {
    #[command(flatten)]
    partner: PartnerRef,
    #[command(flatten)]
    patch: PartnerPatch,
}

/// The options of a change; at least one is required.
const TERMS: [&str; 7] = [
    "allowlist",
    "limits",
    "approval_rule",
    "catalogue",
    "cancel_window_s",
    "certified_at",
    "agreement_signed_at",
];

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (partner, patch) = match action {
        Action::Create(args) => return admin.post("/partners", &args).await,
        Action::List(args) => return admin.list("/partners", &args, &COLUMNS).await,
        Action::Show(partner) => return admin.get(&partner.path()).await,
        Action::Certification { partner, start_over } => {
            return certification(admin, &partner, start_over).await;
        }
        Action::Set(args) => (args.partner, args.patch),
        Action::Suspend(partner) => (partner, PartnerPatch::suspend(true)),
        Action::Resume(partner) => (partner, PartnerPatch::suspend(false)),
    };
    admin.change(Method::PATCH, &partner.path(), Some(&patch)).await
}

async fn certification(
    admin: &AdminClient,
    partner: &PartnerRef,
    start_over: bool,
) -> anyhow::Result<CommandOutput> {
    let path = format!("{}/certification", partner.path());
    if start_over {
        return admin.change(Method::DELETE, &path, NO_BODY).await;
    }
    let response = admin.call(Method::GET, &path, NO_BODY).await?;
    admin.show(response, |response| {
        output::format_field_table(response, "checks", &CERTIFICATION_COLUMNS)
    })
}
