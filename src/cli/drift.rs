//! `vouchsafe drift`: list and resolve differences between vendor records and purchases.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::DriftResolution;

use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters, percent_encode};
use super::examples::examples;
use super::output::Column;
use super::{CommandOutput, id};

const COLUMNS: [Column; 8] = [
    ("DRIFT", "drift_id"),
    ("DATE", "date"),
    ("VENDOR", "vendor"),
    ("KIND", "kind"),
    ("DIFFERENCES", "differences"),
    ("ORDER", "order_id"),
    ("VENDOR RECORD", "vendor_record"),
    ("RESOLUTION", "resolution"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe drift list --resolution pending"])]
pub struct DriftArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List drifts, newest first.
    List(DriftFilters),
    /// Mark a drift as resolved, or as escalated to the vendor.
    #[command(after_help = examples![
        "vouchsafe drift resolve DRIFT_ID --reason 'the vendor has corrected its records'",
        "vouchsafe drift resolve DRIFT_ID --as escalated --reason 'asked the vendor, ticket 4711'",
    ])]
    Resolve {
        /// Drift ID.
        #[arg(value_parser = id::drift)]
        drift_id: String,
        /// New resolution.
        #[arg(long = "as", default_value = "resolved", value_parser = ["resolved", "escalated"])]
        resolution: String,
        /// Reason, written to the audit trail.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe drift list --resolution pending",
    "vouchsafe drift list --date 2026-11-20 --vendor acme-cards --kind MISSING --json",
])]
pub(super) struct DriftFilters {
    /// Filter by day, in UTC.
    #[arg(long)]
    date: Option<String>,
    /// Filter by vendor.
    #[arg(long)]
    vendor: Option<String>,
    /// Filter by kind.
    #[arg(long, value_parser = PossibleValuesParser::new(DriftKind::ALL.map(DriftKind::as_str)))]
    kind: Option<String>,
    /// Filter by resolution.
    #[arg(long, value_parser = PossibleValuesParser::new(DriftResolution::ALL.map(DriftResolution::as_str)))]
    resolution: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(given_filters([
                ("date", &search.date),
                ("vendor", &search.vendor),
                ("kind", &search.kind),
                ("resolution", &search.resolution),
            ]));
            admin.show_list("/drifts", &query, &COLUMNS).await
        }
        Action::Resolve {
            drift_id,
            resolution,
            reason,
        } => {
            let path = format!("/drifts/{}/resolve", percent_encode(&drift_id));
            let body = json!({ "resolution": resolution, "reason": reason });
            admin.change(Method::POST, &path, Some(&body)).await
        }
    }
}
