//! Requests that forms make, and what a refused form shows.

use super::*;
use crate::page::{Action, Input, target};
use vouchsafe_wire::operator::catalogue::PUT_PRODUCT;
use vouchsafe_wire::operator::orders::FULFIL_ORDER;
use vouchsafe_wire::operator::partners::CHANGE_PARTNER;
use vouchsafe_wire::operator::wallets::TOP_UP;

fn submission(values: &[(&str, &str)]) -> Submission {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Submission {
        values: values.collect(),
    }
}

#[test]
fn form_becomes_the_request_of_the_api() {
    const ACTION: Action = Action::new("x", "X", TOP_UP).inputs(&[
        Input::placeholder("currency", "Currency"),
        Input::field("amount", "Amount"),
        Input::field("reference", "Reference"),
    ]);
    let params = vec![("partner_id", "ptn_1".to_owned())];
    let form = submission(&[("currency", " USD "), ("amount", "10.00")]);
    let request = request(&ACTION, &params, &form);
    assert_eq!(request.target, "/partners/ptn_1/wallets/USD/top-ups");
    assert_eq!(json_of(request), r#"{"amount":"10.00","reference":""}"#);
}

fn json_of(request: ApiRequest) -> String {
    match request.body {
        Some(ApiBody::Json(text)) => text,
        _ => String::new(),
    }
}

const CHANGE: Action = Action::new("x", "X", CHANGE_PARTNER).inputs(&[
    Input::field("cancel_window_s", "Window"),
    Input::field("allowlist", "Allowlist"),
    Input::field("suspended", "Suspended"),
    Input::field("limits.orders", "Orders"),
    Input::field("caps", "Caps"),
]);

/// The body of a submitted change.
fn sent(values: &[(&str, &str)]) -> String {
    let params = vec![("partner_id", "ptn_1".to_owned())];
    json_of(request(&CHANGE, &params, &submission(values)))
}

#[test]
fn change_sends_only_what_the_operator_changed() {
    let unchanged = [
        ("before:cancel_window_s", "60"),
        ("cancel_window_s", "60"),
        ("before:allowlist", "10.0.0.0/8\n::1/128"),
        ("allowlist", "10.0.0.0/8\r\n::1/128"),
        ("before:suspended", "on"),
        ("suspended", "on"),
        ("before:limits.orders", "5/60"),
        ("limits.orders", "5/60"),
        ("before:caps", "null"),
    ];
    assert_eq!(sent(&unchanged), "{}");
    let mut changed = unchanged.to_vec();
    changed[1].1 = "090";
    changed[7].1 = "";
    changed.remove(5);
    assert_eq!(
        sent(&changed),
        r#"{"cancel_window_s":90,"suspended":false,"limits":{"orders":null}}"#
    );
    let by_program = [
        ("cancel_window_s", ""),
        ("allowlist", ""),
        ("limits.orders", "7/60"),
    ];
    assert_eq!(
        sent(&by_program),
        r#"{"cancel_window_s":null,"allowlist":[],"suspended":false,"limits":{"orders":{"quota":7,"window_s":60}},"caps":null}"#
    );
}

#[test]
fn group_is_sent_as_a_whole_and_null_if_it_is_not_set() {
    let object = Json::parse(
        br#"{"pending_orders":50,"spend_per_day":{"EUR":70,"USD":5000.00},"approval_over":{"within_s":600,"orders":30}}"#,
    );
    let fields = fields(&CHANGE);
    let caps = fields.iter().find(|field| field.name == "caps").unwrap();
    let before = text_of(caps, &object);
    let mut form = vec![
        ("before:caps", before.as_str()),
        ("caps", "on"),
        ("caps.pending_orders", "50"),
        ("caps.spend_per_day", "EUR 70\r\nUSD 5000.00"),
        ("caps.approval_over", "on"),
        ("caps.approval_over.within_s", "600"),
        ("caps.approval_over.orders", "30"),
    ];
    let others = [
        ("before:cancel_window_s", ""),
        ("before:allowlist", ""),
        ("before:suspended", ""),
        ("before:limits.orders", ""),
    ];
    form.extend(others);
    assert_eq!(sent(&form), "{}", "{before}");
    form[3].1 = "EUR 71";
    let changed: serde_json::Value = serde_json::from_str(&sent(&form)).unwrap();
    let expected = serde_json::json!({
        "pending_orders": 50,
        "cancellations_per_day": null,
        "pending_amount": {},
        "spend_per_day": {"EUR": "71"},
        "credential_spend_per_day": {},
        "approval_over": {"within_s": 600, "orders": 30, "amount": {}},
    });
    let mut caps = changed["caps"].clone();
    for amounts in ["pending_amount", "credential_spend_per_day"] {
        caps[amounts] = caps
            .get(amounts)
            .cloned()
            .unwrap_or_else(|| serde_json::json!({}));
    }
    caps["approval_over"]["amount"] = serde_json::json!({});
    assert_eq!(caps, expected);
    form.remove(1);
    assert_eq!(sent(&form), r#"{"caps":null}"#);
}

#[test]
fn conflict_is_a_field_that_another_operator_has_changed_meanwhile() {
    let form = |window| {
        submission(&[
            ("before:cancel_window_s", "60"),
            ("cancel_window_s", window),
            ("before:allowlist", ""),
            ("allowlist", ""),
        ])
    };
    let now = |window: u32| {
        Json::parse(format!(r#"{{"cancel_window_s":{window},"allowlist":["::1/128"]}}"#).as_bytes())
    };
    assert_eq!(conflicts(&CHANGE, &form("90"), &now(60)), []);
    assert_eq!(conflicts(&CHANGE, &form("90"), &now(90)), []);
    assert_eq!(
        conflicts(&CHANGE, &form("90"), &now(120)),
        [("Window".to_owned(), "120".to_owned())]
    );
    let whole = Action {
        api: target(PUT_PRODUCT),
        ..CHANGE
    };
    assert_eq!(
        conflicts(&whole, &form("90"), &now(60)),
        [("Allowlist".to_owned(), "::1/128".to_owned())],
        "a change of the whole object would remove it"
    );
}

#[test]
fn secret_is_not_shown_again() {
    const ACTION: Action = Action::new("put", "Put", FULFIL_ORDER).inputs(&[
        Input::field("product_id", "Product"),
        Input::field("vouchers", "Vouchers"),
    ]);
    let submission = submission(&[
        ("order_id", "b-1"),
        ("product_id", "typed"),
        ("vouchers", "code\nSECRET-1"),
    ]);
    let refusal = Refusal {
        status: 422,
        code: String::new(),
        message: String::new(),
        details: vec![("vouchers[0]".to_owned(), "is wrong".to_owned())],
        trace_id: String::new(),
    };
    let failed = FailedForm {
        slug: "put",
        submission: &submission,
        refusal: &refusal,
    };
    let params = Vec::new();
    let context = FormContext {
        path: "/stock",
        query: "",
        params: &params,
        failed: Some(&failed),
        page_id: "p",
    };
    let row = Json::parse(br#"{"order_id":"b-1"}"#);
    let shown = render(&context, &ACTION, &row, "0").into_string();
    assert!(
        shown.contains("typed") && shown.contains("is wrong; enter it again"),
        "{shown}"
    );
    assert!(shown.contains("<details class=\"action\" open>"), "{shown}");
    assert!(!shown.contains("SECRET-1"), "{shown}");
    let other = render(&context, &ACTION, &Json::parse(br#"{"batch":"b-2"}"#), "1").into_string();
    assert!(!other.contains("typed") && !other.contains(" open>"), "{other}");
}
