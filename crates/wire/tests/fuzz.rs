//! Fuzz targets of this crate: bodies, queries, and files of imports.

#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use time::macros::{date, datetime};
use vouchsafe_domain::catalogue::{MAX_LINES, MAX_VOUCHERS};
use vouchsafe_domain::ledger::transaction::TransactionFilter;
use vouchsafe_domain::order::filter::OrderFilter;
use vouchsafe_domain::payout::PayoutFilter;
use vouchsafe_domain::product::Sku;
use vouchsafe_wire::error_body::InvalidRequest;
use vouchsafe_wire::operator::partners::{NewPartner, PartnerPatch};
use vouchsafe_wire::operator::reconciliation::records::RecordReader;
use vouchsafe_wire::operator::stock::row::{DamagePolicy, RowError, RowPolicy};
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, ListedVoucher, ParsedBlock, VoucherList};
use vouchsafe_wire::operator::table::blocks::{Block, BlockSplitter};
use vouchsafe_wire::operator::table::reader::Format;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::{credentials, orders, payouts, sandbox, webhooks};
use vouchsafe_wire::{filter::ListFilter, json};

const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");

/// Errors are shown to clients and logged.
fn assert_short(error: &InvalidRequest) {
    let details: usize = error
        .details
        .iter()
        .map(|detail| detail.message.len() + detail.field.len())
        .sum();
    let length = error.message.len() + details;
    assert!(length < 20_000, "an error of {length} bytes");
}

fn check<T>(parsed: Result<T, InvalidRequest>) -> Option<T> {
    parsed.inspect_err(assert_short).ok()
}

#[test]
fn json_bodies() {
    const TOKENS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "-1",
        "1e309",
        "0.1",
        "\"items\"",
        "\"quantity\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"amount\"",
        "\"destination\"",
        "\"from\"",
        "\"9999-12-31\"",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "json_bodies", TOKENS, |input| {
        let now = datetime!(2026-11-20 12:00 UTC);
        if let Some(order) = check(orders::request::parse(input)) {
            assert!((1..=MAX_LINES).contains(&order.lines.len()));
            let quantities = order.lines.iter().map(|line| u64::from(line.quantity));
            assert!((1..=u64::from(MAX_VOUCHERS)).contains(&quantities.sum()));
        }
        check(orders::cancel::parse_reason(input));
        check(payouts::request::parse(input));
        check(webhooks::request::parse(input));
        check(webhooks::request::parse_overlap(input));
        check(webhooks::request::parse_replay(input, now));
        check(credentials::parse_overlap(input));
        check(sandbox::parse_fault(input, now));
        check(sandbox::parse_quantity(input));
        check(json::parse::<NewPartner>(input));
        if let Some(patch) = check(json::parse::<PartnerPatch>(input)) {
            check(patch.check(now));
        }
    });
}

fn read_list<F: ListFilter>(list: &str, query: &str) {
    if let Some((page, _)) = check(PageRequest::parse::<F>(list, query)) {
        assert!(page.limit() >= 1);
    }
}

#[test]
fn list_queries() {
    const TOKENS: &[&str] = &[
        "&",
        "=",
        "%00",
        "%ff",
        "+",
        "limit=",
        "cursor=",
        "from=",
        "to=",
        "status=",
        "currency=USD",
        "order_id=ord_",
        "100",
        "101",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "list_queries", TOKENS, |input| {
        let query = String::from_utf8_lossy(input);
        read_list::<OrderFilter>("/orders", &query);
        read_list::<TransactionFilter>("/transactions", &query);
        read_list::<PayoutFilter>("/payouts", &query);
    });
}

fn blocks(parts: &[&[u8]]) -> Vec<Block> {
    let mut splitter = BlockSplitter::default();
    // Fuzzed bytes may be an archive or UTF-32: such a file has no blocks.
    let is_text = parts.iter().all(|part| splitter.push(part).is_ok()) && splitter.finish().is_ok();
    std::iter::from_fn(|| splitter.take())
        .filter(|_| is_text)
        .collect()
}

/// The lines with a voucher, and those that are rejected with the reasons.
type ImportedLines = (Vec<u64>, Vec<(u64, String)>);

/// An error is that of the header.
fn import(format: Format, parts: &[&[u8]]) -> Result<ImportedLines, String> {
    let policy = RowPolicy {
        today: date!(2026 - 11 - 20),
        default_expiry: None,
        damage: DamagePolicy::Refuse,
    };
    let sku = "card/2500".parse::<Sku>().unwrap();
    let currency = "USD".parse().unwrap();
    let mut list = VoucherList::new(ListPurpose::Store, format, policy.damage);
    let mut parsed = ParsedBlock::default();
    let mut add = |line, listed: Result<ListedVoucher<'_>, RowError>| {
        parsed.add(line, listed, policy, (&sku, currency));
    };
    for block in blocks(parts) {
        list.read(&block, &mut add).map_err(|error| error.to_string())?;
    }
    list.finish(&mut add).map_err(|error| error.to_string())?;
    assert_eq!(parsed.rows.len(), parsed.lines.len());
    let rejected = parsed.rejected.iter();
    let rejected = rejected.map(|(line, reason)| (*line, reason.to_string()));
    Ok((parsed.lines.clone(), rejected.collect()))
}

/// The result does not depend on the parts in which the file arrives, and no reason quotes a line.
fn check_import(format: Format, input: &[u8]) {
    let whole = import(format, &[input]);
    let halves = input.split_at(input.len() / 2);
    assert_eq!(whole, import(format, &[halves.0, halves.1]));
    if let Ok((_, rejected)) = whole {
        for (_, reason) in rejected {
            assert!(!reason.contains("AAA-"), "{reason}");
        }
    }
}

#[test]
fn stock_csv() {
    const TOKENS: &[&str] = &[
        "code",
        "pin",
        "expiry",
        ",",
        "\"",
        "\"\"",
        "\r\n",
        "\n",
        "\r",
        ";",
        "\t",
        "\u{feff}",
        "AAA-",
        "2027-01-31",
        "\0",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "stock_csv", TOKENS, |input| {
        check_import(Format::Csv, input);
    });
}

#[test]
fn stock_ndjson() {
    const TOKENS: &[&str] = &[
        "{",
        "}",
        "\"code\"",
        ":",
        "\"AAA-",
        ",",
        "\n",
        "null",
        "\"expiry\"",
        "\\u0000",
        "[",
        "1",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "stock_ndjson", TOKENS, |input| {
        check_import(Format::Ndjson, input);
    });
}

#[test]
fn vendor_records() {
    const TOKENS: &[&str] = &[
        "reference",
        "sold_at",
        ",",
        "\"",
        "\n",
        "2026-11-20T12:00:00Z",
        "USD",
        "25.00",
        "-",
        "9e9",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "vendor_records", TOKENS, |input| {
        let mut reader = RecordReader::new(date!(2026 - 11 - 20));
        for block in blocks(&[input]) {
            if reader.read(&block).is_err() {
                return;
            }
        }
        // A file without a header has no records.
        let _ = reader.finish();
    });
}
