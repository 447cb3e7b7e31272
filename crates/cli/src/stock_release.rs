//! `vouchsafe stock quarantine` and `vouchsafe stock release`: comparison of quarantined stock with files of
//! sold vouchers.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Deserializer, Map, Value, json};
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_wire::operator::stock::quarantine::{
    ComparisonReport, QuarantineRequest, ReleaseReport, SoldVoucherBody,
};
use vouchsafe_wire::operator::stock::void::MAX_CODES;
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, ListedVoucher};
use vouchsafe_wire::operator::stock::{QUARANTINE_STOCK, RELEASE_STOCK, WITHDRAW_SOLD_STOCK};

use super::CommandOutput;
use super::admin::AdminClient;
use super::voucher_file::{parse_list, read_bytes};

#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The database was restored: compare with the sold vouchers, take those out of sale, and release the
    /// others.
    #[arg(long, required_unless_present = "after_failover", requires = "sold")]
    after_restore: bool,
    /// Nothing was lost: a synchronous standby was promoted, or the cluster was upgraded or moved.
    #[arg(long, conflicts_with_all = ["after_restore", "sold"])]
    after_failover: bool,
    /// CSV file with a header (code, pin, product_id, denomination, code_id, voucher_id), NDJSON file with
    /// the same fields, or output of `GET /events`; - reads standard input. Can be repeated.
    #[arg(long, value_name = "FILE")]
    sold: Vec<PathBuf>,
    /// Release although codes of the files are not in this database: those vouchers were imported after the
    /// backup, and none is mistyped.
    #[arg(long, requires = "sold")]
    accept_absent: bool,
    /// Accept codes that look damaged by a spreadsheet, such as 6.03571E+15 or #N/A.
    #[arg(long, requires = "sold")]
    accept_as_is: bool,
    /// Reason, written to the audit trail.
    #[arg(long)]
    reason: String,
}

pub(super) async fn quarantine(
    request: &QuarantineRequest,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    let response = admin.call(QUARANTINE_STOCK, Some(request)).await?;
    admin.show(response, |_| {
        Ok(
            "all available stock is quarantined; `vouchsafe stock levels` shows how much it is, and \
             `vouchsafe stock release` ends it"
                .to_owned(),
        )
    })
}

pub(super) async fn release(args: ReleaseArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let ReleaseArgs {
        after_restore,
        sold,
        accept_absent,
        accept_as_is,
        reason,
        ..
    } = args;
    let mut totals = ComparisonReport::default();
    let mut except = BTreeSet::new();
    let mut absent_codes = Vec::new();
    let files = sold.iter().map(|file| read_sold(file, accept_as_is));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    // A voucher of a feed is identified if another file names its code.
    let lines = files.iter().flatten().filter(|line| line.is_identified());
    let identified: BTreeSet<VoucherId> = lines.filter_map(|line| line.voucher.voucher_id).collect();
    for (file, mut vouchers) in sold.iter().zip(files) {
        vouchers.retain(|line| {
            let is_named = line.voucher.voucher_id.is_some_and(|id| identified.contains(&id));
            line.is_identified() || !is_named
        });
        // The ids begin with the time of the sale: the service searches what was sold between the first and
        // the last of a part.
        vouchers.sort_by_key(|line| (line.is_identified(), line.voucher.voucher_id));
        for (parts, part) in vouchers.chunks(MAX_CODES).enumerate() {
            if parts > 0 {
                let compared = parts * MAX_CODES;
                report_progress(&format!(
                    "{}: {compared} of {} compared",
                    file.display(),
                    vouchers.len()
                ));
            }
            let report = compare(part, &reason, admin).await?;
            totals.known += report.known;
            totals.withdrawn += report.withdrawn;
            totals.kept += report.kept;
            totals.absent += report.absent;
            for index in report.absent_codes {
                let SoldLine { line, .. } = part.get(index).context("unexpected response format")?;
                absent_codes.push(format!("  {}: line {line}", file.display()));
            }
            for index in report.unidentified {
                let voucher = part.get(index).context("unexpected response format")?;
                let Some(sku) = &voucher.sku else {
                    bail!(
                        "{}: a voucher was sold that this database cannot identify, and its line names no product_id and \
                         denomination; nothing was released. Name it by its code, or add its SKU, whose stock then stays \
                         quarantined",
                        file.display()
                    );
                };
                except.insert(sku.clone());
            }
        }
    }
    if !absent_codes.is_empty() && !accept_absent {
        absent_codes.sort();
        bail!(
            "UNKNOWN {}: this database has no such code, and a voucher with a mistyped code would be sold \
             again; nothing was released. If these vouchers were imported after the backup, repeat the \
             command with --accept-absent\n{}",
            absent_codes.len(),
            absent_codes.join("\n")
        );
    }
    let mut request = json!({
        "after": if after_restore { "RESTORE" } else { "FAILOVER" },
        "except": except.iter().map(|(product_id, denomination)| {
            json!({ "product_id": product_id, "denomination": denomination })
        }).collect::<Vec<_>>(),
        "reason": reason,
    });
    let report = release_all(&mut request, admin).await?;
    admin.show(serde_json::to_string(&report)?, |_| {
        let mut text = String::new();
        if after_restore {
            let ComparisonReport {
                known,
                withdrawn,
                kept,
                absent,
                ..
            } = totals;
            text.push_str(&format!(
                "sold vouchers: {known} known here, {withdrawn} out of sale, {kept} of orders here, {absent} not in this \
                 database\n"
            ));
            for (product_id, denomination) in &except {
                text.push_str(&format!(
                    "{product_id} {denomination} stays quarantined: name its sold vouchers by code or code_id\n"
                ));
            }
        }
        let remaining = if report.stock_quarantined { "some" } else { "no" };
        text.push_str(&format!("{} vouchers released; {remaining} stock is quarantined", report.released));
        Ok(text)
    })
}

/// Releases part after part. A release that was interrupted is continued by the same command.
async fn release_all(request: &mut Value, admin: &AdminClient) -> anyhow::Result<ReleaseReport> {
    let mut released = 0;
    loop {
        let response = admin.call(RELEASE_STOCK, Some(&*request)).await?;
        let report: ReleaseReport = serde_json::from_str(&response).context("unexpected response format")?;
        released += report.released;
        if !report.has_more {
            return Ok(ReleaseReport { released, ..report });
        }
        report_progress(&format!("{released} vouchers released"));
        request["quarantine"] = report.quarantine.into();
    }
}

fn report_progress(progress: &str) {
    // Standard error may be closed.
    drop(writeln!(io::stderr(), "stock release: {progress}"));
}

async fn compare(part: &[SoldLine], reason: &str, admin: &AdminClient) -> anyhow::Result<ComparisonReport> {
    let vouchers: Vec<&SoldVoucherBody> = part.iter().map(|line| &line.voucher).collect();
    let request = json!({ "vouchers": vouchers, "reason": reason });
    let response = admin.call(WITHDRAW_SOLD_STOCK, Some(&request)).await?;
    serde_json::from_str(&response).context("unexpected response format")
}

/// A sold voucher of a file.
#[derive(Debug)]
struct SoldLine {
    voucher: SoldVoucherBody,
    /// Product and face value, if the line names them.
    sku: Option<(String, String)>,
    /// Number of the line, or of the voucher in a feed.
    line: u64,
}

impl SoldLine {
    /// Whether it names the code, and not only the id that partners know.
    const fn is_identified(&self) -> bool {
        self.voucher.code.is_some() || self.voucher.code_id.is_some()
    }
}

fn read_sold(file: &Path, accept_as_is: bool) -> anyhow::Result<Vec<SoldLine>> {
    let bytes = read_bytes(file)?;
    let lines = match read_feed(&bytes).with_context(|| format!("cannot read {}", file.display()))? {
        Some(lines) => lines,
        None => parse_list(file, &bytes, ListPurpose::Sold, accept_as_is, |listed| {
            Ok(OwnedLine::of(listed))
        })?,
    };
    let sold = lines.into_iter().map(|(number, line)| {
        let sold = line.into_sold(number);
        sold.with_context(|| format!("{}: line {number}", file.display()))
    });
    sold.collect()
}

/// The vouchers of pages of `GET /events`, each with its number; `None` for a list.
fn read_feed(bytes: &[u8]) -> anyhow::Result<Option<Vec<(u64, OwnedLine)>>> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let is_feed = match values.next() {
        Some(Ok(Value::Array(_))) => true,
        Some(Ok(Value::Object(object))) => object.contains_key("event") || object.contains_key("data"),
        _ => false,
    };
    if !is_feed {
        return Ok(None);
    }
    let mut lines = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        // The parser's error may quote the text.
        collect_feed(value.map_err(|_| anyhow!("invalid JSON"))?, &mut lines)?;
    }
    Ok(Some((1..).zip(lines).collect()))
}

fn collect_feed(value: Value, lines: &mut Vec<OwnedLine>) -> anyhow::Result<()> {
    let mut object = match value {
        Value::Array(values) => {
            return values
                .into_iter()
                .try_for_each(|value| collect_feed(value, lines));
        }
        Value::Object(object) => object,
        _ => bail!("expected objects"),
    };
    let data = object.remove("data");
    match (object.get("event").and_then(Value::as_str), data) {
        // An event of the feed. Only this type names a voucher.
        (Some("voucher.issued"), Some(Value::Object(data))) => lines.push(OwnedLine::of_object(&data)),
        (Some(_), _) => {}
        (None, Some(page)) => collect_feed(page, lines)?,
        (None, None) => lines.push(OwnedLine::of_object(&object)),
    }
    Ok(())
}

/// Texts of a line, not parsed yet.
#[derive(Default)]
struct OwnedLine {
    code: Option<String>,
    pin: Option<String>,
    product_id: Option<String>,
    denomination: Option<String>,
    code_id: Option<String>,
    voucher_id: Option<String>,
}

impl OwnedLine {
    fn of(listed: &ListedVoucher<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
        let parts = listed.voucher.parts;
        Self {
            code: owned(Some(parts.code).filter(|code| !code.is_empty())),
            pin: owned(parts.pin),
            product_id: owned(listed.product_id),
            denomination: owned(listed.denomination),
            code_id: owned(listed.code_id),
            voucher_id: owned(listed.voucher_id),
        }
    }

    fn of_object(object: &Map<String, Value>) -> Self {
        let text = |field: &str| match object.get(field) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Self {
            code: text("code"),
            pin: text("pin"),
            product_id: text("product_id"),
            denomination: text("denomination"),
            code_id: text("code_id"),
            voucher_id: text("voucher_id"),
        }
    }

    fn into_sold(self, line: u64) -> anyhow::Result<SoldLine> {
        let voucher_id = self.voucher_id.map(|id| id.parse()).transpose();
        let code_id = self.code_id.map(|id| id.parse()).transpose();
        let voucher = SoldVoucherBody {
            voucher_id: voucher_id.context("invalid voucher_id")?,
            code_id: code_id.context("invalid code_id")?,
            product_id: self.product_id.clone().filter(|_| self.code.is_some()),
            code: self.code,
            pin: self.pin,
        };
        if voucher.code.is_none() && voucher.code_id.is_none() && voucher.voucher_id.is_none() {
            bail!("expected a code, a code_id or a voucher_id for each voucher");
        }
        Ok(SoldLine {
            voucher,
            sku: self.product_id.zip(self.denomination),
            line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOUCHER: &str = "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

    fn read(text: &str) -> anyhow::Result<Vec<SoldLine>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read_sold(file.path(), false)
    }

    #[test]
    fn sold_vouchers_are_read_from_csv_lines_and_feed() {
        let csv = read(&format!("code_id,voucher_id\n7,{VOUCHER}\n8,\n")).unwrap();
        assert_eq!(csv[0].voucher.voucher_id.unwrap().to_string(), VOUCHER);
        assert_eq!(
            csv.iter()
                .map(|line| (line.line, line.voucher.code_id))
                .collect::<Vec<_>>(),
            [(2, Some(7)), (3, Some(8))]
        );
        let codes = read("{\"product_id\":\"p\",\"code\":\"A-1\",\"PIN\":\"2\"}\n{\"code_id\":7}").unwrap();
        assert_eq!(codes[0].voucher.code.as_deref(), Some("A-1"));
        assert_eq!(codes[1].voucher.code_id, Some(7));
        let event = format!(
            r#"{{"event":"voucher.issued","data":{{"order_id":"o","voucher_id":"{VOUCHER}","product_id":"p","denomination":"25.00"}}}}"#
        );
        let page =
            format!(r#"{{"data":[{event},{{"event":"order.created","data":{{}}}}],"has_more":false}}"#);
        for text in [page, format!("{event}\n{{\"event\":\"order.created\"}}\n")] {
            let feed = read(&text).unwrap();
            assert_eq!(feed.len(), 1);
            assert_eq!(feed[0].sku, Some(("p".to_owned(), "25.00".to_owned())));
            assert_eq!(feed[0].voucher.product_id, None, "a voucher id needs no product");
        }
    }

    #[test]
    fn line_that_names_no_voucher_is_rejected() {
        for text in [
            "serial\n1\n",
            "code_id\nx\n",
            "product_id\np\n",
            "voucher_id\nvch_1\n",
            "{\"product_id\":\"p\"}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn error_shows_no_code() {
        for text in [
            "SECRET-1\nSECRET-2\n",
            "SECRET-1,2\n",
            "voucher_id,code_id\nSECRET-1,SECRET-2\n",
            "code\n\"SECRET-1\n",
            "code\nSECRET-1,SECRET-2\n",
            "{\"code\":SECRET-1}",
            "{\"voucher_id\":\"SECRET-1\"}",
        ] {
            let error = format!("{:?}", read(text).unwrap_err());
            assert!(!error.contains("SECRET"), "{error}");
        }
    }
}
