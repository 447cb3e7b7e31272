//! `vouchsafe payout`: list payouts of all partners and record their outcome.

use clap::Subcommand;
use vouchsafe_domain::payout::PayoutSearch;
use vouchsafe_wire::operator::payouts::PayoutDecisionRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PayoutRef};
use super::table::{Column, column, text};

const COLUMNS: [Column; 6] = [
    column("PAYOUT", "payout_id"),
    column("PARTNER", "partner_id"),
    column("STATUS", "status"),
    column("AMOUNT", "amount currency"),
    text("REFERENCE", "reference", 24),
    column("CREATED", "created_at"),
];

type DecisionArgs = RequestArgs<PayoutRef, PayoutDecisionRequest>;

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List payouts of all partners, newest first.
    #[command(after_help = examples![
        "vouchsafe payout list --status PENDING",
        "vouchsafe payout list --partner PARTNER_ID --json",
    ])]
    List(ListArgs<PayoutSearch>),
    /// Show a payout with its destination.
    #[command(after_help = examples!["vouchsafe payout show PAYOUT_ID"])]
    Show(PayoutRef),
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

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (decision, args) = match action {
        Action::List(args) => return admin.list("/payouts", &args, &COLUMNS).await,
        Action::Show(payout) => return admin.get(&payout.path()).await,
        Action::Pay(args) => ("pay", args),
        Action::Reject(args) => ("reject", args),
        Action::Fail(args) => ("fail", args),
    };
    args.post(decision, admin).await
}
