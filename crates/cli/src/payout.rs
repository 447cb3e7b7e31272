//! `vouchsafe payout`: list payouts of all partners and record their outcome.

use clap::Subcommand;
use vouchsafe_domain::payout::PayoutSearch;
use vouchsafe_wire::operator::erasure::ErasureRequest;
use vouchsafe_wire::operator::payouts::{
    ERASE_PAYOUT, FAIL_PAYOUT, GET_PAYOUT, LIST_PAYOUTS, PAY_PAYOUT, PayoutDecisionRequest, REJECT_PAYOUT,
};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PayoutRef};

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
    /// Erase destination, reference and reasons of a payout that is decided. This cannot be undone.
    #[command(after_help = examples!["vouchsafe payout erase PAYOUT_ID --reason 'request of 24 November'"])]
    Erase(RequestArgs<PayoutRef, ErasureRequest>),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => admin.list(LIST_PAYOUTS, &args).await,
        Action::Show(payout) => admin.run(payout.at(GET_PAYOUT)).await,
        Action::Pay(args) => args.send(PAY_PAYOUT, admin).await,
        Action::Reject(args) => args.send(REJECT_PAYOUT, admin).await,
        Action::Fail(args) => args.send(FAIL_PAYOUT, admin).await,
        Action::Erase(args) => args.send(ERASE_PAYOUT, admin).await,
    }
}
