//! Response assertions. Every error is checked against the full error format.

use serde_json::Value;
use vouchsafe_api_client::ApiResponse;

/// Error messages must not reveal internals.
const INTERNALS: [&str; 11] = [
    ".rs", "panicked", "sqlx", "SELECT", "INSERT", "relation", "postgres", "Postgres", "actix", "serde",
    "/src",
];

pub fn json_of(response: &ApiResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {:?}", response.body))
}

pub fn text_of(response: &ApiResponse) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

/// Asserts the status and returns the body.
pub fn expect_success(response: &ApiResponse, status: u16) -> Value {
    assert_eq!(response.status.as_u16(), status, "{:?}", response.body);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_trace_id(response.header("x-trace-id").unwrap_or_default());
    json_of(response)
}

/// Asserts the error and returns it (spec part 7, contract §7).
pub fn expect_error(response: &ApiResponse, status: u16, code: &str) -> Value {
    let error = expect_stored_error(response, status, code);
    assert_eq!(
        response.header("x-trace-id"),
        error["trace_id"].as_str(),
        "{error}"
    );
    error
}

/// Expects an error that may be replayed: its body then has the trace id of the first request.
pub fn expect_stored_error(response: &ApiResponse, status: u16, code: &str) -> Value {
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(
        (response.status.as_u16(), response.error_code().as_deref()),
        (status, Some(code)),
        "{text}"
    );
    assert_eq!(
        response.header("content-type"),
        Some("application/json"),
        "{text}"
    );
    assert_trace_id(response.header("x-trace-id").unwrap_or_default());
    let body = json_of(response);
    assert_eq!(field_names(&body), ["error"], "{text}");
    let error = &body["error"];
    assert_error_fields(error, code);
    let message = error["message"].as_str().unwrap();
    let shown = INTERNALS.iter().find(|word| message.contains(**word));
    assert!(
        shown.is_none() && !message.is_empty(),
        "{shown:?} appears in: {message}"
    );
    error.clone()
}

/// Codes of errors with details. An item can also be refused as a field that is not valid.
const DETAILED_CODES: [&str; 10] = [
    "VALIDATION_FAILED",
    "MISSING_SCOPE",
    "PRODUCT_UNAVAILABLE",
    "DENOMINATION_NOT_ALLOWED",
    "CURRENCY_MISMATCH",
    "INSUFFICIENT_INVENTORY",
    "PENDING_AMOUNT_LIMIT_REACHED",
    "SPEND_LIMIT_REACHED",
    "PRODUCT_NOT_FOUND",
    "INVALID_SIGNATURE",
];

fn assert_error_fields(error: &Value, code: &str) {
    let details = &error["details"];
    let mut expected = vec!["code", "message", "name", "retryable", "trace_id"];
    // A product or face value that belongs to no item of an order has no details.
    // A signature without a timestamp belongs to no message.
    let may_have_none = [
        "PRODUCT_NOT_FOUND",
        "DENOMINATION_NOT_ALLOWED",
        "INVALID_SIGNATURE",
    ]
    .contains(&code);
    if DETAILED_CODES.contains(&code) && !(may_have_none && details.is_null()) {
        expected.insert(1, "details");
        let fields: &[&str] = match code {
            "INSUFFICIENT_INVENTORY" => &["field", "max_quantity", "message"],
            _ => &["field", "message"],
        };
        let details = details.as_array().unwrap();
        assert!(
            !details.is_empty() && details.iter().all(|detail| field_names(detail) == fields),
            "{error}"
        );
    }
    assert_eq!(field_names(error), expected, "{error}");
    assert_eq!(error["name"], pascal_case(code));
    assert!(error["retryable"].is_boolean(), "{error}");
    assert_trace_id(error["trace_id"].as_str().unwrap());
}

/// 32 lower-case hex digits, not all zero (W3C Trace Context).
fn assert_trace_id(text: &str) {
    let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    assert!(
        text.len() == 32 && hex && text.bytes().any(|b| b != b'0'),
        "trace id {text:?}"
    );
}

fn field_names(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// `INSUFFICIENT_INVENTORY` becomes `InsufficientInventory`.
fn pascal_case(code: &str) -> String {
    code.split('_')
        .map(|word| [&word[..1], &word[1..].to_lowercase()].concat())
        .collect()
}
