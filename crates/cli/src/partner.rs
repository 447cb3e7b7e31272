//! `vouchsafe partner`: partners, their terms and certification.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use vouchsafe_domain::certification::result::CheckState;
use vouchsafe_domain::partner::PartnerFilter;
use vouchsafe_wire::operator::erasure::{ErasureReport, PartnerErasureRequest};
use vouchsafe_wire::operator::partners::{
    CHANGE_PARTNER, CREATE_PARTNER, ERASE_PARTNER, GET_CERTIFICATION, GET_PARTNER, LIST_LIMIT_USE,
    LIST_PARTNERS, NewPartner, PartnerPatch, RESTART_CERTIFICATION,
};

use super::admin::{AdminClient, ListArgs, NO_BODY, RequestArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef};
use super::{CommandOutput, output};

/// State of a check that needs no advice.
const PASSED: &str = CheckState::Passed.into_str();

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Create a partner; its first secret is shown once.
    #[command(after_help = examples![
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.0/24",
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.7 --limit orders=500/60 --json",
    ])]
    Create(NewPartner),
    /// List partners, newest first.
    #[command(after_help = examples![
        "vouchsafe partner list --name example",
        "vouchsafe partner list --credential CREDENTIAL_ID",
    ])]
    List(ListArgs<PartnerFilter>),
    /// Show a partner with its credentials.
    #[command(after_help = examples!["vouchsafe partner show PARTNER_ID"])]
    Show(PartnerRef),
    /// List the rate limits of a partner's live credentials, with their current use.
    #[command(after_help = examples!["vouchsafe partner limits PARTNER_ID"])]
    Limits {
        #[command(flatten)]
        partner: PartnerRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Change one or more terms of a partner, effective at once.
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
    /// Suspend a partner: its requests are rejected, except reading the codes of its orders.
    #[command(after_help = examples![
        "vouchsafe partner suspend PARTNER_ID",
        "vouchsafe partner suspend PARTNER_ID --block-codes",
    ])]
    Suspend {
        #[command(flatten)]
        partner: PartnerRef,
        /// Reject reading codes too.
        #[arg(long)]
        block_codes: bool,
    },
    /// Resume a suspended partner.
    #[command(after_help = examples!["vouchsafe partner resume PARTNER_ID"])]
    Resume(PartnerRef),
    /// Erase references, metadata, destinations and reasons of closed orders and decided payouts. This cannot
    /// be undone.
    #[command(after_help = examples!["vouchsafe partner erase PARTNER_ID --reason 'end of the contract'"])]
    Erase(RequestArgs<PartnerRef, PartnerErasureRequest>),
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe partner set PARTNER_ID --limit orders=500/60 --limit general=default",
    r#"vouchsafe partner set PARTNER_ID --approval-rule '{"amount_over":{"USD":500}}' --cancel-window 600"#,
    r#"vouchsafe partner set PARTNER_ID --caps '{"pending_orders":50,"spend_per_day":{"USD":5000}}'"#,
])]
#[command(override_usage = "vouchsafe partner set [OPTIONS] <PARTNER_ID>")]
#[group(id = "terms", required = true, multiple = true, args = TERMS)]
pub struct SetArgs {
    #[command(flatten)]
    partner: PartnerRef,
    #[command(flatten)]
    patch: PartnerPatch,
}

/// The options of a change; at least one is required.
const TERMS: [&str; 9] = [
    "allowlist",
    "limits",
    "ceilings",
    "approval_rule",
    "caps",
    "catalogue",
    "cancel_window_s",
    "certified_at",
    "agreement_signed_at",
];

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (partner, patch) = match action {
        Action::Create(args) => return admin.send(CREATE_PARTNER, &args).await,
        Action::List(args) => return admin.list(LIST_PARTNERS, &args).await,
        Action::Limits { partner, list } => {
            return admin.list(partner.at(LIST_LIMIT_USE), &list).await;
        }
        Action::Show(partner) => return admin.run(partner.at(GET_PARTNER)).await,
        Action::Certification { partner, start_over } => {
            return certification(admin, &partner, start_over).await;
        }
        Action::Erase(args) => return erase(admin, args).await,
        Action::Set(args) => (args.partner, args.patch),
        Action::Suspend { partner, block_codes } => (partner, PartnerPatch::suspend(block_codes)),
        Action::Resume(partner) => (partner, PartnerPatch::resume()),
    };
    admin.send(partner.at(CHANGE_PARTNER), &patch).await
}

/// Erases part after part. An erasure that was interrupted is continued by the same command.
async fn erase(
    admin: &AdminClient,
    mut args: RequestArgs<PartnerRef, PartnerErasureRequest>,
) -> anyhow::Result<CommandOutput> {
    let mut erased = ErasureReport::default();
    loop {
        let response = admin
            .call(args.object.at(ERASE_PARTNER), Some(&args.request))
            .await?;
        let part: ErasureReport = serde_json::from_str(&response).context("unexpected response format")?;
        erased.orders += part.orders;
        erased.payouts += part.payouts;
        if part.next_after.is_none() {
            break;
        }
        args.request.after = part.next_after;
    }
    let ErasureReport { orders, payouts, .. } = erased;
    admin.show(serde_json::to_string(&erased)?, |_| {
        Ok(format!(
            "personal data of {orders} orders and {payouts} payouts was erased"
        ))
    })
}

async fn certification(
    admin: &AdminClient,
    partner: &PartnerRef,
    start_over: bool,
) -> anyhow::Result<CommandOutput> {
    if start_over {
        return admin.run(partner.at(RESTART_CERTIFICATION)).await;
    }
    let response = admin.call(partner.at(GET_CERTIFICATION), NO_BODY).await?;
    admin.show(response, |response| {
        let table = output::format_field_table(response, "checks", GET_CERTIFICATION.route.columns)?;
        let advice = output::format_paragraphs(response, "checks", ["check", "advice"], ("state", PASSED))?;
        Ok(format!("{table}\n{advice}"))
    })
}
