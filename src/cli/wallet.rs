//! `vouchsafe wallet`: money that operators book.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, escaped};
use super::examples::examples;
use super::id;
use super::partner::path_of;

/// Arguments of `vouchsafe wallet`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
pub struct WalletArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be booked.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Add money. The same reference is booked once.
    #[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
    TopUp(Booking),
    /// Correct a balance; a negative amount takes money away. The same reference is booked once.
    #[command(after_help = examples!["vouchsafe wallet adjust PARTNER_ID USD -12.50 --reference correction-17"])]
    Adjust(Booking),
}

/// A booking.
#[derive(Debug, Args)]
pub(super) struct Booking {
    /// Whose wallet.
    #[arg(value_parser = id::partner)]
    partner_id: String,
    /// In which currency.
    currency: String,
    /// How much, e.g. 1000.00.
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// The operator's own reference, e.g. the number of a bank statement.
    #[arg(long)]
    reference: String,
}

/// Runs `vouchsafe wallet`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    let (booking, kind) = match action {
        Action::TopUp(booking) => (booking, "top-ups"),
        Action::Adjust(booking) => (booking, "adjustments"),
    };
    let path = format!(
        "{}/wallets/{}/{kind}",
        path_of(&booking.partner_id),
        escaped(&booking.currency)
    );
    let body = json!({ "amount": booking.amount, "reference": booking.reference });
    admin.change(Method::POST, &path, Some(&body)).await
}
