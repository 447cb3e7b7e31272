//! `vouchsafe stock`: import vouchers, show levels, void vouchers.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::Value;
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::stock::field_splitter::FieldSplitter;
use vouchsafe_wire::operator::stock::import::{ImportQuery, ImportReport, Rejection};
use vouchsafe_wire::operator::stock::level::LevelFilter;
use vouchsafe_wire::operator::stock::quarantine::QuarantineRequest;
use vouchsafe_wire::operator::stock::void::{NamedCode, VoidRequest};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::examples::examples;
use super::stock_release::{self, ReleaseArgs};
use super::table::{Column, column};
use super::upload::{self, UploadSource};

/// Rejected lines in the summary of an import: enough to recognise the mistake.
const SHOWN_REJECTIONS: usize = 10;

const COLUMNS: [Column; 11] = [
    column("PRODUCT", "product_id"),
    column("DENOMINATION", "denomination"),
    column("LOADED", "loaded"),
    column("FREE", "free"),
    column("SOLD 7D", "sold_7d"),
    column("DAYS LEFT", "days_left"),
    column("QUARANTINED", "quarantined"),
    column("SOLD", "sold"),
    column("VOID", "void"),
    column("EXPIRED", "expired"),
    column("NEXT EXPIRY", "next_expiry"),
];

const EXPIRY_COLUMNS: [Column; 3] = [
    column("MONTH", "month"),
    column("VOUCHERS", "vouchers"),
    column("SHARE", "share"),
];

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Import vouchers. Can be repeated: no voucher is imported twice.
    #[command(after_help = examples![
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25",
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25 --batch 4711 --strict",
        "vouchsafe stock import - --format ndjson --product sbx-instant --denomination 25 < vouchers.ndjson",
    ])]
    Import {
        /// CSV file with a header (code,pin,serial,url,expiry) or NDJSON file; - reads standard input.
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
    Expiries(ListArgs<LevelFilter>),
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
        /// File without a header, one code per line, optionally with a comma and its PIN; - reads standard input.
        #[arg(long, value_name = "FILE")]
        codes: Option<PathBuf>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Import {
            file,
            query,
            format,
            strict,
        } => {
            let content_type = match format.unwrap_or_else(|| detect_format(&file)) {
                Format::Csv => "text/csv",
                Format::Ndjson => "application/x-ndjson",
            };
            let source = UploadSource::open(&file)?;
            let response = upload::send(source, "/stock", &query, content_type, admin).await?;
            let report: ImportReport =
                serde_json::from_str(&response).context("unexpected response format")?;
            let output = admin.show(response, |_| Ok(format_import_report(&report)))?;
            Ok(CommandOutput {
                succeeded: report.rejected_count == 0 || !strict,
                ..output
            })
        }
        Action::Expiries(args) => admin.list("/stock/expiries", &args, &EXPIRY_COLUMNS).await,
        Action::Levels(args) => admin.list("/stock", &args, &COLUMNS).await,
        Action::Void { mut request, codes } => {
            request.codes = codes.as_deref().map(read_codes).transpose()?;
            let response = admin.call(Method::POST, "/stock/void", Some(&request)).await?;
            admin.show(response, |response| {
                Ok(format_void_report(&serde_json::from_str(response)?))
            })
        }
        Action::Quarantine(request) => stock_release::quarantine(&request, admin).await,
        Action::Release(args) => stock_release::release(args, admin).await,
    }
}

pub(super) fn detect_format(file: &Path) -> Format {
    let extension = file
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    if ["ndjson", "jsonl"].contains(&extension) {
        Format::Ndjson
    } else {
        Format::Csv
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
    } = report;
    let mut text = format!(
        "imported {imported}, duplicates {duplicates}, rejected {rejected_count} (vendor {vendor}, batch {batch})"
    );
    for Rejection { line, reason } in rejected.iter().take(SHOWN_REJECTIONS) {
        text.push_str(&format!("\n  line {line} rejected: {reason}"));
    }
    let omitted = rejected_count.saturating_sub(SHOWN_REJECTIONS as u64);
    if omitted > 0 {
        text.push_str(&format!("\n  … and {omitted} more; --json lists the first 1,000"));
    }
    text
}

/// Reads CSV lines with a code and optionally a PIN.
fn read_codes(file: &Path) -> anyhow::Result<Vec<JsonObject<NamedCode>>> {
    let mut text = String::new();
    UploadSource::open(file)?
        .reader
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let mut fields = FieldSplitter::<3>::default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let codes: Vec<_> = lines
        .map(|line| parse_code(&mut fields, line).map(JsonObject))
        .collect::<Result<_, _>>()?;
    if codes.is_empty() {
        bail!("{} contains no code", file.display());
    }
    Ok(codes)
}

fn parse_code(fields: &mut FieldSplitter<3>, line: &str) -> anyhow::Result<NamedCode> {
    let split = fields.split(line)?;
    Ok(NamedCode {
        code: split.get(0).to_owned(),
        pin: (split.count > 1).then(|| split.get(1).to_owned()),
    })
}

fn format_void_report(report: &Value) -> String {
    let mut text = format!("voided {}", report["voided"]);
    for rejected in report["rejected"].as_array().into_iter().flatten() {
        let position = rejected["index"].as_u64().unwrap_or_default() + 1;
        let reason = rejected["reason"].as_str().unwrap_or_default();
        text.push_str(&format!("\n  code {position}: {reason}"));
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

    #[test]
    fn code_line_is_parsed_like_an_import() {
        for (line, code, pin) in [
            ("ABC", "ABC", None),
            ("ABC,12", "ABC", Some("12")),
            (r#""A,B",12"#, "A,B", Some("12")),
            (r#""A""B""#, "A\"B", None),
            ("ß-1,", "ß-1", Some("")),
        ] {
            let found = parse_code(&mut FieldSplitter::default(), line).unwrap();
            assert_eq!((found.code.as_str(), found.pin.as_deref()), (code, pin), "{line}");
        }
    }
}
