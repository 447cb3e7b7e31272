//! Lists of vouchers in files: to fulfil an order, to void, or that were sold. Read as a whole, or not at
//! all.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use vouchsafe_wire::operator::stock::row::{DamagePolicy, RowError};
use vouchsafe_wire::operator::stock::voucher_list::{
    ListPurpose, ListedVoucher, VoucherList, WholeList, read_whole,
};
use vouchsafe_wire::operator::table::reader;

use super::upload::UploadSource;

/// Holds a recall of a million cards.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Rejected lines in an error: enough to recognise the mistake.
const SHOWN_REJECTIONS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl Format {
    /// Follows the file's extension: NDJSON for `.ndjson` and `.jsonl`.
    pub(super) fn of_file(file: &Path) -> Self {
        let extension = file.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("ndjson" | "jsonl") => Self::Ndjson,
            _ => Self::Csv,
        }
    }
}

/// Reads a file into memory.
///
/// # Errors
/// If it cannot be read or is too large.
pub(super) fn read_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = UploadSource::open(file)?
        .reader
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", file.display()))?;
    if read as u64 > MAX_FILE_BYTES {
        bail!(
            "{} has more than {} MiB; split it",
            file.display(),
            MAX_FILE_BYTES >> 20
        );
    }
    Ok(bytes)
}

/// Converts the records of a list, each with its line. Notices go to standard error.
///
/// # Errors
/// If the file is no such list, has no record, or a record is rejected: nothing of it is used then.
pub(super) fn parse_list<T>(
    file: &Path,
    bytes: &[u8],
    purpose: ListPurpose,
    accept_as_is: bool,
    convert: impl Fn(&ListedVoucher<'_>) -> Result<T, RowError>,
) -> anyhow::Result<Vec<(u64, T)>> {
    let format = match Format::of_file(file) {
        Format::Csv => reader::Format::Csv,
        Format::Ndjson => reader::Format::Ndjson,
    };
    let list = VoucherList::new(purpose, format, DamagePolicy::new(accept_as_is));
    let WholeList {
        values,
        rejected,
        notices,
    } = read_whole(list, bytes, convert).with_context(|| format!("cannot read {}", file.display()))?;
    for notice in notices {
        // Standard error may be closed.
        drop(writeln!(io::stderr(), "{}: {notice}", file.display()));
    }
    if !rejected.is_empty() {
        bail!("{}: {}", file.display(), describe_rejections(&rejected));
    }
    if values.is_empty() {
        bail!("{} contains no voucher", file.display());
    }
    Ok(values)
}

/// The rejected lines; the option of a request has another name here.
fn describe_rejections(rejected: &[(u64, RowError)]) -> String {
    let mut text = format!("{} lines are rejected, and nothing was done", rejected.len());
    for (line, reason) in rejected.iter().take(SHOWN_REJECTIONS) {
        let reason = reason.to_string().replace("accept_as_is", "--accept-as-is");
        text.push_str(&format!("\n  line {line}: {reason}"));
    }
    if rejected.len() > SHOWN_REJECTIONS {
        text.push_str(&format!("\n  … and {} more", rejected.len() - SHOWN_REJECTIONS));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> anyhow::Result<Vec<(u64, String)>> {
        let convert = |listed: &ListedVoucher<'_>| Ok(listed.voucher.parts.code.to_owned());
        parse_list(
            Path::new("codes.csv"),
            text.as_bytes(),
            ListPurpose::Void,
            false,
            convert,
        )
    }

    #[test]
    fn list_is_read_with_and_without_header_and_not_in_part() {
        let expected = |lines: [u64; 2]| lines.into_iter().zip(["GC-1".to_owned(), "GC-2".to_owned()]);
        assert!(
            codes("GC-1\nGC-2,0012\n")
                .unwrap()
                .into_iter()
                .eq(expected([1, 2]))
        );
        assert!(codes("GC-1\nGC-2,0012,S-1\n").is_err());
        assert!(codes("GC-1\nGC-2\n").unwrap().into_iter().eq(expected([1, 2])));
        assert!(
            codes("Code;PIN\nGC-1;\nGC-2;0012\n")
                .unwrap()
                .into_iter()
                .eq(expected([2, 3]))
        );
        assert!(
            codes("{\"code\":\"GC-1\"}\n{\"CODE\":\"GC-2\",\"pin\":null}")
                .unwrap()
                .into_iter()
                .eq(expected([1, 2]))
        );
        let error = codes("code\nSECRET-1\n#N/A\n\"SECRET-2\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 3: code is an error value") && error.contains("line 4: a quote"),
            "{error}"
        );
        assert!(
            error.contains("--accept-as-is") && !error.contains("SECRET"),
            "{error}"
        );
        assert!(codes("code\n").unwrap_err().to_string().contains("no voucher"));
    }
}
