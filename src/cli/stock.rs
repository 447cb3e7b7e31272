//! `vouchsafe stock`: import vouchers, show levels, void vouchers.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use csv_core::ReadFieldResult;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::CommandOutput;
use super::admin::{AdminClient, AdminOptions, PageOptions};
use super::examples::examples;
use super::output::Column;
use super::upload::{self, UploadSource};

const COLUMNS: [Column; 8] = [
    ("PRODUCT", "product_id"),
    ("DENOMINATION", "denomination"),
    ("LOADED", "loaded"),
    ("FREE", "free"),
    ("SOLD", "sold"),
    ("VOID", "void"),
    ("EXPIRED", "expired"),
    ("NEXT EXPIRY", "next_expiry"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe stock levels"])]
pub struct StockArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Import vouchers. Can be repeated: no voucher is imported twice.
    #[command(after_help = examples![
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25",
        "vouchsafe stock import - --format ndjson --product sbx-instant --denomination 25 < vouchers.ndjson",
    ])]
    Import {
        /// CSV file with a header (code,pin,serial,url,expiry) or NDJSON file; - reads standard input.
        file: PathBuf,
        /// Product ID.
        #[arg(long, value_name = "PRODUCT")]
        product: String,
        /// Face value.
        #[arg(long, value_name = "AMOUNT")]
        denomination: String,
        /// Format of the file [default: ndjson for .ndjson and .jsonl, else csv].
        #[arg(long)]
        format: Option<Format>,
    },
    /// List stock levels by SKU.
    #[command(after_help = examples!["vouchsafe stock levels --product sbx-instant"])]
    Levels {
        /// Filter by product.
        #[arg(long, value_name = "PRODUCT")]
        product: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Take vouchers out of sale; sold vouchers stay sold.
    #[command(after_help = examples![
        "vouchsafe stock void --product sbx-instant --denomination 25 --reason 'recalled by the brand'",
        "vouchsafe stock void --product sbx-instant --codes codes.csv --reason 'sent by mistake'",
    ])]
    Void {
        /// Product ID.
        #[arg(long, value_name = "PRODUCT")]
        product: String,
        /// Face value of which all available vouchers are voided.
        #[arg(
            long,
            value_name = "AMOUNT",
            required_unless_present = "codes",
            conflicts_with = "codes"
        )]
        denomination: Option<String>,
        /// File without a header, one code per line, optionally with a comma and its PIN; - reads standard input.
        #[arg(long, value_name = "FILE")]
        codes: Option<PathBuf>,
        /// Reason, written to the audit trail.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

#[derive(Deserialize)]
struct ImportReport {
    imported: u64,
    duplicates: u64,
    rejected_count: u64,
    rejected: Vec<Rejection>,
}

#[derive(Deserialize)]
struct Rejection {
    line: u64,
    reason: String,
}

#[derive(Deserialize)]
struct VoidReport {
    voided: u64,
    refused: Vec<RefusedCode>,
}

#[derive(Deserialize)]
struct RefusedCode {
    index: usize,
    reason: String,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Import {
            file,
            product,
            denomination,
            format,
        } => {
            let query = [("product_id", product), ("denomination", denomination)];
            let content_type = match format.unwrap_or_else(|| detect_format(&file)) {
                Format::Csv => "text/csv",
                Format::Ndjson => "application/x-ndjson",
            };
            let source = UploadSource::open(&file)?;
            let response = upload::send(source, "/stock", &query, content_type, admin).await?;
            admin.show(response, |response| {
                Ok(format_import_report(&serde_json::from_str(response)?))
            })
        }
        Action::Levels { product, page } => {
            let mut query = page.query();
            query.extend(product.map(|product| ("product_id", product)));
            admin.show_list("/stock", &query, &COLUMNS).await
        }
        Action::Void {
            product,
            denomination,
            codes,
            reason,
        } => {
            let body = match codes {
                Some(file) => json!({ "product_id": product, "codes": read_codes(&file)?, "reason": reason }),
                None => json!({ "product_id": product, "denomination": denomination, "reason": reason }),
            };
            let response = admin.call(Method::POST, "/stock/void", Some(&body)).await?;
            admin.show(response, |response| {
                Ok(format_void_report(&serde_json::from_str(response)?))
            })
        }
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
        imported,
        duplicates,
        rejected_count,
        rejected,
    } = report;
    let mut text = format!("imported {imported}, duplicates {duplicates}, rejected {rejected_count}");
    for Rejection { line, reason } in rejected {
        text.push_str(&format!("\n  line {line}: {reason}"));
    }
    let omitted = rejected_count.saturating_sub(rejected.len() as u64);
    if omitted > 0 {
        text.push_str(&format!("\n  … and {omitted} more"));
    }
    text
}

/// Reads CSV lines with a code and optionally a PIN.
fn read_codes(file: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut text = String::new();
    UploadSource::open(file)?
        .reader
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let codes: Vec<_> = lines.map(parse_code).collect();
    if codes.is_empty() {
        bail!("{} contains no code", file.display());
    }
    Ok(codes)
}

fn parse_code(line: &str) -> serde_json::Value {
    let mut fields = CsvFields::of(line);
    let code = fields.next().unwrap_or_default();
    match fields.next() {
        Some(pin) => json!({ "code": code, "pin": pin }),
        None => json!({ "code": code }),
    }
}

pub(super) struct CsvFields<'a> {
    reader: csv_core::Reader,
    rest: &'a [u8],
    ended: bool,
}

impl<'a> CsvFields<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self {
            reader: csv_core::Reader::new(),
            rest: line.as_bytes(),
            ended: false,
        }
    }
}

impl Iterator for CsvFields<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        // An unquoted field is at most as long as the rest of its line.
        let mut field = vec![0; self.rest.len() + 1];
        let mut length = 0;
        while !self.ended {
            let (result, read, written) = self.reader.read_field(self.rest, &mut field[length..]);
            self.rest = &self.rest[read..];
            length += written;
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    self.ended = record_end;
                    field.truncate(length);
                    return String::from_utf8(field).ok();
                }
                ReadFieldResult::End => self.ended = true,
            }
        }
        None
    }
}

fn format_void_report(outcome: &VoidReport) -> String {
    let mut text = format!("voided {}", outcome.voided);
    for RefusedCode { index, reason } in &outcome.refused {
        text.push_str(&format!("\n  code {}: {reason}", index + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_line_is_parsed_like_an_import() {
        for (line, expected) in [
            ("ABC", json!({ "code": "ABC" })),
            ("ABC,12", json!({ "code": "ABC", "pin": "12" })),
            (r#""A,B",12"#, json!({ "code": "A,B", "pin": "12" })),
            (r#""A""B""#, json!({ "code": "A\"B" })),
            ("ß-1,", json!({ "code": "ß-1", "pin": "" })),
        ] {
            assert_eq!(parse_code(line), expected, "{line}");
        }
    }
}
