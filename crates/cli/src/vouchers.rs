//! Converts a voucher file (CSV with a header, or NDJSON) into request bodies.
//!
//! The service validates the values. Errors never quote a line.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::error::Category;
use serde_json::{Map, Value};
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::orders::fulfil::VoucherRequest;
use vouchsafe_wire::operator::stock::field_splitter::FieldSplitter;
use vouchsafe_wire::operator::stock::row::LineError;

use super::stock::{Format, detect_format};
use super::upload::UploadSource;

/// In bytes: far more than a request may have.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// More than a voucher has.
const MAX_FIELDS: usize = 20;

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
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let vouchers = match detect_format(file) {
        Format::Ndjson => lines
            .enumerate()
            .map(parse_object)
            .collect::<Result<Vec<_>, _>>()?,
        Format::Csv => parse_csv(lines)?,
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

fn parse_csv<'a>(
    mut lines: impl Iterator<Item = &'a str>,
) -> Result<Vec<JsonObject<VoucherRequest>>, LineError> {
    let mut fields = FieldSplitter::<MAX_FIELDS>::default();
    let mut split = |line| {
        let split = fields.split(line)?;
        let texts = (0..split.count).map(|position| split.get(position).to_owned());
        Ok::<_, LineError>(texts.collect::<Vec<_>>())
    };
    let header = lines.next().map(&mut split).transpose()?.unwrap_or_default();
    let voucher = |line| {
        let texts = split(line)?;
        if texts.len() > header.len() {
            // A code with a comma that is not quoted would be cut. Fields at the end may be left out.
            return Err(LineError::Fields {
                expected: header.len(),
                found: texts.len(),
            });
        }
        let named = header.iter().cloned().zip(texts);
        let present = named.filter(|(_, text)| !text.is_empty());
        let voucher: Map<_, _> = present.map(|(name, text)| (name, Value::String(text))).collect();
        serde_json::from_value(Value::Object(voucher)).map_err(|_| LineError::NotAVoucher)
    };
    lines.map(voucher).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn csv_line_becomes_voucher_without_empty_fields() {
        let lines = ["code,pin,expiry", "A-1,12,2099-12-31", "\"A,2\",,", "A-3"];
        let vouchers = parse_csv(lines.into_iter()).unwrap();
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
        let unknown = ["code,colour", "A-1,red"];
        assert_eq!(
            parse_csv(unknown.into_iter()).unwrap_err(),
            LineError::NotAVoucher
        );
        assert!(parse_csv(std::iter::empty()).unwrap().is_empty());
        let not_quoted = ["code", "A,1"];
        let fields = LineError::Fields {
            expected: 1,
            found: 2,
        };
        assert_eq!(parse_csv(not_quoted.into_iter()).unwrap_err(), fields);
    }
}
