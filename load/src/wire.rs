//! Which parts of an answer does an outside observer read? Typed views that borrow from the body, so that reading
//! an order on the hot path builds no tree; whatever else the answer holds is skipped.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::money::{Amount, AmountError};

/// What an order answer says about allocation and money (POST and GET alike).
#[derive(Debug, Deserialize)]
pub struct OrderView<'a> {
    /// The order's id, `ord_…`.
    #[serde(borrow)]
    pub order_id: &'a str,
    /// The order's status, such as `DELIVERED`.
    pub status: &'a str,
    /// The total as the digits that were sent.
    #[serde(borrow)]
    pub total_amount: &'a RawValue,
    pub currency: &'a str,
    /// The vouchers allocated so far.
    #[serde(borrow)]
    pub vouchers: Vec<VoucherView<'a>>,
}

/// The one part of a listed voucher that identifies it.
#[derive(Debug, Deserialize)]
pub struct VoucherView<'a> {
    /// The voucher's id, `vch_` and 32 hex digits.
    pub voucher_id: &'a str,
}

impl<'a> OrderView<'a> {
    /// Reads an order from an answer's body.
    ///
    /// # Errors
    /// When the body is not JSON or lacks one of the fields.
    pub fn parse(body: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// The total, exact.
    ///
    /// # Errors
    /// When the number is not a plain decimal.
    pub fn total(&self) -> Result<Amount, AmountError> {
        self.total_amount.get().parse()
    }
}

/// The 16 bytes of a voucher id, or `None` if it is not `vch_` and 32 lower-case hex digits.
#[must_use]
pub fn voucher_number(voucher_id: &str) -> Option<u128> {
    number(voucher_id.strip_prefix("vch_")?)
}

/// The 16 bytes of an order id, or `None` if it is not `ord_` and 32 lower-case hex digits.
#[must_use]
pub fn order_number(order_id: &str) -> Option<u128> {
    number(order_id.strip_prefix("ord_")?)
}

fn number(digits: &str) -> Option<u128> {
    let well_formed = digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !well_formed {
        return None;
    }
    u128::from_str_radix(digits, 16).ok()
}

/// The codes of an order, as the separate endpoint hands them out.
#[derive(Deserialize)]
pub struct CodesView {
    pub order_id: String,
    /// One entry a voucher.
    pub data: Vec<VoucherCodes>,
}

/// One voucher with its secret values. No `Debug`: a code must not reach a test's output.
#[derive(Deserialize)]
pub struct VoucherCodes {
    pub voucher_id: String,
    /// Its code, and pin, serial or URL where the product has them.
    pub credentials: Vec<CodePart>,
}

/// One secret value of a voucher.
#[derive(Deserialize)]
pub struct CodePart {
    /// `code`, `pin`, `serial` or `url`.
    #[serde(rename = "type")]
    pub kind: String,
    pub value: String,
}

/// What one wallet holds.
#[derive(Debug, Deserialize)]
pub struct WalletView<'a> {
    pub currency: &'a str,
    /// What can be spent now, as the digits that were sent.
    #[serde(borrow)]
    pub balance: &'a RawValue,
}

/// What names an event of the feed.
#[derive(Debug, Deserialize)]
pub struct EventView {
    /// The event's id, `evt_…`.
    pub event_id: String,
}

/// A list answer's items.
#[derive(Debug, Deserialize)]
pub struct ListView<T> {
    /// The items of this page.
    pub data: Vec<T>,
    /// Where the next page begins; the last has none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ErrorView {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: String,
}

/// The `error.code` of an error answer, or `None` if the body is not one.
#[must_use]
pub fn error_code(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<ErrorView>(body)
        .ok()
        .map(|view| view.error.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_and_its_other_fields_are_skipped() {
        let body = br#"{"order_id":"ord_1","status":"DELIVERED","total_amount":25.00,"currency":"USD",
            "metadata":{"a":[1,{}]},"vouchers":[{"voucher_id":"vch_0","product_id":"p","expiry":null}]}"#;
        let order = OrderView::parse(body).unwrap();
        assert_eq!(
            (order.order_id, order.status, order.currency),
            ("ord_1", "DELIVERED", "USD")
        );
        assert_eq!(order.total_amount.get(), "25.00");
        assert_eq!(order.total().unwrap(), "25".parse().unwrap());
        assert_eq!(order.vouchers[0].voucher_id, "vch_0");
        assert!(OrderView::parse(br#"{"order_id":"ord_1"}"#).is_err());
    }

    #[test]
    fn voucher_ids_are_sixteen_bytes_of_lower_case_hex() {
        assert_eq!(voucher_number("vch_000000000000000000000000000000ff"), Some(255));
        for wrong in [
            "ord_000000000000000000000000000000ff",
            "vch_ff",
            "vch_000000000000000000000000000000FF",
        ] {
            assert_eq!(voucher_number(wrong), None);
        }
    }

    #[test]
    fn an_error_code_is_found_and_a_page_is_not_one() {
        assert_eq!(
            error_code(br#"{"error":{"name":"X","code":"X_Y"}}"#).as_deref(),
            Some("X_Y")
        );
        assert_eq!(error_code(b"<html>"), None);
    }
}
