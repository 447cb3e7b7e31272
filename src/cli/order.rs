//! `vouchsafe order`: looking for orders, whosever they are.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use vouchsafe_actors::domain::order::OrderStatus;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;

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

/// What can be asked about orders.
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
        Action::Show { order_id } => admin.object(&format!("/orders/{}", escaped(&order_id))).await,
    }
}
