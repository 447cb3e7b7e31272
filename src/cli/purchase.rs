//! `vouchsafe purchase`: list and end purchases from vendors.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::{CommandOutput, id};

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

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe purchase list --state refused"])]
pub struct PurchaseArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List purchases, newest first, with the last vendor response.
    List(PurchaseFilters),
    /// End a purchase; the missing vouchers of its order are refunded.
    #[command(after_help = examples!["vouchsafe purchase end PURCHASE_ID --reason 'the vendor has closed'"])]
    End {
        /// Purchase ID.
        purchase_id: String,
        /// Reason, stored with the purchase and in the audit trail.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe purchase list --vendor acme-cards --state open",
    "vouchsafe purchase list --order ORDER_ID --json",
])]
pub(super) struct PurchaseFilters {
    /// Filter by vendor.
    #[arg(long, value_name = "VENDOR_ID")]
    vendor: Option<String>,
    /// Filter by state.
    #[arg(long, value_parser = ["open", "refused", "ended"])]
    state: Option<String>,
    /// Filter by order.
    #[arg(long, value_name = "ORDER_ID", value_parser = id::order)]
    order: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(filters) => {
            let mut query = filters.page.query();
            query.extend(given_filters([
                ("vendor", &filters.vendor),
                ("state", &filters.state),
                ("order_id", &filters.order),
            ]));
            admin.show_list("/purchases", &query, &COLUMNS).await
        }
        Action::End { purchase_id, reason } => {
            let path = format!("/purchases/{}/end", percent_encode(&purchase_id));
            admin
                .change(Method::POST, &path, Some(&json!({ "reason": reason })))
                .await
        }
    }
}
