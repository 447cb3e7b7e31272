//! Converts a voucher file (CSV with a header, or NDJSON) into request bodies.
//!
//! The service validates the values. Errors never quote a line.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;
use serde_json::error::Category;
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::orders::fulfil::VoucherRequest;
use vouchsafe_wire::operator::stock::named_fields::{NamedFields, split_named_lines};
use vouchsafe_wire::operator::stock::row::LineError;

use super::stock::{Format, detect_format};
use super::upload::UploadSource;

/// In bytes: far more than a request may have.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads the vouchers of a file.
///
/// # Errors
/// If the file cannot be read, contains no voucher, or a voucher has another field than those of an import.
pub(super) fn read_vouchers(file: &Path) -> anyhow::Result<Vec<JsonObject<VoucherRequest>>> {
    let mut text = String::new();
    UploadSource::open(file)?
        .reader
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let vouchers = match detect_format(file) {
        Format::Ndjson => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines
                .enumerate()
                .map(parse_object)
                .collect::<Result<Vec<_>, _>>()?
        }
        Format::Csv => parse_csv(&text)?,
    };
    if vouchers.is_empty() {
        bail!("{} contains no voucher", file.display());
    }
    Ok(vouchers)
}

fn parse_object((index, line): (usize, &str)) -> anyhow::Result<JsonObject<VoucherRequest>> {
    // The parser's error may quote the line.
    serde_json::from_str(line).map_err(|error| {
        let reason = match error.classify() {
            Category::Data => LineError::NotAVoucher,
            Category::Syntax | Category::Eof | Category::Io => LineError::NotJson,
        };
        anyhow::anyhow!("voucher {}: {reason}", index + 1)
    })
}

fn parse_csv(text: &str) -> Result<Vec<JsonObject<VoucherRequest>>, LineError> {
    let voucher = |fields: Result<NamedFields, LineError>| {
        let fields = fields?
            .into_iter()
            .map(|(name, value)| (name, Value::String(value)));
        serde_json::from_value(Value::Object(fields.collect())).map_err(|_| LineError::NotAVoucher)
    };
    split_named_lines(text)?.lines.into_iter().map(voucher).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn csv_line_becomes_voucher_without_empty_fields() {
        let text = "code,pin,expiry\nA-1,12,2099-12-31\n\"A,2\",,\nA-3\n";
        let vouchers = parse_csv(text).unwrap();
        let found = serde_json::to_value(&vouchers).unwrap();
        let expected = [
            ("A-1", Some("12"), Some("2099-12-31")),
            ("A,2", None, None),
            ("A-3", None, None),
        ];
        for ((code, pin, expiry), found) in expected.iter().zip(found.as_array().unwrap()) {
            let expected = json!({ "code": code, "pin": pin, "serial": null, "url": null, "expiry": expiry });
            assert_eq!(*found, expected);
        }
        assert_eq!(vouchers.len(), expected.len());
        let unknown = "code,colour\nA-1,red";
        assert_eq!(parse_csv(unknown).unwrap_err(), LineError::NotAVoucher);
        assert!(parse_csv("").unwrap().is_empty());
        let fields = LineError::Fields {
            expected: 1,
            found: 2,
        };
        assert_eq!(parse_csv("code\nA,1").unwrap_err(), fields);
    }
}
