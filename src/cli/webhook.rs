//! `vouchsafe webhook`: how partners' endpoints are doing, what failed, and sending it again.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;
use crate::store::{DeliveryState, WebhookStatus};

const COLUMNS: [Column; 7] = [
    ("WEBHOOK", "webhook_id"),
    ("PARTNER", "partner_id"),
    ("STATUS", "status"),
    ("BEHIND", "behind"),
    ("FAILURES", "failures"),
    ("NEXT ATTEMPT", "next_attempt_at"),
    ("URL", "url"),
];

const DELIVERY_COLUMNS: [Column; 6] = [
    ("DELIVERY", "delivery_id"),
    ("WEBHOOK", "webhook_id"),
    ("EVENT", "event_id"),
    ("STATUS", "status"),
    ("FAILED", "failed_attempts"),
    ("NEXT ATTEMPT", "next_attempt_at"),
];

/// Arguments of `vouchsafe webhook`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe webhook list --status failing"])]
pub struct WebhookArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be asked about endpoints and deliveries, and done with them.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Search the endpoints of all partners, newest first.
    List(Search),
    /// Switch an endpoint on, whoever switched it off.
    #[command(after_help = examples!["vouchsafe webhook enable WEBHOOK_ID"])]
    Enable {
        /// Its id.
        #[arg(value_parser = id::webhook)]
        webhook_id: String,
    },
    /// Search what failed, waits or was replayed, newest first; --json shows the attempts.
    Deliveries(DeliverySearch),
    /// Send a delivery again.
    #[command(after_help = examples!["vouchsafe webhook replay DELIVERY_ID"])]
    Replay {
        /// Its id.
        #[arg(value_parser = id::delivery)]
        delivery_id: String,
    },
}

/// Which endpoints.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe webhook list --status failing",
    "vouchsafe webhook list --partner PARTNER_ID --json",
])]
pub(super) struct Search {
    /// Of this partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// That are like this.
    #[arg(long, value_parser = PossibleValuesParser::new(WebhookStatus::ALL.map(WebhookStatus::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Which deliveries.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe webhook deliveries --status FAILED",
    "vouchsafe webhook deliveries --partner PARTNER_ID --json",
])]
pub(super) struct DeliverySearch {
    /// Of this partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// To this endpoint.
    #[arg(long, value_name = "WEBHOOK_ID", value_parser = id::webhook)]
    webhook: Option<String>,
    /// Of this order's events.
    #[arg(long, value_name = "ORDER_ID", value_parser = id::order)]
    order: Option<String>,
    /// That stand here.
    #[arg(long, value_parser = PossibleValuesParser::new(DeliveryState::ALL.map(DeliveryState::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs `vouchsafe webhook`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("partner_id", &search.partner),
                ("status", &search.status),
            ]));
            admin.list("/webhooks", &query, &COLUMNS).await
        }
        Action::Enable { webhook_id } => {
            let path = format!("/webhooks/{}/enable", escaped(&webhook_id));
            admin.change(Method::POST, &path, None::<&()>).await
        }
        Action::Deliveries(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("partner_id", &search.partner),
                ("webhook_id", &search.webhook),
                ("order_id", &search.order),
                ("status", &search.status),
            ]));
            admin.list("/deliveries", &query, &DELIVERY_COLUMNS).await
        }
        Action::Replay { delivery_id } => {
            let path = format!("/deliveries/{}/replay", escaped(&delivery_id));
            admin.change(Method::POST, &path, None::<&()>).await
        }
    }
}
