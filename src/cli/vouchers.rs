//! Converts a voucher file (CSV with a header, or NDJSON) into request bodies.
//!
//! The service validates the vouchers. Errors never quote a line.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use vouchsafe_wire::operator::stock::field_splitter::FieldSplitter;
use vouchsafe_wire::operator::stock::row::LineError;

use super::stock::{Format, detect_format};
use super::upload::UploadSource;

/// In bytes: far more than a request may have.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// More than a voucher has; the service names the unknown ones.
const MAX_FIELDS: usize = 20;

/// Reads the vouchers of a file.
///
/// # Errors
/// If the file cannot be read or contains no voucher.
pub(super) fn read_vouchers(file: &Path) -> anyhow::Result<Vec<Value>> {
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

fn parse_object((index, line): (usize, &str)) -> anyhow::Result<Value> {
    // The parser's error may quote the line.
    serde_json::from_str(line).map_err(|_| anyhow::anyhow!("voucher {} is not valid JSON", index + 1))
}

fn parse_csv<'a>(mut lines: impl Iterator<Item = &'a str>) -> Result<Vec<Value>, LineError> {
    let mut fields = FieldSplitter::<MAX_FIELDS>::default();
    let mut split = |line| {
        let split = fields.split(line)?;
        let texts = (0..split.count).map(|position| split.get(position).to_owned());
        Ok::<_, LineError>(texts.collect::<Vec<_>>())
    };
    let header = lines.next().map(&mut split).transpose()?.unwrap_or_default();
    let voucher = |line| {
        let named = header.iter().cloned().zip(split(line)?);
        let present = named.filter(|(_, text)| !text.is_empty());
        let voucher: Map<_, _> = present.map(|(name, text)| (name, Value::String(text))).collect();
        Ok(Value::Object(voucher))
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
        let expected = [
            json!({ "code": "A-1", "pin": "12", "expiry": "2099-12-31" }),
            json!({ "code": "A,2" }),
            json!({ "code": "A-3" }),
        ];
        assert_eq!(parse_csv(lines.into_iter()).unwrap(), expected);
        assert!(parse_csv(std::iter::empty()).unwrap().is_empty());
    }
}
