//! `vouchsafe reconciliation`: comparison of vendor records with purchases.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vouchsafe_wire::operator::reconciliation::{
    GET_RECONCILIATION, LIST_RECONCILIATIONS, RUN_RECONCILIATION, RecordsQuery, RunRequest, UPLOAD_RECORDS,
};

use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{DayRef, ObjectRef as _};
use super::upload::{self, UploadSource};
use super::{CommandOutput, output};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Queue the comparison of a day; `show` prints the result.
    #[command(after_help = examples![
        "vouchsafe reconciliation run 2026-11-20",
        "vouchsafe reconciliation run 2026-11-20 --vendor acme-cards",
    ])]
    Run(RequestArgs<DayRef, RunRequest>),
    /// List the days that were compared, newest first.
    #[command(after_help = examples!["vouchsafe reconciliation list"])]
    List(ListArgs),
    /// Show the result of a day, by vendor.
    #[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20 --json"])]
    Show(DayRef),
    /// Upload a vendor's records of a day and compare them. Can be repeated.
    #[command(after_help = examples![
        "vouchsafe reconciliation upload records.csv --date 2026-11-20 --vendor by-hand",
        "vouchsafe reconciliation upload - --date 2026-11-20 --vendor by-hand < records.csv",
    ])]
    Upload(UploadArgs),
}

#[derive(Debug, Args)]
#[command(mut_arg("date", |date| date.long("date")))]
pub struct UploadArgs {
    /// CSV file with a header (reference,product_id,denomination,currency,sold_at and optionally
    /// purchase_id); - reads standard input.
    file: PathBuf,
    #[command(flatten)]
    day: DayRef,
    #[command(flatten)]
    query: RecordsQuery,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Run(args) => args.send(RUN_RECONCILIATION, admin).await,
        Action::List(args) => admin.list(LIST_RECONCILIATIONS, &args).await,
        Action::Show(day) => admin.run(day.at(GET_RECONCILIATION)).await,
        Action::Upload(UploadArgs { file, day, query }) => {
            let source = UploadSource::open(&file)?;
            let response = upload::send(source, day.at(UPLOAD_RECORDS), &query, "text/csv", admin).await?;
            admin.show(response, output::format_object)
        }
    }
}
