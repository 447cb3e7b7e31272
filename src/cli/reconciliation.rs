//! `vouchsafe reconciliation`: are the vendors' books and ours the same?

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, escaped};
use super::examples::examples;
use super::show;
use super::upload::{self, Source};

/// Arguments of `vouchsafe reconciliation`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20"])]
pub struct ReconciliationArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be done about a day.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Compare a day as soon as may be; `show` tells what came of it.
    #[command(after_help = examples![
        "vouchsafe reconciliation run 2026-11-20",
        "vouchsafe reconciliation run 2026-11-20 --vendor acme-cards",
    ])]
    Run {
        /// Which day, in UTC.
        #[arg(value_name = "DATE")]
        date: String,
        /// With this vendor alone. Left out: with all that are asked over HTTP.
        #[arg(long)]
        vendor: Option<String>,
    },
    /// Show what came of a day, by vendor.
    #[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20 --json"])]
    Show {
        /// Which day, in UTC.
        #[arg(value_name = "DATE")]
        date: String,
    },
    /// Bring a vendor's books of a day as a file, and compare them. May be repeated.
    #[command(after_help = examples![
        "vouchsafe reconciliation upload records.csv --date 2026-11-20 --vendor by-hand",
        "vouchsafe reconciliation upload - --date 2026-11-20 --vendor by-hand < records.csv",
    ])]
    Upload {
        /// CSV with a header (reference,product_id,denomination,currency,sold_at and at will purchase_id); - is the standard
        /// input.
        file: PathBuf,
        /// Which day, in UTC.
        #[arg(long)]
        date: String,
        /// Whose books.
        #[arg(long)]
        vendor: String,
    },
}

/// Runs `vouchsafe reconciliation`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::Run { date, vendor } => {
            let body = vendor.map(|vendor| json!({ "vendor": vendor }));
            let path = format!("{}/run", path_of(&date));
            admin.change(Method::POST, &path, body.as_ref()).await
        }
        Action::Show { date } => admin.object(&path_of(&date)).await,
        Action::Upload { file, date, vendor } => {
            let (source, path) = (Source::open(&file)?, format!("{}/records", path_of(&date)));
            let answer = upload::send(source, &path, &[("vendor", vendor)], "text/csv", admin).await?;
            admin.show(answer, show::object)
        }
    }
}

fn path_of(date: &str) -> String {
    format!("/reconciliation/{}", escaped(date))
}
