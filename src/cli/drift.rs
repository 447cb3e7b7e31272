//! `vouchsafe drift`: where a vendor's books and ours differ, and saying something of it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped, filters};
use super::examples::examples;
use super::id;
use super::show::Column;
use crate::reconciliation::Kind;
use crate::store::Resolution;

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

/// Arguments of `vouchsafe drift`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe drift list --resolution pending"])]
pub struct DriftArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be asked about drifts, and said of them.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Search the drifts, newest first.
    List(Search),
    /// Say that a drift is settled, or that the vendor was asked about it.
    #[command(after_help = examples![
        "vouchsafe drift resolve DRIFT_ID --reason 'the vendor has corrected its books'",
        "vouchsafe drift resolve DRIFT_ID --as escalated --reason 'asked the vendor, ticket 4711'",
    ])]
    Resolve {
        /// Its id.
        #[arg(value_parser = id::drift)]
        drift_id: String,
        /// What is said of it.
        #[arg(long = "as", default_value = "resolved", value_parser = ["resolved", "escalated"])]
        resolution: String,
        /// Why; kept in the trail.
        #[arg(long)]
        reason: String,
    },
}

/// Which drifts.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe drift list --resolution pending",
    "vouchsafe drift list --date 2026-11-20 --vendor acme-cards --kind MISSING --json",
])]
pub(super) struct Search {
    /// Of this day, in UTC.
    #[arg(long)]
    date: Option<String>,
    /// With this vendor.
    #[arg(long)]
    vendor: Option<String>,
    /// Of this kind.
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::as_str)))]
    kind: Option<String>,
    /// Of which this was said.
    #[arg(long, value_parser = PossibleValuesParser::new(Resolution::ALL.map(Resolution::as_str)))]
    resolution: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs `vouchsafe drift`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::List(search) => {
            let mut query = search.page.query();
            query.extend(filters([
                ("date", &search.date),
                ("vendor", &search.vendor),
                ("kind", &search.kind),
                ("resolution", &search.resolution),
            ]));
            admin.list("/drifts", &query, &COLUMNS).await
        }
        Action::Resolve {
            drift_id,
            resolution,
            reason,
        } => {
            let path = format!("/drifts/{}/resolve", escaped(&drift_id));
            let said = json!({ "resolution": resolution, "reason": reason });
            admin.change(Method::POST, &path, Some(&said)).await
        }
    }
}
