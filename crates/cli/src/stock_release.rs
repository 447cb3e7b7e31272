//! `vouchsafe stock quarantine` and `vouchsafe stock release`: comparison of quarantined stock with files of sold vouchers.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::Method;
use serde_json::{Deserializer, Map, Value, json};
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_wire::operator::stock::columns::{ColumnError, Columns};
use vouchsafe_wire::operator::stock::quarantine::{
    ComparisonReport, NamedVoucher, QuarantineRequest, ReleaseReport,
};

use super::CommandOutput;
use super::admin::AdminClient;
use super::upload::UploadSource;

/// Vouchers per request: the limit of the route.
const VOUCHERS_PER_REQUEST: usize = 1_000;

#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The database was restored: compare with the sold vouchers, take those out of sale, and release the others.
    #[arg(long, required_unless_present = "after_failover", requires = "sold")]
    after_restore: bool,
    /// Nothing was lost: a synchronous standby was promoted, or the cluster was upgraded or moved.
    #[arg(long, conflicts_with_all = ["after_restore", "sold"])]
    after_failover: bool,
    /// CSV file with a header (code_id, voucher_id, product_id, denomination, code, pin), NDJSON file with the same fields, or
    /// output of `GET /events`; - reads standard input. Can be repeated.
    #[arg(long, value_name = "FILE")]
    sold: Vec<PathBuf>,
    /// Reason, written to the audit trail.
    #[arg(long)]
    reason: String,
}

pub(super) async fn quarantine(
    request: &QuarantineRequest,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    let response = admin
        .call(Method::POST, "/stock/quarantine", Some(request))
        .await?;
    admin.show(response, |_| {
        Ok(
            "all available stock is quarantined; `vouchsafe stock levels` shows how much it is, and `vouchsafe stock release` ends it"
                .to_owned(),
        )
    })
}

pub(super) async fn release(args: ReleaseArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let ReleaseArgs {
        after_restore,
        sold,
        reason,
        ..
    } = args;
    let mut totals = ComparisonReport::default();
    let mut except = BTreeSet::new();
    let files = sold.iter().map(|file| read_sold(file));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    // A voucher of a feed is identified if another file names its code.
    let lines = files.iter().flatten().filter(|line| line.is_identified());
    let identified: BTreeSet<VoucherId> = lines.filter_map(|line| line.voucher.voucher_id).collect();
    for (file, mut vouchers) in sold.iter().zip(files) {
        vouchers.retain(|line| {
            let is_named = line.voucher.voucher_id.is_some_and(|id| identified.contains(&id));
            line.is_identified() || !is_named
        });
        // The ids begin with the time of the sale: the service searches what was sold between the first and the last of a part.
        vouchers.sort_by_key(|line| (line.is_identified(), line.voucher.voucher_id));
        for (parts, part) in vouchers.chunks(VOUCHERS_PER_REQUEST).enumerate() {
            if parts > 0 {
                let compared = parts * VOUCHERS_PER_REQUEST;
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
                "sold vouchers: {known} known here, {withdrawn} taken out of sale, {kept} not free here, {absent} not in this \
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
        let response = admin
            .call(Method::POST, "/stock/quarantine/release", Some(&*request))
            .await?;
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
    let vouchers: Vec<&NamedVoucher> = part.iter().map(|line| &line.voucher).collect();
    let request = json!({ "vouchers": vouchers, "reason": reason });
    let response = admin
        .call(Method::POST, "/stock/quarantine/sold", Some(&request))
        .await?;
    serde_json::from_str(&response).context("unexpected response format")
}

/// A sold voucher of a file.
#[derive(Debug)]
struct SoldLine {
    voucher: NamedVoucher,
    /// Product and face value, if the line names them.
    sku: Option<(String, String)>,
}

impl SoldLine {
    /// Whether it names the code, and not only the id that partners know.
    const fn is_identified(&self) -> bool {
        self.voucher.code.is_some() || self.voucher.code_id.is_some()
    }
}

fn read_sold(file: &Path) -> anyhow::Result<Vec<SoldLine>> {
    let mut text = String::new();
    UploadSource::open(file)?
        .reader
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = if text.trim_start().starts_with(['{', '[']) {
        parse_json(&text)
    } else {
        parse_csv(&text)
    };
    parsed.with_context(|| format!("cannot read {}", file.display()))
}

/// One object per voucher, event or page of events.
fn parse_json(text: &str) -> anyhow::Result<Vec<SoldLine>> {
    let mut lines = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        collect_json(value.context("invalid JSON")?, &mut lines)?;
    }
    Ok(lines)
}

fn collect_json(value: Value, lines: &mut Vec<SoldLine>) -> anyhow::Result<()> {
    let mut object = match value {
        Value::Array(values) => {
            return values
                .into_iter()
                .try_for_each(|value| collect_json(value, lines));
        }
        Value::Object(object) => object,
        _ => bail!("expected objects"),
    };
    let data = object.remove("data");
    match (object.get("event").and_then(Value::as_str), data) {
        // An event of the feed. Only this type names a voucher.
        (Some("voucher.issued"), Some(Value::Object(data))) => lines.push(parse_line(data)?),
        (Some(_), _) => {}
        (None, Some(page)) => collect_json(page, lines)?,
        (None, None) => lines.push(parse_line(object)?),
    }
    Ok(())
}

/// Fields of a sold voucher, in CSV and JSON.
const FIELDS: [&str; 6] = [
    "code_id",
    "voucher_id",
    "product_id",
    "denomination",
    "code",
    "pin",
];

/// Errors name positions: a file without a header begins with a code.
fn parse_csv(text: &str) -> anyhow::Result<Vec<SoldLine>> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let header = lines.next().unwrap_or_default();
    let mut columns = match Columns::<{ FIELDS.len() }, { FIELDS.len() + 1 }>::parse_header(&FIELDS, header) {
        Ok(columns) => columns,
        Err(ColumnError::Line(error)) => return Err(error.into()),
        Err(ColumnError::Repeated(field)) => bail!("the header has {} twice", FIELDS[field]),
        Err(ColumnError::Unknown(position)) => bail!(
            "column {position} of the header is unknown; the first line names some of {}",
            FIELDS.join(", ")
        ),
    };
    let mut sold = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let values = columns.split(line).with_context(|| format!("line {number}"))?;
        let values = FIELDS.iter().zip(values);
        let object =
            values.filter_map(|(field, value)| Some((*field, value.filter(|value| !value.is_empty())?)));
        let object = object.map(|(field, value)| (field.to_owned(), Value::from(value)));
        sold.push(parse_line(object.collect()).with_context(|| format!("line {number}"))?);
    }
    Ok(sold)
}

fn parse_line(object: Map<String, Value>) -> anyhow::Result<SoldLine> {
    let text = |field: &str| match object.get(field) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let code = text("code");
    let voucher = NamedVoucher {
        voucher_id: text("voucher_id")
            .map(|id| id.parse())
            .transpose()
            .context("invalid voucher_id")?,
        code_id: text("code_id")
            .map(|id| id.parse())
            .transpose()
            .context("invalid code_id")?,
        product_id: text("product_id").filter(|_| code.is_some()),
        code,
        pin: text("pin"),
    };
    if voucher.code.is_none() && voucher.code_id.is_none() && voucher.voucher_id.is_none() {
        bail!("expected a code, a code_id or a voucher_id for each voucher");
    }
    Ok(SoldLine {
        voucher,
        sku: text("product_id").zip(text("denomination")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOUCHER: &str = "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

    #[test]
    fn sold_vouchers_are_read_from_csv_lines_and_feed() {
        let csv = parse_csv(&format!("code_id,voucher_id\n7,{VOUCHER}\n8,\n")).unwrap();
        assert_eq!(csv[0].voucher.voucher_id.unwrap().to_string(), VOUCHER);
        assert_eq!(
            csv.iter().map(|line| line.voucher.code_id).collect::<Vec<_>>(),
            [Some(7), Some(8)]
        );
        let codes = parse_json(r#"{"product_id":"p","code":"A-1","pin":"2"}"#).unwrap();
        assert_eq!(codes[0].voucher.code.as_deref(), Some("A-1"));
        let event = format!(
            r#"{{"event":"voucher.issued","data":{{"order_id":"o","voucher_id":"{VOUCHER}","product_id":"p","denomination":"25.00"}}}}"#
        );
        let page =
            format!(r#"{{"data":[{event},{{"event":"order.created","data":{{}}}}],"has_more":false}}"#);
        for text in [page, format!("{event}\n{{\"event\":\"order.created\"}}\n")] {
            let feed = parse_json(&text).unwrap();
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
        ] {
            assert!(parse_csv(text).is_err(), "{text}");
        }
        assert!(parse_json(r#"{"product_id":"p"}"#).is_err());
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
            let error = match text.starts_with('{') {
                true => parse_json(text),
                false => parse_csv(text),
            };
            let error = format!("{:?}", error.unwrap_err());
            assert!(!error.contains("SECRET"), "{error}");
        }
    }
}
