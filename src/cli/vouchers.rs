//! A file of vouchers as the body of a request has them: CSV with a header, or a JSON object a line.
//!
//! Rule: what a line means is the service's affair; here it is only put into another form. No text is quoted.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};

use super::stock::{Fields, Format, format_of};
use super::upload::Source;

/// Most that is read of a file: far more than a request may have. Bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The vouchers of a file.
///
/// # Errors
/// When it cannot be read, or has none.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let mut text = String::new();
    Source::open(file)?
        .reader
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let vouchers = match format_of(file) {
        Format::Ndjson => lines.enumerate().map(object).collect::<Result<Vec<_>, _>>()?,
        Format::Csv => of_csv(lines),
    };
    if vouchers.is_empty() {
        bail!("{} has no voucher", file.display());
    }
    Ok(vouchers)
}

fn object((index, line): (usize, &str)) -> anyhow::Result<Value> {
    // The parser's words may quote the line.
    serde_json::from_str(line).map_err(|_| anyhow::anyhow!("voucher {} is not valid JSON", index + 1))
}

fn of_csv<'a>(mut lines: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let header: Vec<String> = lines.next().map(Fields::of).into_iter().flatten().collect();
    let voucher = |line| {
        let named = header.iter().cloned().zip(Fields::of(line));
        let given = named.filter(|(_, text)| !text.is_empty());
        let voucher: Map<_, _> = given.map(|(name, text)| (name, Value::String(text))).collect();
        Value::Object(voucher)
    };
    lines.map(voucher).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_voucher_with_what_it_has() {
        let lines = ["code,pin,expiry", "A-1,12,2099-12-31", "\"A,2\",,", "A-3"];
        let expected = [
            json!({ "code": "A-1", "pin": "12", "expiry": "2099-12-31" }),
            json!({ "code": "A,2" }),
            json!({ "code": "A-3" }),
        ];
        assert_eq!(of_csv(lines.into_iter()), expected);
        assert!(of_csv(std::iter::empty()).is_empty());
    }
}
