//! `vouchsafe order`: search orders of all partners, decide and fulfil them.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;
use vouchsafe_domain::order::OrderStatus;

use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::{CommandOutput, id, vouchers};

const COLUMNS: [Column; 7] = [
    ("ORDER", "order_id"),
    ("PARTNER", "partner_id"),
    ("STATUS", "status"),
    ("TOTAL", "total_amount"),
    ("CURRENCY", "currency"),
    ("REFERENCE", "reference"),
    ("CREATED", "created_at"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe order list"])]
pub struct OrderArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List orders of all partners, newest first.
    List(Box<OrderFilters>),
    /// Show an order with its vouchers, without codes.
    #[command(after_help = examples!["vouchsafe order show ORDER_ID"])]
    Show {
        /// Order ID.
        #[arg(value_parser = id::order)]
        order_id: String,
    },
    /// Approve an order that waits for approval.
    #[command(after_help = examples!["vouchsafe order approve ORDER_ID --reason 'agreed by telephone'"])]
    Approve(DecisionArgs),
    /// Reject an order that waits for approval; it is refunded completely.
    #[command(after_help = examples!["vouchsafe order reject ORDER_ID --reason 'the buyer is not known'"])]
    Reject(DecisionArgs),
    /// Cancel an order; vouchers whose codes were not retrieved are refunded.
    #[command(after_help = examples!["vouchsafe order cancel ORDER_ID --reason 'ordered twice'"])]
    Cancel(DecisionArgs),
    /// Fulfil an order with vouchers from a file. Can be repeated: no voucher is stored twice.
    Fulfil(FulfilArgs),
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe order fulfil ORDER_ID vouchers.csv",
    "vouchsafe order fulfil ORDER_ID vouchers.ndjson --product game-us --denomination 25",
])]
pub(super) struct FulfilArgs {
    /// Order ID.
    #[arg(value_parser = id::order)]
    order_id: String,
    /// CSV file with a header (code,pin,serial,url,expiry), or NDJSON file (.ndjson, .jsonl); - reads CSV from standard
    /// input.
    file: PathBuf,
    /// Product ID; required if the order needs several products.
    #[arg(long, value_name = "PRODUCT", requires = "denomination")]
    product: Option<String>,
    /// Face value.
    #[arg(long, value_name = "AMOUNT", requires = "product")]
    denomination: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct DecisionArgs {
    /// Order ID.
    #[arg(value_parser = id::order)]
    order_id: String,
    /// Reason, shown to the partner.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe order list --status PENDING --from 2026-11-20",
    "vouchsafe order list --partner PARTNER_ID --reference PO-4711 --json",
])]
pub(super) struct OrderFilters {
    /// Filter by partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// Filter by status.
    #[arg(long, value_parser = PossibleValuesParser::new(OrderStatus::ALL.map(OrderStatus::as_str)))]
    status: Option<String>,
    /// Filter by the partner's reference.
    #[arg(long)]
    reference: Option<String>,
    /// Start of the acceptance period, inclusive: a date or an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the acceptance period, exclusive.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Filter by order ID.
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
                ("partner_id", &filters.partner),
                ("status", &filters.status),
                ("reference", &filters.reference),
                ("from", &filters.from),
                ("to", &filters.to),
                ("order_id", &filters.order),
            ]));
            admin.show_list("/orders", &query, &COLUMNS).await
        }
        Action::Show { order_id } => admin.show_object(&path_of(&order_id)).await,
        Action::Approve(args) => decide(admin, "approve", &args).await,
        Action::Reject(args) => decide(admin, "reject", &args).await,
        Action::Cancel(args) => decide(admin, "cancel", &args).await,
        Action::Fulfil(args) => fulfil(admin, &args).await,
    }
}

fn path_of(order_id: &str) -> String {
    format!("/orders/{}", percent_encode(order_id))
}

async fn decide(admin: &AdminClient, decision: &str, args: &DecisionArgs) -> anyhow::Result<CommandOutput> {
    let path = format!("{}/{decision}", path_of(&args.order_id));
    let body = json!({ "reason": args.reason });
    admin.change(Method::POST, &path, Some(&body)).await
}

async fn fulfil(admin: &AdminClient, args: &FulfilArgs) -> anyhow::Result<CommandOutput> {
    let mut body = json!({ "vouchers": vouchers::read_vouchers(&args.file)? });
    if let (Some(product), Some(denomination)) = (&args.product, &args.denomination) {
        body["product_id"] = json!(product);
        body["denomination"] = json!(denomination);
    }
    let path = format!("{}/fulfil", path_of(&args.order_id));
    admin.change(Method::POST, &path, Some(&body)).await
}
