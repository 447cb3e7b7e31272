//! `vouchsafe wallet`: top-ups and adjustments.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::admin::{AdminClient, AdminOptions, percent_encode};
use super::examples::examples;
use super::partner::partner_path;
use super::{CommandOutput, id};

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
pub struct WalletArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Top up a wallet; posted once per reference.
    #[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
    TopUp(PostingArgs),
    /// Adjust a balance; a negative amount takes money away. Posted once per reference.
    #[command(after_help = examples!["vouchsafe wallet adjust PARTNER_ID USD -12.50 --reference correction-17"])]
    Adjust(PostingArgs),
}

#[derive(Debug, Args)]
pub(super) struct PostingArgs {
    /// Partner ID.
    #[arg(value_parser = id::partner)]
    partner_id: String,
    /// Currency of the wallet.
    currency: String,
    /// Amount, e.g. 1000.00.
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// Your reference, e.g. the number of a bank statement.
    #[arg(long)]
    reference: String,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (args, kind) = match action {
        Action::TopUp(args) => (args, "top-ups"),
        Action::Adjust(args) => (args, "adjustments"),
    };
    let path = format!(
        "{}/wallets/{}/{kind}",
        partner_path(&args.partner_id),
        percent_encode(&args.currency)
    );
    let body = json!({ "amount": args.amount, "reference": args.reference });
    admin.change(Method::POST, &path, Some(&body)).await
}
