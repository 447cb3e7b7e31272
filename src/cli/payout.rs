//! `vouchsafe payout`: list payouts of all partners and record their outcome.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Serialize;
use vouchsafe_domain::payout::PayoutStatus;

use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::{CommandOutput, id};

const COLUMNS: [Column; 7] = [
    ("PAYOUT", "payout_id"),
    ("PARTNER", "partner_id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount"),
    ("CURRENCY", "currency"),
    ("REFERENCE", "reference"),
    ("CREATED", "created_at"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe payout list --status PENDING"])]
pub struct PayoutArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List payouts of all partners, newest first.
    List(PayoutFilters),
    /// Show a payout with its destination.
    #[command(after_help = examples!["vouchsafe payout show PAYOUT_ID"])]
    Show {
        /// Payout ID.
        #[arg(value_parser = id::payout)]
        payout_id: String,
    },
    /// Record a payout as paid.
    #[command(after_help = examples!["vouchsafe payout pay PAYOUT_ID --reference bank-4711"])]
    Pay(DecisionArgs),
    /// Reject a payout; the money returns to the wallet.
    #[command(after_help = examples!["vouchsafe payout reject PAYOUT_ID --reason 'no such account'"])]
    Reject(DecisionArgs),
    /// Record a payout as failed; the money returns to the wallet.
    #[command(after_help = examples!["vouchsafe payout fail PAYOUT_ID --reason 'the bank sent it back' --reference bank-4711"])]
    Fail(DecisionArgs),
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe payout list --status PENDING",
    "vouchsafe payout list --partner PARTNER_ID --json",
])]
pub(super) struct PayoutFilters {
    /// Filter by partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// Filter by status.
    #[arg(long, value_parser = PossibleValuesParser::new(PayoutStatus::ALL.map(PayoutStatus::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

#[derive(Debug, Args, Serialize)]
pub(super) struct DecisionArgs {
    /// Payout ID.
    #[arg(value_parser = id::payout)]
    #[serde(skip)]
    payout_id: String,
    /// Reason, shown to the partner.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Reference of the payment at the bank, e.g. the number of a statement.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(filters) => {
            let mut query = filters.page.query();
            query.extend(given_filters([
                ("partner_id", &filters.partner),
                ("status", &filters.status),
            ]));
            admin.show_list("/payouts", &query, &COLUMNS).await
        }
        Action::Show { payout_id } => admin.show_object(&path_of(&payout_id)).await,
        Action::Pay(args) => decide(admin, "pay", &args).await,
        Action::Reject(args) => decide(admin, "reject", &args).await,
        Action::Fail(args) => decide(admin, "fail", &args).await,
    }
}

fn path_of(payout_id: &str) -> String {
    format!("/payouts/{}", percent_encode(payout_id))
}

async fn decide(admin: &AdminClient, decision: &str, args: &DecisionArgs) -> anyhow::Result<CommandOutput> {
    let path = format!("{}/{decision}", path_of(&args.payout_id));
    admin.change(Method::POST, &path, Some(args)).await
}
