//! `vouchsafe wallet`: balances, transactions, top-ups and adjustments.

use clap::{Args, Subcommand};
use vouchsafe_domain::ledger::transaction::TransactionFilter;
use vouchsafe_wire::operator::wallets::PostingRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef, percent_encode};
use super::table::{Column, column, text};

const WALLETS: [Column; 5] = [
    column("CURRENCY", "currency"),
    column("BALANCE", "balance"),
    column("ORDERS", "pending_orders"),
    column("PAYOUTS", "pending_payouts"),
    column("UPDATED", "updated_at"),
];

const TRANSACTIONS: [Column; 7] = [
    column("NUMBER", "currency sequence"),
    column("TYPE", "type"),
    column("AMOUNT", "amount"),
    column("BALANCE", "balance_after"),
    column("ORDER", "order_id"),
    column("CREATED", "created_at"),
    text("REFERENCE", "reference", 16),
];

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
    let (args, kind) = match action {
        Action::List { partner, list } => {
            let path = format!("{}/wallets", partner.path());
            return admin.list(&path, &list, &WALLETS).await;
        }
        Action::Transactions { partner, list } => {
            let path = format!("{}/transactions", partner.path());
            return admin.list(&path, &list, &TRANSACTIONS).await;
        }
        Action::TopUp(args) => (args, "top-ups"),
        Action::Adjust(args) => (args, "adjustments"),
    };
    let (partner, currency) = (args.partner.path(), percent_encode(&args.currency));
    let path = format!("{partner}/wallets/{currency}/{kind}");
    admin.post(&path, &args.request).await
}
