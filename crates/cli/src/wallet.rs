//! `vouchsafe wallet`: balances, transactions, top-ups and adjustments.

use clap::{Args, Subcommand};
use vouchsafe_domain::ledger::transaction::TransactionFilter;
use vouchsafe_wire::operator::wallets::{ADJUST, LIST_TRANSACTIONS, LIST_WALLETS, PostingRequest, TOP_UP};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the wallets of a partner: balance, and amounts in orders and payouts that are not final.
    #[command(after_help = examples!["vouchsafe wallet list PARTNER_ID"])]
    List {
        #[command(flatten)]
        partner: PartnerRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// List the transactions of a partner, newest first.
    #[command(after_help = examples![
        "vouchsafe wallet transactions PARTNER_ID --since 1d",
        "vouchsafe wallet transactions PARTNER_ID --type REFUND --currency USD --json",
    ])]
    Transactions {
        #[command(flatten)]
        partner: PartnerRef,
        #[command(flatten)]
        list: ListArgs<TransactionFilter>,
    },
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
    let (args, operation) = match action {
        Action::List { partner, list } => {
            return admin.list(partner.at(LIST_WALLETS), &list).await;
        }
        Action::Transactions { partner, list } => {
            return admin.list(partner.at(LIST_TRANSACTIONS), &list).await;
        }
        Action::TopUp(args) => (args, TOP_UP),
        Action::Adjust(args) => (args, ADJUST),
    };
    let wallet = args.partner.at(operation).with("currency", &args.currency);
    admin.send(wallet, &args.request).await
}
