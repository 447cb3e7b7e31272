//! Requests that forms make, and what a refused form shows.

use super::*;
use crate::page::{Action, Input, REASON, target};
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
        Input::line("currency", "Currency"),
        Input::line("amount", "Amount"),
        Input::new("limits.orders", "Orders", InputKind::Limit).current(),
        Input::new("limits.auth", "Auth", InputKind::Limit).current(),
        Input::new("days", "Days", InputKind::Number).optional(),
        Input::new("note", "Note", InputKind::Paragraph).optional(),
        Input::new("allowlist", "Allowlist", InputKind::Lines),
        REASON,
    ]);
    let params = vec![("partner_id", "ptn_1".to_owned())];
    let form = submission(&[
        ("currency", " USD "),
        ("amount", "10.00"),
        ("limits.orders", "5/60"),
        ("limits.auth", ""),
        ("days", "30"),
        ("note", ""),
        ("allowlist", "10.0.0.0/8\r\n::1/128"),
    ]);
    let request = request(&ACTION, &params, &form);
    assert_eq!(request.target, "/partners/ptn_1/wallets/USD/top-ups");
    assert_eq!(
        json_of(request),
        r#"{"amount":"10.00","limits":{"orders":{"quota":5,"window_s":60},"auth":null},"days":30,"allowlist":["10.0.0.0/8","::1/128"],"reason":""}"#
    );
}

fn json_of(request: ApiRequest) -> String {
    match request.body {
        Some(ApiBody::Json(text)) => text,
        _ => String::new(),
    }
}

const CHANGE: Action = Action::new("x", "X", CHANGE_PARTNER).inputs(&[
    Input::line("name", "Name").prefilled(),
    Input::new("allowlist", "Allowlist", InputKind::Lines).prefilled(),
    Input::new("suspended", "Suspended", InputKind::Flag)
        .optional()
        .prefilled(),
    Input::line("reason", "Reason"),
]);

#[test]
fn change_sends_only_what_the_operator_changed() {
    let params = vec![("partner_id", "ptn_1".to_owned())];
    let unchanged = [
        ("before:name", "Ltd"),
        ("name", "Ltd"),
        ("before:allowlist", "10.0.0.0/8\n::1/128"),
        ("allowlist", "10.0.0.0/8\r\n::1/128"),
        ("before:suspended", "on"),
        ("suspended", "on"),
        ("reason", "x"),
    ];
    let sent = |values: &[(&str, &str)]| json_of(request(&CHANGE, &params, &submission(values)));
    assert_eq!(sent(&unchanged), r#"{"reason":"x"}"#);
    let mut changed = unchanged.to_vec();
    changed[1].1 = "Plc";
    changed.remove(5);
    assert_eq!(sent(&changed), r#"{"name":"Plc","suspended":false,"reason":"x"}"#);
    let by_program = [("name", "Ltd"), ("allowlist", ""), ("reason", "x")];
    assert_eq!(
        sent(&by_program),
        r#"{"name":"Ltd","allowlist":[],"suspended":false,"reason":"x"}"#
    );
}

#[test]
fn conflict_is_a_field_that_somebody_else_has_changed_meanwhile() {
    let form = |name| {
        submission(&[
            ("before:name", "Ltd"),
            ("name", name),
            ("before:allowlist", ""),
            ("allowlist", ""),
        ])
    };
    let now = |name: &str| Json::parse(format!(r#"{{"name":"{name}","allowlist":["::1/128"]}}"#).as_bytes());
    assert_eq!(conflicts(&CHANGE, &form("Plc"), &now("Ltd")), []);
    assert_eq!(conflicts(&CHANGE, &form("Plc"), &now("Plc")), []);
    assert_eq!(
        conflicts(&CHANGE, &form("Plc"), &now("Inc")),
        [("Name", "Inc".to_owned())]
    );
    let whole = Action {
        api: target(PUT_PRODUCT),
        ..CHANGE
    };
    assert_eq!(
        conflicts(&whole, &form("Plc"), &now("Ltd")),
        [("Allowlist", "::1/128".to_owned())],
        "a change of the whole object would remove it"
    );
}

#[test]
fn secret_is_not_shown_again() {
    const ACTION: Action = Action::new("put", "Put", FULFIL_ORDER).inputs(&[
        Input::line("name", "Name"),
        Input::new("codes", "Codes", InputKind::Rows),
    ]);
    let submission = submission(&[
        ("order_id", "b-1"),
        ("name", "typed"),
        ("codes", "code\nSECRET-1"),
    ]);
    let refusal = Refusal {
        status: 422,
        code: String::new(),
        message: String::new(),
        details: vec![("codes[0]".to_owned(), "is wrong".to_owned())],
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
