//! `vouchsafe stock`: vouchers coming in, what became of them, and taking them out of sale.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use csv_core::ReadFieldResult;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions};
use super::examples::examples;
use super::show::Column;
use super::upload::{self, Source};

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

/// Arguments of `vouchsafe stock`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe stock levels"])]
pub struct StockArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be done to stock.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Import vouchers. May be repeated: nothing comes in twice.
    #[command(after_help = examples![
        "vouchsafe stock import vouchers.csv --product sbx-instant --denomination 25",
        "vouchsafe stock import - --format ndjson --product sbx-instant --denomination 25 < vouchers.ndjson",
    ])]
    Import {
        /// CSV with a header (code,pin,serial,url,expiry) or NDJSON; - is the standard input.
        file: PathBuf,
        /// Of which product.
        #[arg(long, value_name = "PRODUCT")]
        product: String,
        /// At which face value.
        #[arg(long, value_name = "AMOUNT")]
        denomination: String,
        /// What the file is. Unset: NDJSON if its name ends in .ndjson or .jsonl, else CSV.
        #[arg(long)]
        format: Option<Format>,
    },
    /// Show the level of each SKU.
    #[command(after_help = examples!["vouchsafe stock levels --product sbx-instant"])]
    Levels {
        /// Of this product.
        #[arg(long, value_name = "PRODUCT")]
        product: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Take vouchers out of sale. What is sold stays sold.
    #[command(after_help = examples![
        "vouchsafe stock void --product sbx-instant --denomination 25 --reason 'recalled by the brand'",
        "vouchsafe stock void --product sbx-instant --codes codes.csv --reason 'sent by mistake'",
    ])]
    Void {
        /// Of which product.
        #[arg(long, value_name = "PRODUCT")]
        product: String,
        /// Everything that is free at this face value.
        #[arg(
            long,
            value_name = "AMOUNT",
            required_unless_present = "codes",
            conflicts_with = "codes"
        )]
        denomination: Option<String>,
        /// A file with a code a line, its PIN behind a comma; - is the standard input.
        #[arg(long, value_name = "FILE")]
        codes: Option<PathBuf>,
        /// Why; kept in the trail.
        #[arg(long)]
        reason: String,
    },
}

/// The formats of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated, with a header.
    Csv,
    /// A JSON object a line.
    Ndjson,
}

#[derive(Deserialize)]
struct Report {
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
struct Voided {
    voided: u64,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    index: usize,
    reason: String,
}

/// Runs `vouchsafe stock`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::Import {
            file,
            product,
            denomination,
            format,
        } => {
            let query = [("product_id", product), ("denomination", denomination)];
            let content_type = match format.unwrap_or_else(|| format_of(&file)) {
                Format::Csv => "text/csv",
                Format::Ndjson => "application/x-ndjson",
            };
            let source = Source::open(&file)?;
            let answer = upload::send(source, "/stock", &query, content_type, admin).await?;
            admin.show(answer, |answer| Ok(report(&serde_json::from_str(answer)?)))
        }
        Action::Levels { product, page } => {
            let mut query = page.query();
            query.extend(product.map(|product| ("product_id", product)));
            admin.list("/stock", &query, &COLUMNS).await
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
            let answer = admin.call(Method::POST, "/stock/void", Some(&body)).await?;
            admin.show(answer, |answer| Ok(voided(&serde_json::from_str(answer)?)))
        }
    }
}

pub(super) fn format_of(file: &Path) -> Format {
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

fn report(report: &Report) -> String {
    let Report {
        imported,
        duplicates,
        rejected_count,
        rejected,
    } = report;
    let mut text = format!("imported {imported}, duplicates {duplicates}, rejected {rejected_count}");
    for Rejection { line, reason } in rejected {
        text.push_str(&format!("\n  line {line}: {reason}"));
    }
    let untold = rejected_count.saturating_sub(rejected.len() as u64);
    if untold > 0 {
        text.push_str(&format!("\n  … and {untold} more"));
    }
    text
}

/// A code a line as CSV, its PIN in the second column.
fn read_codes(file: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut text = String::new();
    Source::open(file)?
        .reader
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let codes: Vec<_> = lines.map(named_code).collect();
    if codes.is_empty() {
        bail!("{} names no code", file.display());
    }
    Ok(codes)
}

fn named_code(line: &str) -> serde_json::Value {
    let mut fields = Fields::of(line);
    let code = fields.next().unwrap_or_default();
    match fields.next() {
        Some(pin) => json!({ "code": code, "pin": pin }),
        None => json!({ "code": code }),
    }
}

/// The fields of a line of CSV.
pub(super) struct Fields<'a> {
    reader: csv_core::Reader,
    rest: &'a [u8],
    ended: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self {
            reader: csv_core::Reader::new(),
            rest: line.as_bytes(),
            ended: false,
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        // Unquoted, a field is no longer than what is left of its line.
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

fn voided(outcome: &Voided) -> String {
    let mut text = format!("taken out of sale: {}", outcome.voided);
    for Refused { index, reason } in &outcome.refused {
        text.push_str(&format!("\n  code {}: {reason}", index + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_an_import_reads_it() {
        for (line, expected) in [
            ("ABC", json!({ "code": "ABC" })),
            ("ABC,12", json!({ "code": "ABC", "pin": "12" })),
            (r#""A,B",12"#, json!({ "code": "A,B", "pin": "12" })),
            (r#""A""B""#, json!({ "code": "A\"B" })),
            ("ß-1,", json!({ "code": "ß-1", "pin": "" })),
        ] {
            assert_eq!(named_code(line), expected, "{line}");
        }
    }
}
