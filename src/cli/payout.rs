//! `vouchsafe payout`: money that partners have sent out, and saying what became of it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Serialize;
use vouchsafe_actors::domain::payout::PayoutStatus;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;

const COLUMNS: [Column; 7] = [
    ("PAYOUT", "payout_id"),
    ("PARTNER", "partner_id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount"),
    ("CURRENCY", "currency"),
    ("REFERENCE", "reference"),
    ("CREATED", "created_at"),
];

/// Arguments of `vouchsafe payout`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe payout list --status PENDING"])]
pub struct PayoutArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be asked about payouts, and said of them.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Search the payouts of all partners, newest first.
    List(Search),
    /// Show a payout.
    #[command(after_help = examples!["vouchsafe payout show PAYOUT_ID"])]
    Show {
        /// Its id.
        #[arg(value_parser = id::payout)]
        payout_id: String,
    },
    /// Say that a payout was paid.
    #[command(after_help = examples!["vouchsafe payout pay PAYOUT_ID --reference bank-4711"])]
    Pay(Word),
    /// Say that a payout is not tried; the money goes back to the wallet.
    #[command(after_help = examples!["vouchsafe payout reject PAYOUT_ID --reason 'no such account'"])]
    Reject(Word),
    /// Say that a payout was tried and did not succeed; the money goes back to the wallet.
    #[command(after_help = examples!["vouchsafe payout fail PAYOUT_ID --reason 'the bank sent it back' --reference bank-4711"])]
    Fail(Word),
}

/// Which payouts.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe payout list --status PENDING",
    "vouchsafe payout list --partner PARTNER_ID --json",
])]
pub(super) struct Search {
    /// Of this partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// That stand here.
    #[arg(long, value_parser = PossibleValuesParser::new(PayoutStatus::ALL.map(PayoutStatus::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// On which payout, and what is said of it.
#[derive(Debug, Args, Serialize)]
pub(super) struct Word {
    /// Its id.
    #[arg(value_parser = id::payout)]
    #[serde(skip)]
    payout_id: String,
    /// Why; its partner reads it.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What the payment is called where it was made, e.g. the number of a bank statement.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

/// Runs `vouchsafe payout`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("partner_id", &search.partner),
                ("status", &search.status),
            ]));
            admin.list("/payouts", &query, &COLUMNS).await
        }
        Action::Show { payout_id } => admin.object(&path_of(&payout_id)).await,
        Action::Pay(word) => decide(admin, "pay", &word).await,
        Action::Reject(word) => decide(admin, "reject", &word).await,
        Action::Fail(word) => decide(admin, "fail", &word).await,
    }
}

fn path_of(payout_id: &str) -> String {
    format!("/payouts/{}", escaped(payout_id))
}

async fn decide(admin: &Admin, decision: &str, word: &Word) -> anyhow::Result<Outcome> {
    let path = format!("{}/{decision}", path_of(&word.payout_id));
    admin.change(Method::POST, &path, Some(word)).await
}
