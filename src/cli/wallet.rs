//! `vouchsafe wallet`: top-ups and adjustments.

use clap::{Args, Subcommand};
use vouchsafe_wire::operator::wallets::PostingRequest;

use super::CommandOutput;
use super::admin::AdminClient;
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef, percent_encode};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Top up a wallet; posted once per reference.
    #[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
    TopUp(PostingArgs),
    /// Adjust a balance; a negative amount takes money away. Posted once per reference.
    #[command(after_help = examples!["vouchsafe wallet adjust PARTNER_ID USD -12.50 --reference correction-17"])]
    Adjust(PostingArgs),
}

#[derive(Debug, Args)]
pub struct PostingArgs {
    #[command(flatten)]
    partner: PartnerRef,
    /// Currency of the wallet.
    currency: String,
    #[command(flatten)]
    request: PostingRequest,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (args, kind) = match action {
        Action::TopUp(args) => (args, "top-ups"),
        Action::Adjust(args) => (args, "adjustments"),
    };
    let (partner, currency) = (args.partner.path(), percent_encode(&args.currency));
    let path = format!("{partner}/wallets/{currency}/{kind}");
    admin.post(&path, &args.request).await
}
