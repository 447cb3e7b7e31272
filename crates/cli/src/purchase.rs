//! `vouchsafe purchase`: list and end purchases from vendors.

use clap::{Args, Subcommand};
use vouchsafe_domain::purchase::view::PurchaseFilter;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::vendors::{END_PURCHASE, GET_PURCHASE, LIST_PURCHASES};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, PurchaseRef};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List purchases, newest first, with the last vendor response.
    #[command(after_help = examples![
        "vouchsafe purchase list --vendor acme-cards --state open",
        "vouchsafe purchase list --order ORDER_ID --json",
    ])]
    List(ListArgs<PurchaseFilter>),
    /// Show a purchase with the last vendor response.
    #[command(after_help = examples!["vouchsafe purchase show PURCHASE_ID"])]
    Show(PurchaseRef),
    /// End a purchase; the missing vouchers of its order are refunded.
    #[command(after_help = examples!["vouchsafe purchase end PURCHASE_ID --reason 'the vendor has closed'"])]
    End(EndArgs),
}

#[derive(Debug, Args)]
#[command(mut_arg("reason", |reason| reason.help("Reason, stored with the purchase and in the audit trail")))]
pub struct EndArgs {
    #[command(flatten)]
    end: RequestArgs<PurchaseRef, ReasonRequest>,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => admin.list(LIST_PURCHASES, &args).await,
        Action::Show(purchase) => admin.run(purchase.at(GET_PURCHASE)).await,
        Action::End(args) => args.end.send(END_PURCHASE, admin).await,
    }
}
