//! Tests of each history rule: short histories with one violation each.

use super::HistorySummary;
use super::history_builder::Completion::{Codes, Nothing, Order, Pending, Refused, Unknown};
use super::history_builder::{HistoryBuilder, history};
use crate::history::Event;

#[test]
fn consistent_history_is_accepted() {
    let summary = history()
        .order("k1", Order("o1", &["v1"]))
        .order("k1", Order("o1", &["v1"]))
        .order("k2", Unknown)
        .order("k2", Refused(503, "SERVICE_UNAVAILABLE"))
        .order("k2", Refused(409, "IDEMPOTENCY_IN_PROGRESS"))
        .order("k2", Order("o2", &["v2", "v3"]))
        .order("k2", Refused(429, "RATE_LIMIT_EXCEEDED"))
        .order("k3", Refused(404, "PRODUCT_NOT_FOUND"))
        .order("k4", Pending("o4"))
        .order("k5", Refused(409, "INSUFFICIENT_INVENTORY"))
        .get("o1", Order("o1", &["v1"]))
        .get("o2", Unknown)
        .get("o2", Order("o2", &["v2", "v3"]))
        .get("o4", Order("o4", &["v4"]))
        .codes("o2", Codes("o2", &[("v2", "c2"), ("v3", "c3")]))
        .codes("o2", Codes("o2", &[("v2", "c2"), ("v3", "c3")]))
        .check();
    assert_eq!(
        summary,
        Ok(HistorySummary {
            operations: 16,
            keys: 5,
            settled_by_replay: 2,
            acknowledged_orders: 3,
            read_backs: 3,
            vouchers: 4,
            codes: 2,
        })
    );
}

const DIFFERENT_RESPONSES: &str = "operations 0 and 1 received different responses";
const NOT_READ_BACK: &str = "acknowledged in operation 0, was never read back";
const FOREIGN_CODES: &str = "operation 1 returned codes of vouchers that do not belong to order o1";

fn assert_violations(cases: impl IntoIterator<Item = (&'static str, HistoryBuilder, &'static str)>) {
    for (name, history, expected) in cases {
        let violation = history.check().expect_err(name).to_string();
        assert!(violation.contains(expected), "{name}: {violation}");
    }
}

/// One order under the key `k`: operation 0.
fn ordered() -> HistoryBuilder {
    history().order("k", Order("o1", &["v1"]))
}

/// The order and its replay.
fn replayed() -> HistoryBuilder {
    ordered().order("k", Order("o1", &["v1"]))
}

#[test]
fn second_response_under_a_key_is_detected() {
    assert_violations([
        (
            "other bytes",
            replayed().alter_last_event(|event| event.body_hash = Some("other".into())),
            DIFFERENT_RESPONSES,
        ),
        (
            "other status",
            replayed().alter_last_event(|event| event.status = Some(200)),
            DIFFERENT_RESPONSES,
        ),
        (
            "stored refusal for stock becomes an order",
            history()
                .order("k", Refused(409, "INSUFFICIENT_INVENTORY"))
                .order("k", Order("o1", &["v1"])),
            DIFFERENT_RESPONSES,
        ),
        (
            "stored refusal for money becomes an order",
            history()
                .order("k", Refused(402, "INSUFFICIENT_FUNDS"))
                .order("k", Order("o1", &["v1"])),
            DIFFERENT_RESPONSES,
        ),
        (
            "key loses its order",
            ordered().order("k", Refused(404, "PRODUCT_NOT_FOUND")),
            DIFFERENT_RESPONSES,
        ),
        (
            "other body is executed",
            ordered()
                .order("k", Order("o2", &["v2"]))
                .alter_last_event(|event| event.req_hash = Some("other".into())),
            DIFFERENT_RESPONSES,
        ),
        (
            "order under two keys",
            history()
                .order("k1", Order("o1", &["v1"]))
                .order("k2", Order("o1", &["v1"])),
            "order o1 was acknowledged for operations 0 and 1 under different keys",
        ),
    ]);
}

#[test]
fn other_body_under_key_may_be_rejected() {
    let refused = ordered()
        .order("k", Refused(422, "IDEMPOTENCY_KEY_REUSED"))
        .alter_last_event(|event| event.req_hash = Some("other".into()))
        .get("o1", Order("o1", &["v1"]));
    assert!(refused.check().is_ok());
}

#[test]
fn unsettled_outcome_is_detected() {
    let never_definite = "the outcome of operation 0 never became definite";
    assert_violations([
        ("unknown", history().order("k", Unknown), never_definite),
        ("client ended", history().order("k", Nothing), never_definite),
        (
            "server error",
            history().order("k", Refused(500, "INTERNAL_ERROR")),
            never_definite,
        ),
        (
            "postponed",
            history()
                .order("k", Unknown)
                .order("k", Refused(429, "RATE_LIMIT_EXCEEDED")),
            never_definite,
        ),
        (
            "definite refusal before the unknown outcome",
            history()
                .order("k", Refused(404, "PRODUCT_NOT_FOUND"))
                .order("k", Unknown),
            "the outcome of operation 1 never became definite",
        ),
    ]);
}

#[test]
fn lost_or_unread_order_is_detected() {
    let lost = "order o1 was acknowledged in operation 0 but not found in operation 1";
    assert_violations([
        ("lost", ordered().get("o1", Refused(404, "ORDER_NOT_FOUND")), lost),
        (
            "the partner of a read is that of its invocation",
            ordered()
                .get("o1", Refused(404, "ORDER_NOT_FOUND"))
                .alter_last_event(|event| event.partner = "x".into()),
            lost,
        ),
        ("never read", ordered(), NOT_READ_BACK),
        (
            "postponed read",
            ordered().get("o1", Refused(429, "RATE_LIMIT_EXCEEDED")),
            NOT_READ_BACK,
        ),
    ]);
}

#[test]
fn changed_order_is_detected() {
    let read = |change: fn(&mut Event)| ordered().get("o1", Order("o1", &["v1"])).alter_last_event(change);
    assert_violations([
        (
            "id",
            ordered()
                .get("o1", Order("o1", &[]))
                .alter_last_event(|event| event.order_id = Some("o2".into())),
            "order_id differs between operation 0 and its read 1",
        ),
        (
            "total",
            read(|event| event.order.as_mut().unwrap().total_amount = "25.0".into()),
            "total_amount differs",
        ),
        (
            "currency",
            read(|event| event.order.as_mut().unwrap().currency = "EUR".into()),
            "currency differs",
        ),
        (
            "other voucher",
            read(|event| event.order.as_mut().unwrap().vouchers = vec!["v9".into()]),
            "vouchers differs",
        ),
        (
            "additional voucher of a delivered order",
            ordered().get("o1", Order("o1", &["v1", "v2"])),
            "vouchers differs",
        ),
    ]);
}

#[test]
fn voucher_or_code_with_two_owners_is_detected() {
    let two_vouchers = || history().order("k", Order("o1", &["v1", "v2"]));
    assert_violations([
        (
            "voucher in two orders",
            ordered().order("k2", Order("o2", &["v2", "v1"])),
            "voucher v1 is in orders o1 and o2",
        ),
        (
            "voucher twice in one order",
            ordered().order("k2", Order("o2", &["v2", "v2"])),
            "voucher v2 is in orders o2 and o2",
        ),
        (
            "code of two vouchers",
            two_vouchers().codes("o1", Codes("o1", &[("v1", "c"), ("v2", "c")])),
            "vouchers v1 and v2 have the same code",
        ),
        (
            "changed code",
            ordered()
                .codes("o1", Codes("o1", &[("v1", "c")]))
                .codes("o1", Codes("o1", &[("v1", "d")])),
            "voucher v1 returned two different codes",
        ),
        (
            "codes of another voucher",
            ordered().codes("o1", Codes("o1", &[("v9", "c")])),
            FOREIGN_CODES,
        ),
        ("no codes", ordered().codes("o1", Codes("o1", &[])), FOREIGN_CODES),
        (
            "codes of another order",
            ordered().codes("o1", Codes("o2", &[("v9", "c")])),
            FOREIGN_CODES,
        ),
    ]);
}

#[test]
fn response_without_facts_is_detected() {
    let history = ordered().alter_last_event(|event| event.order = None);
    assert_violations([("no facts", history, "operation 0: a 2xx response lacks fields")]);
}
