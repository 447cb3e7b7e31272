//! `vouchsafe purchase`: what is bought from vendors, and saying that nothing more comes of it.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;

const COLUMNS: [Column; 9] = [
    ("PURCHASE", "purchase_id"),
    ("ORDER", "order_id"),
    ("VENDOR", "vendor"),
    ("STATE", "state"),
    ("ANSWER", "answer"),
    ("QUANTITY", "quantity"),
    ("SOLD", "sold"),
    ("KEPT", "kept"),
    ("LAST WORD", "last_word"),
];

/// Arguments of `vouchsafe purchase`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe purchase list --state refused"])]
pub struct PurchaseArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be asked about purchases, and said of them.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List what is bought from vendors, newest first, with what they said last.
    List(Search),
    /// Say that nothing more comes of a purchase; what its order lacks is paid back.
    #[command(after_help = examples!["vouchsafe purchase end PURCHASE_ID --reason 'the vendor has closed'"])]
    End {
        /// Its id.
        purchase_id: String,
        /// Why; kept with it and in the trail.
        #[arg(long)]
        reason: String,
    },
}

/// Which purchases.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe purchase list --vendor acme-cards --state open",
    "vouchsafe purchase list --order ORDER_ID --json",
])]
pub(super) struct Search {
    /// From this vendor.
    #[arg(long, value_name = "VENDOR_ID")]
    vendor: Option<String>,
    /// That stand here.
    #[arg(long, value_parser = ["open", "refused", "ended"])]
    state: Option<String>,
    /// For this order.
    #[arg(long, value_name = "ORDER_ID", value_parser = id::order)]
    order: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs `vouchsafe purchase`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("vendor", &search.vendor),
                ("state", &search.state),
                ("order_id", &search.order),
            ]));
            admin.list("/purchases", &query, &COLUMNS).await
        }
        Action::End { purchase_id, reason } => {
            let path = format!("/purchases/{}/end", escaped(&purchase_id));
            admin
                .change(Method::POST, &path, Some(&json!({ "reason": reason })))
                .await
        }
    }
}
