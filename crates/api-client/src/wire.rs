//! Typed views of API responses. They borrow from the body and skip unknown fields, so parsing an order on
//! the hot path builds no tree.

use std::borrow::Cow;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Allocation and money of an order response (POST and GET).
#[derive(Debug, Deserialize)]
pub struct OrderView<'a> {
    /// `ord_…`.
    #[serde(borrow)]
    pub order_id: &'a str,
    /// For example `DELIVERED`.
    pub status: &'a str,
    /// The digits of the response.
    #[serde(borrow)]
    pub total_amount: &'a RawValue,
    pub currency: &'a str,
    #[serde(borrow)]
    pub vouchers: Vec<VoucherView<'a>>,
}

/// Id of a listed voucher.
#[derive(Debug, Deserialize)]
pub struct VoucherView<'a> {
    /// `vch_` and 32 hex digits.
    pub voucher_id: &'a str,
}

impl<'a> OrderView<'a> {
    /// Parses an order from a response body.
    ///
    /// # Errors
    /// If the body is not JSON or lacks one of the fields.
    pub fn parse(body: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// The exact total.
    ///
    /// # Errors
    /// If the number is not a plain decimal.
    pub fn total(&self) -> Result<Decimal, rust_decimal::Error> {
        // `FromStr` also accepts exponents and rounds.
        Decimal::from_str_exact(self.total_amount.get())
    }
}

/// The body of an order as if no code had been read: reading codes changes nothing else of a delivered order.
#[must_use]
pub fn without_first_reads(body: &[u8]) -> Cow<'_, [u8]> {
    const READ: &str = r#""first_retrieved_at":""#;
    let Ok(text) = str::from_utf8(body) else {
        return body.into();
    };
    let mut parts = text.split(READ);
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return body.into();
    }
    let mut unread = first.to_owned();
    for part in parts {
        unread.push_str(r#""first_retrieved_at":null"#);
        // The rest begins after the closing quote of the time.
        unread.push_str(part.split_once('"').map_or(part, |(_, rest)| rest));
    }
    unread.into_bytes().into()
}

/// Parses the 16 bytes of a voucher id; `None` unless it is `vch_` and 32 lower-case hex digits.
#[must_use]
pub fn voucher_number(voucher_id: &str) -> Option<u128> {
    parse_hex_id(voucher_id.strip_prefix("vch_")?)
}

/// Parses the 16 bytes of an order id; `None` unless it is `ord_` and 32 lower-case hex digits.
#[must_use]
pub fn order_number(order_id: &str) -> Option<u128> {
    parse_hex_id(order_id.strip_prefix("ord_")?)
}

fn parse_hex_id(digits: &str) -> Option<u128> {
    let well_formed = digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !well_formed {
        return None;
    }
    u128::from_str_radix(digits, 16).ok()
}

#[derive(Debug, Deserialize)]
pub struct WalletView<'a> {
    pub currency: &'a str,
    /// Spendable balance, as the digits of the response.
    #[serde(borrow)]
    pub balance: &'a RawValue,
}

/// Id of a feed event.
#[derive(Debug, Deserialize)]
pub struct EventView {
    /// `evt_…`.
    pub event_id: String,
}

/// The 16 bytes of the id of the order that a webhook body is about; `None` for another body.
#[must_use]
pub fn order_of_webhook(body: &[u8]) -> Option<u128> {
    #[derive(Deserialize)]
    struct WebhookView<'a> {
        #[serde(borrow)]
        data: DataView<'a>,
    }
    #[derive(Deserialize)]
    struct DataView<'a> {
        order_id: &'a str,
    }
    let webhook: WebhookView<'_> = serde_json::from_slice(body).ok()?;
    order_number(webhook.data.order_id)
}

/// Page of a list.
#[derive(Debug, Deserialize)]
pub struct ListView<T> {
    pub data: Vec<T>,
    /// Cursor of the next page; `None` on the last page.
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

/// Parses `error.code` of an error response; `None` if the body has another format.
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
    fn order_view_skips_other_fields() {
        let body = br#"{"order_id":"ord_1","status":"DELIVERED","total_amount":25.00,"currency":"USD",
            "metadata":{"a":[1,{}]},"vouchers":[{"voucher_id":"vch_0","product_id":"p","expiry":null}]}"#;
        let order = OrderView::parse(body).unwrap();
        assert_eq!(
            (order.order_id, order.status, order.currency),
            ("ord_1", "DELIVERED", "USD")
        );
        assert_eq!(order.total_amount.get(), "25.00");
        assert_eq!(order.total().unwrap(), Decimal::from(25));
        assert_eq!(order.vouchers[0].voucher_id, "vch_0");
        assert!(OrderView::parse(br#"{"order_id":"ord_1"}"#).is_err());
    }

    #[test]
    fn order_without_first_reads_equals_the_unread_order() {
        let order = |first: &str, second: &str| {
            format!(
                r#"{{"reference":"\"first_retrieved_at\":\"","vouchers":[{{"first_retrieved_at":{first}}},{{"first_retrieved_at":{second}}}]}}"#
            )
        };
        let unread = order("null", "null");
        let time = r#""2026-11-24T10:00:00.000001Z""#;
        for read in [
            &unread,
            &order(time, "null"),
            &order("null", time),
            &order(time, time),
        ] {
            assert_eq!(without_first_reads(read.as_bytes()), unread.as_bytes(), "{read}");
        }
    }

    #[test]
    fn voucher_number_needs_lower_case_hex() {
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
    fn error_code_is_parsed_from_json_only() {
        assert_eq!(
            error_code(br#"{"error":{"name":"X","code":"X_Y"}}"#).as_deref(),
            Some("X_Y")
        );
        assert_eq!(error_code(b"<html>"), None);
    }
}
