//! `vouchsafe reconciliation`: comparison of vendor records with purchases.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::admin::{AdminClient, AdminOptions, percent_encode};
use super::examples::examples;
use super::upload::{self, UploadSource};
use super::{CommandOutput, output};

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20"])]
pub struct ReconciliationArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Queue the comparison of a day; `show` prints the result.
    #[command(after_help = examples![
        "vouchsafe reconciliation run 2026-11-20",
        "vouchsafe reconciliation run 2026-11-20 --vendor acme-cards",
    ])]
    Run {
        /// Day in UTC.
        #[arg(value_name = "DATE")]
        date: String,
        /// Vendor ID [default: all vendors with the adapter http].
        #[arg(long)]
        vendor: Option<String>,
    },
    /// Show the result of a day, by vendor.
    #[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20 --json"])]
    Show {
        /// Day in UTC.
        #[arg(value_name = "DATE")]
        date: String,
    },
    /// Upload a vendor's records of a day and compare them. Can be repeated.
    #[command(after_help = examples![
        "vouchsafe reconciliation upload records.csv --date 2026-11-20 --vendor by-hand",
        "vouchsafe reconciliation upload - --date 2026-11-20 --vendor by-hand < records.csv",
    ])]
    Upload {
        /// CSV file with a header (reference,product_id,denomination,currency,sold_at and optionally purchase_id); - reads
        /// standard input.
        file: PathBuf,
        /// Day in UTC.
        #[arg(long)]
        date: String,
        /// Vendor ID.
        #[arg(long)]
        vendor: String,
    },
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Run { date, vendor } => {
            let body = vendor.map(|vendor| json!({ "vendor": vendor }));
            let path = format!("{}/run", path_of(&date));
            admin.change(Method::POST, &path, body.as_ref()).await
        }
        Action::Show { date } => admin.show_object(&path_of(&date)).await,
        Action::Upload { file, date, vendor } => {
            let (source, path) = (UploadSource::open(&file)?, format!("{}/records", path_of(&date)));
            let response = upload::send(source, &path, &[("vendor", vendor)], "text/csv", admin).await?;
            admin.show(response, output::format_object)
        }
    }
}

fn path_of(date: &str) -> String {
    format!("/reconciliation/{}", percent_encode(date))
}
