//! `vouchsafe webhook`: endpoints of all partners, failed deliveries, and replay.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use vouchsafe_domain::delivery::view::DeliveryState;
use vouchsafe_domain::webhook::WebhookStatus;

use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::{CommandOutput, id};

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

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe webhook list --status failing"])]
pub struct WebhookArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List webhook endpoints of all partners, newest first.
    List(WebhookFilters),
    /// Enable an endpoint, also after the partner or the service disabled it.
    #[command(after_help = examples!["vouchsafe webhook enable WEBHOOK_ID"])]
    Enable {
        /// Webhook ID.
        #[arg(value_parser = id::webhook)]
        webhook_id: String,
    },
    /// List deliveries that failed, wait or were replayed, newest first; --json includes the attempts.
    Deliveries(DeliveryFilters),
    /// Replay a delivery.
    #[command(after_help = examples!["vouchsafe webhook replay DELIVERY_ID"])]
    Replay {
        /// Delivery ID.
        #[arg(value_parser = id::delivery)]
        delivery_id: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe webhook list --status failing",
    "vouchsafe webhook list --partner PARTNER_ID --json",
])]
pub(super) struct WebhookFilters {
    /// Filter by partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// Filter by status.
    #[arg(long, value_parser = PossibleValuesParser::new(WebhookStatus::ALL.map(WebhookStatus::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe webhook deliveries --status FAILED",
    "vouchsafe webhook deliveries --partner PARTNER_ID --json",
])]
pub(super) struct DeliveryFilters {
    /// Filter by partner.
    #[arg(long, value_name = "PARTNER_ID", value_parser = id::partner)]
    partner: Option<String>,
    /// Filter by endpoint.
    #[arg(long, value_name = "WEBHOOK_ID", value_parser = id::webhook)]
    webhook: Option<String>,
    /// Filter by order.
    #[arg(long, value_name = "ORDER_ID", value_parser = id::order)]
    order: Option<String>,
    /// Filter by status.
    #[arg(long, value_parser = PossibleValuesParser::new(DeliveryState::ALL.map(DeliveryState::as_str)))]
    status: Option<String>,
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
            ]));
            admin.show_list("/webhooks", &query, &COLUMNS).await
        }
        Action::Enable { webhook_id } => {
            let path = format!("/webhooks/{}/enable", percent_encode(&webhook_id));
            admin.change(Method::POST, &path, None::<&()>).await
        }
        Action::Deliveries(filters) => {
            let mut query = filters.page.query();
            query.extend(given_filters([
                ("partner_id", &filters.partner),
                ("webhook_id", &filters.webhook),
                ("order_id", &filters.order),
                ("status", &filters.status),
            ]));
            admin.show_list("/deliveries", &query, &DELIVERY_COLUMNS).await
        }
        Action::Replay { delivery_id } => {
            let path = format!("/deliveries/{}/replay", percent_encode(&delivery_id));
            admin.change(Method::POST, &path, None::<&()>).await
        }
    }
}
