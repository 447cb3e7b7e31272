//! Fuzz targets: what a vendor responds. A vendor can be wrong or compromised; its response never panics, and
//! no error quotes it.

use time::macros::{date, datetime};
use uuid::Uuid;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};

use super::records::parse_page;
use super::sale::parse_sale;
use super::status::parse_error_code;

const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");

/// Part of every code of the corpus.
const CANARY: &str = "CNRY";

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"code\"",
    "\"CNRY-",
    "\"status\"",
    "\"pending\"",
    "\"vouchers\"",
    "null",
    "1e309",
    "-0",
    "\\u0000",
    "2026-11-20T12:00:00+14:00",
];

fn request() -> BuyRequest {
    BuyRequest {
        key: PurchaseKey(Uuid::from_u128(7)),
        product_id: "game-us".parse().unwrap(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity: 3,
        requested_at: datetime!(2026-11-20 12:00 UTC),
        expiry_policy: ExpiryPolicy::months_from_issue(12),
    }
}

#[test]
fn vendor_sales() {
    vouchsafe_fuzz::run(DIRECTORY, "vendor_sales", TOKENS, |input| {
        match parse_sale(input, &request(), date!(2026 - 11 - 20)) {
            Ok(result) => assert!(result.vouchers.len() <= 3),
            Err(failure) => assert!(!format!("{failure:?}").contains(CANARY), "{failure:?}"),
        }
    });
}

#[test]
fn vendor_pages() {
    vouchsafe_fuzz::run(DIRECTORY, "vendor_pages", TOKENS, |input| {
        // Whether a page is accepted is up to the tests of the parser.
        drop(parse_page(input, date!(2026 - 11 - 20)));
    });
}

#[test]
fn vendor_errors() {
    vouchsafe_fuzz::run(DIRECTORY, "vendor_errors", TOKENS, |input| {
        let _ = parse_error_code(input);
    });
}
