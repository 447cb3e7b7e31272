//! `vouchsafe webhook`: endpoints of all partners, delivery attempts, failed deliveries, and replay.

use clap::Subcommand;
use vouchsafe_domain::delivery::attempt::AttemptFilter;
use vouchsafe_domain::delivery::view::DeliveryFilter;
use vouchsafe_domain::period::Period;
use vouchsafe_domain::webhook::WebhookFilter;
use vouchsafe_wire::operator::webhooks::{
    ENABLE_WEBHOOK, GET_DELIVERY, GET_WEBHOOK, GET_WEBHOOK_HEALTH, LIST_DELIVERIES, LIST_WEBHOOK_DELIVERIES,
    LIST_WEBHOOKS, REPLAY_DELIVERY, REPLAY_WEBHOOK, RETRY_WEBHOOK,
};

use super::admin::{AdminClient, ListArgs};
use super::examples::examples;
use super::id::{DeliveryRef, ObjectRef as _, WebhookRef};
use super::{CommandOutput, output};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List webhook endpoints of all partners, newest first.
    #[command(after_help = examples![
        "vouchsafe webhook list --status failing",
        "vouchsafe webhook list --partner PARTNER_ID --json",
    ])]
    List(ListArgs<WebhookFilter>),
    /// Show an endpoint with its state and backlog.
    #[command(after_help = examples!["vouchsafe webhook show WEBHOOK_ID"])]
    Show(WebhookRef),
    /// Enable an endpoint, also after the partner or the service disabled it.
    #[command(after_help = examples!["vouchsafe webhook enable WEBHOOK_ID"])]
    Enable(WebhookRef),
    /// Attempt every waiting delivery of an endpoint now, also while the endpoint fails.
    #[command(after_help = examples!["vouchsafe webhook retry WEBHOOK_ID"])]
    Retry(WebhookRef),
    /// List the delivery attempts of an endpoint, successful ones too, newest first; --json includes the
    /// first bytes of the response to a failed one.
    #[command(after_help = examples![
        "vouchsafe webhook attempts WEBHOOK_ID --outcome failed --since 1h",
        "vouchsafe webhook attempts WEBHOOK_ID --order ORDER_ID --json",
    ])]
    Attempts {
        #[command(flatten)]
        webhook: WebhookRef,
        #[command(flatten)]
        list: ListArgs<AttemptFilter>,
    },
    /// Show the attempts to deliver to an endpoint by hour, of the last seven days or
    /// of a range of the last 30.
    #[command(after_help = examples!["vouchsafe webhook health WEBHOOK_ID --since 30d"])]
    Health {
        #[command(flatten)]
        webhook: WebhookRef,
        #[command(flatten)]
        period: Period,
    },
    /// List deliveries that failed, wait or were replayed, newest first, with the last response or fault;
    /// --json includes all attempts.
    #[command(after_help = examples![
        "vouchsafe webhook deliveries --status FAILED",
        "vouchsafe webhook deliveries --partner PARTNER_ID --json",
    ])]
    Deliveries(ListArgs<DeliveryFilter>),
    /// Show a delivery with all its attempts.
    #[command(after_help = examples!["vouchsafe webhook delivery DELIVERY_ID"])]
    Delivery(DeliveryRef),
    /// Replay a delivery.
    #[command(after_help = examples!["vouchsafe webhook replay DELIVERY_ID"])]
    Replay(DeliveryRef),
    /// Replay the events of a time range to an endpoint.
    #[command(after_help = examples!["vouchsafe webhook replay-range WEBHOOK_ID --since 2h --until 1h"])]
    ReplayRange {
        #[command(flatten)]
        webhook: WebhookRef,
        #[command(flatten)]
        period: Period,
    },
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => admin.list(LIST_WEBHOOKS, &args).await,
        Action::Attempts { webhook, list } => admin.list(webhook.at(LIST_WEBHOOK_DELIVERIES), &list).await,
        Action::Health { webhook, period } => admin.list(webhook.at(GET_WEBHOOK_HEALTH), &period).await,
        Action::Deliveries(args) => admin.list(LIST_DELIVERIES, &args).await,
        Action::Show(webhook) => admin.run(webhook.at(GET_WEBHOOK)).await,
        Action::Delivery(delivery) => admin.run(delivery.at(GET_DELIVERY)).await,
        Action::Enable(webhook) => admin.run(webhook.at(ENABLE_WEBHOOK)).await,
        Action::Retry(webhook) => admin.run(webhook.at(RETRY_WEBHOOK)).await,
        Action::ReplayRange { webhook, period } => {
            let response = admin.call(webhook.at(REPLAY_WEBHOOK), Some(&period)).await?;
            admin.show(response, output::format_object)
        }
        Action::Replay(delivery) => admin.run(delivery.at(REPLAY_DELIVERY)).await,
    }
}
