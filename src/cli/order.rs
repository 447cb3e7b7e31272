//! `vouchsafe order`: looking for orders, whosever they are, and deciding on them.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;
use vouchsafe_actors::domain::order::OrderStatus;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;
use super::vouchers;

const COLUMNS: [Column; 7] = [
    ("ORDER", "order_id"),
    ("PARTNER", "partner_id"),
    ("STATUS", "status"),
    ("TOTAL", "total_amount"),
    ("CURRENCY", "currency"),
    ("REFERENCE", "reference"),
    ("CREATED", "created_at"),
];

/// Arguments of `vouchsafe order`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe order list"])]
pub struct OrderArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be asked about orders, and said of them.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Search the orders of all partners, newest first.
    List(Box<Search>),
    /// Show an order with its vouchers; never a code.
    #[command(after_help = examples!["vouchsafe order show ORDER_ID"])]
    Show {
        /// Its id.
        #[arg(value_parser = id::order)]
        order_id: String,
    },
    /// Let an order go on that waits for approval.
    #[command(after_help = examples!["vouchsafe order approve ORDER_ID --reason 'agreed by telephone'"])]
    Approve(Word),
    /// End an order that waits for approval; all of it is paid back.
    #[command(after_help = examples!["vouchsafe order reject ORDER_ID --reason 'the buyer is not known'"])]
    Reject(Word),
    /// Take back what of an order was not retrieved, and pay it back.
    #[command(after_help = examples!["vouchsafe order cancel ORDER_ID --reason 'ordered twice'"])]
    Cancel(Word),
    /// Bring in vouchers that an order waits for. May be repeated: nothing comes in twice.
    Fulfil(Vouchers),
}

/// Which order, and what it waits for.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe order fulfil ORDER_ID vouchers.csv",
    "vouchsafe order fulfil ORDER_ID vouchers.ndjson --product game-us --denomination 25",
])]
pub(super) struct Vouchers {
    /// Its id.
    #[arg(value_parser = id::order)]
    order_id: String,
    /// CSV with a header (code,pin,serial,url,expiry), or NDJSON if its name ends in .ndjson or .jsonl; - is CSV on the
    /// standard input.
    file: PathBuf,
    /// Of which product; needed where the order waits for several.
    #[arg(long, value_name = "PRODUCT", requires = "denomination")]
    product: Option<String>,
    /// At which face value.
    #[arg(long, value_name = "AMOUNT", requires = "product")]
    denomination: Option<String>,
}

/// On which order, and why.
#[derive(Debug, Args)]
pub(super) struct Word {
    /// Its id.
    #[arg(value_parser = id::order)]
    order_id: String,
    /// Why; its partner reads it.
    #[arg(long)]
    reason: String,
}

/// Which orders.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe order list --status PENDING --from 2026-11-20",
    "vouchsafe order list --partner PARTNER_ID --reference PO-4711 --json",
])]
pub(super) struct Search {
    /// Of this partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// That stand here.
    #[arg(long, value_parser = PossibleValuesParser::new(OrderStatus::ALL.map(OrderStatus::as_str)))]
    status: Option<String>,
    /// With the partner's own reference.
    #[arg(long)]
    reference: Option<String>,
    /// Accepted from then on: a date or an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Accepted before then.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// With this id.
    #[arg(long, value_name = "ORDER_ID", value_parser = id::order)]
    order: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs `vouchsafe order`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("partner_id", &search.partner),
                ("status", &search.status),
                ("reference", &search.reference),
                ("from", &search.from),
                ("to", &search.to),
                ("order_id", &search.order),
            ]));
            admin.list("/orders", &query, &COLUMNS).await
        }
        Action::Show { order_id } => admin.object(&path_of(&order_id)).await,
        Action::Approve(word) => decide(admin, "approve", &word).await,
        Action::Reject(word) => decide(admin, "reject", &word).await,
        Action::Cancel(word) => decide(admin, "cancel", &word).await,
        Action::Fulfil(vouchers) => fulfil(admin, &vouchers).await,
    }
}

fn path_of(order_id: &str) -> String {
    format!("/orders/{}", escaped(order_id))
}

async fn decide(admin: &Admin, decision: &str, word: &Word) -> anyhow::Result<Outcome> {
    let path = format!("{}/{decision}", path_of(&word.order_id));
    let body = json!({ "reason": word.reason });
    admin.change(Method::POST, &path, Some(&body)).await
}

async fn fulfil(admin: &Admin, given: &Vouchers) -> anyhow::Result<Outcome> {
    let mut body = json!({ "vouchers": vouchers::read(&given.file)? });
    if let (Some(product), Some(denomination)) = (&given.product, &given.denomination) {
        body["product_id"] = json!(product);
        body["denomination"] = json!(denomination);
    }
    let path = format!("{}/fulfil", path_of(&given.order_id));
    admin.change(Method::POST, &path, Some(&body)).await
}
