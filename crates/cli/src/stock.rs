//! `vouchsafe stock`: import vouchers, show levels, void vouchers.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use vouchsafe_wire::operator::stock::import::{ImportQuery, ImportReport, Rejection, RowPreview};
use vouchsafe_wire::operator::stock::level::{LevelFilter, SkuFilter};
use vouchsafe_wire::operator::stock::quarantine::QuarantineRequest;
use vouchsafe_wire::operator::stock::void::VoidRequest;
use vouchsafe_wire::operator::stock::{IMPORT_STOCK, LIST_STOCK, LIST_STOCK_EXPIRIES};

use super::admin::{AdminClient, ListArgs};
use super::examples::examples;
use super::stock_release::{self, ReleaseArgs};
use super::upload::{self, UploadSource};
use super::voucher_file::Format;
use super::{CommandOutput, stock_void};

/// Rejected lines in the summary of an import: enough to recognise the mistake.
const SHOWN_REJECTIONS: usize = 10;

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Import vouchers. Can be repeated: no voucher is imported twice.
    #[command(after_help = examples![
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25",
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25 --dry-run",
        "vouchsafe stock import - --format ndjson --product sbx-instant --denomination 25 < vouchers.ndjson",
    ])]
    Import {
        /// CSV file (code,pin,serial,url,expiry, in any order with a header) or NDJSON file; - reads standard
        /// input.
        file: PathBuf,
        #[command(flatten)]
        query: ImportQuery,
        /// Format of the file [default: ndjson for .ndjson and .jsonl, else csv].
        #[arg(long)]
        format: Option<Format>,
        /// Exit with 1 if lines are rejected; the others are imported all the same.
        #[arg(long)]
        strict: bool,
    },
    /// List stock levels by SKU, with the sales of seven days and the days that the available vouchers last.
    #[command(after_help = examples!["vouchsafe stock levels --product sbx-instant"])]
    Levels(ListArgs<LevelFilter>),
    /// List available vouchers by the month in which they expire.
    #[command(after_help = examples!["vouchsafe stock expiries --product sbx-instant"])]
    Expiries(ListArgs<SkuFilter>),
    /// Take vouchers out of sale; sold vouchers stay sold.
    #[command(override_usage = "\
        vouchsafe stock void --product <PRODUCT> --denomination <AMOUNT> --reason <REASON>
       vouchsafe stock void --product <PRODUCT> --codes <FILE> --reason <REASON>")]
    #[command(after_help = examples![
        "vouchsafe stock void --product sbx-instant --denomination 25 --reason 'recalled by the brand'",
        "vouchsafe stock void --product sbx-instant --codes codes.csv --reason 'sent by mistake'",
    ])]
    Void {
        #[command(flatten)]
        request: VoidRequest,
        /// CSV or NDJSON file with the columns of an import, of which code and pin are used; without a header
        /// one code per line, optionally with a comma and its PIN; - reads standard input. Of any length.
        #[arg(long, value_name = "FILE")]
        codes: Option<PathBuf>,
        /// Accept codes that look damaged by a spreadsheet, such as 6.03571E+15 or #N/A.
        #[arg(long, requires = "codes")]
        accept_as_is: bool,
    },
    /// Quarantine all available stock: nothing of it is sold until it is released.
    #[command(after_help = examples!["vouchsafe stock quarantine --reason 'restored the disk snapshot of 02:00'"])]
    Quarantine(QuarantineRequest),
    /// Release quarantined stock; after a restore, compare it with what was sold since the backup.
    #[command(override_usage = "\
        vouchsafe stock release --after-restore --sold <FILE> --reason <REASON>
       vouchsafe stock release --after-failover --reason <REASON>")]
    #[command(after_help = examples![
        "vouchsafe stock release --after-restore --sold sold.csv --reason 'compared with export'",
        "vouchsafe stock release --after-failover --reason 'promoted the synchronous standby'",
    ])]
    Release(ReleaseArgs),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Import {
            file,
            query,
            format,
            strict,
        } => {
            let content_type = match format.unwrap_or_else(|| Format::of_file(&file)) {
                Format::Csv => "text/csv",
                Format::Ndjson => "application/x-ndjson",
            };
            let source = UploadSource::open(&file)?;
            let response = upload::send(source, IMPORT_STOCK, &query, content_type, admin).await?;
            let report: ImportReport =
                serde_json::from_str(&response).context("unexpected response format")?;
            let output = admin.show(response, |_| Ok(format_import_report(&report)))?;
            Ok(CommandOutput {
                succeeded: report.rejected_count == 0 || !strict,
                ..output
            })
        }
        Action::Expiries(args) => admin.list(LIST_STOCK_EXPIRIES, &args).await,
        Action::Levels(args) => admin.list(LIST_STOCK, &args).await,
        Action::Void {
            request,
            codes,
            accept_as_is,
        } => stock_void::void(request, codes.as_deref(), accept_as_is, admin).await,
        Action::Quarantine(request) => stock_release::quarantine(&request, admin).await,
        Action::Release(args) => stock_release::release(args, admin).await,
    }
}

fn format_import_report(report: &ImportReport) -> String {
    let ImportReport {
        vendor,
        batch,
        imported,
        duplicates,
        rejected_count,
        rejected,
        dry_run,
        notices,
        first_rows,
    } = report;
    let verb = if *dry_run {
        "dry run, nothing was stored: would import"
    } else {
        "imported"
    };
    let mut text = format!(
        "{verb} {imported}, duplicates {duplicates}, rejected {rejected_count} (vendor {vendor}, batch {batch})"
    );
    for Rejection { line, reason } in rejected.iter().take(SHOWN_REJECTIONS) {
        let reason = reason.replace("accept_as_is", "--accept-as-is");
        text.push_str(&format!("\n  line {line} rejected: {reason}"));
    }
    let omitted = rejected_count.saturating_sub(SHOWN_REJECTIONS as u64);
    if omitted > 0 {
        text.push_str(&format!("\n  … and {omitted} more; --json lists the first 1,000"));
    }
    for notice in notices {
        text.push_str(&format!("\n  note: {notice}"));
    }
    for RowPreview { line, parts, expiry } in first_rows {
        let expiry = expiry.as_deref().unwrap_or("never");
        text.push_str(&format!(
            "\n  line {line}: {}; expiry: {expiry}",
            parts.join("; ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_summary_names_the_first_rejections() {
        let mut report = ImportReport::new("acme".to_owned(), "b-1".to_owned());
        report.add_stored(5, 1);
        assert_eq!(
            format_import_report(&report),
            "imported 5, duplicates 1, rejected 0 (vendor acme, batch b-1)"
        );
        let rejected = |line| Rejection {
            line,
            reason: "the line is not UTF-8".to_owned(),
        };
        report.rejected_count = 12;
        report.rejected = (2..14).map(rejected).collect();
        let text = format_import_report(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("rejected 12"), "{text}");
        assert_eq!(lines[1], "  line 2 rejected: the line is not UTF-8");
        assert_eq!(
            (lines.len(), lines[11]),
            (12, "  … and 2 more; --json lists the first 1,000")
        );
    }
}
