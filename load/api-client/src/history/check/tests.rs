//! Tests of each history rule: short histories with one violation each.

use super::history_builder::Completion::{Codes, Nothing, Order, Pending, Refused, Unknown};
use super::history_builder::history;
use super::{HistorySummary, Violation};
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

#[test]
fn replay_with_other_bytes_is_detected() {
    let violate = |event: &mut Event| event.body_hash = Some("other".into());
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(violate)
        .expect_violation();
    assert!(
        matches!(
            violation,
            Violation::ResponsesDiffer {
                first: 0,
                second: 1,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn replay_with_other_status_is_detected() {
    let violate = |event: &mut Event| event.status = Some(200);
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(violate)
        .expect_violation();
    assert!(
        matches!(violation, Violation::ResponsesDiffer { .. }),
        "{violation}"
    );
}

#[test]
fn stored_refusal_that_becomes_an_order_is_detected() {
    for (status, code) in [(409, "INSUFFICIENT_INVENTORY"), (402, "INSUFFICIENT_FUNDS")] {
        let violation = history()
            .order("k", Refused(status, code))
            .order("k", Order("o1", &["v1"]))
            .expect_violation();
        assert!(
            matches!(violation, Violation::ResponsesDiffer { .. }),
            "{violation}"
        );
    }
}

#[test]
fn key_that_loses_its_order_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Refused(404, "PRODUCT_NOT_FOUND"))
        .expect_violation();
    assert!(
        matches!(violation, Violation::ResponsesDiffer { .. }),
        "{violation}"
    );
}

#[test]
fn other_body_under_key_may_be_rejected_but_not_executed() {
    let with_other_body = |event: &mut Event| event.req_hash = Some("other".into());
    let refused = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Refused(422, "IDEMPOTENCY_KEY_REUSED"))
        .alter_last_event(with_other_body)
        .get("o1", Order("o1", &["v1"]));
    assert!(refused.check().is_ok());
    let executed = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o2", &["v2"]))
        .alter_last_event(with_other_body);
    assert!(matches!(
        executed.expect_violation(),
        Violation::ResponsesDiffer { .. }
    ));
}

#[test]
fn unsettled_outcome_is_detected() {
    for open in [Unknown, Nothing, Refused(500, "INTERNAL_ERROR")] {
        let violation = history().order("k", open).expect_violation();
        assert!(
            matches!(violation, Violation::Unsettled { op_id: 0, .. }),
            "{violation}"
        );
    }
    let postponed = history()
        .order("k", Unknown)
        .order("k", Refused(429, "RATE_LIMIT_EXCEEDED"));
    assert!(matches!(
        postponed.expect_violation(),
        Violation::Unsettled { .. }
    ));
    let before = history()
        .order("k", Refused(404, "PRODUCT_NOT_FOUND"))
        .order("k", Unknown);
    assert!(matches!(
        before.expect_violation(),
        Violation::Unsettled { op_id: 1, .. }
    ));
}

#[test]
fn order_under_two_keys_is_detected() {
    let violation = history()
        .order("k1", Order("o1", &["v1"]))
        .order("k2", Order("o1", &["v1"]))
        .expect_violation();
    assert!(
        matches!(
            violation,
            Violation::OrderUnderTwoKeys {
                first: 0,
                second: 1,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn lost_order_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .get("o1", Refused(404, "ORDER_NOT_FOUND"))
        .expect_violation();
    assert!(
        matches!(
            violation,
            Violation::OrderLost {
                acknowledged: 0,
                read: 1,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn order_without_read_back_is_detected() {
    let order_only = || history().order("k", Order("o1", &["v1"]));
    assert!(matches!(
        order_only().expect_violation(),
        Violation::NotReadBack { .. }
    ));
    let postponed = order_only().get("o1", Refused(429, "RATE_LIMIT_EXCEEDED"));
    assert!(matches!(
        postponed.expect_violation(),
        Violation::NotReadBack { .. }
    ));
    let by_other_partner = order_only()
        .get("o1", Refused(404, "ORDER_NOT_FOUND"))
        .alter_last_event(|event| event.partner = "x".into());
    assert!(
        matches!(by_other_partner.expect_violation(), Violation::OrderLost { .. }),
        "the partner of a read is that of its invocation"
    );
}

#[test]
fn changed_order_field_is_detected() {
    type Change = fn(&mut Event);
    let changes: [(&str, Change); 4] = [
        ("order_id", |event| event.order_id = Some("o2".into())),
        ("total_amount", |event| {
            event.order.as_mut().unwrap().total_amount = "25.0".into()
        }),
        ("currency", |event| {
            event.order.as_mut().unwrap().currency = "EUR".into()
        }),
        ("vouchers", |event| {
            event.order.as_mut().unwrap().vouchers = vec!["v9".into()]
        }),
    ];
    for (name, violate) in changes {
        let read = if name == "order_id" {
            Order("o1", &[])
        } else {
            Order("o1", &["v1"])
        };
        let violation = history()
            .order("k", Order("o1", &["v1"]))
            .get("o1", read)
            .alter_last_event(violate)
            .expect_violation();
        assert!(
            matches!(violation, Violation::OrderChanged { field, .. } if field == name),
            "{violation}"
        );
    }
}

#[test]
fn delivered_order_with_new_voucher_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .get("o1", Order("o1", &["v1", "v2"]))
        .expect_violation();
    assert!(
        matches!(
            violation,
            Violation::OrderChanged {
                field: "vouchers",
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn duplicate_voucher_is_detected() {
    for second in [&["v2", "v1"], &["v2", "v2"]] {
        let violation = history()
            .order("k1", Order("o1", &["v1"]))
            .order("k2", Order("o2", second))
            .expect_violation();
        assert!(
            matches!(violation, Violation::DuplicateVoucher { .. }),
            "{violation}"
        );
    }
}

#[test]
fn duplicate_code_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1", "v2"]))
        .codes("o1", Codes("o1", &[("v1", "c"), ("v2", "c")]))
        .expect_violation();
    assert!(
        matches!(violation, Violation::DuplicateCode { .. }),
        "{violation}"
    );
}

#[test]
fn changed_code_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .codes("o1", Codes("o1", &[("v1", "c")]))
        .codes("o1", Codes("o1", &[("v1", "d")]))
        .expect_violation();
    assert!(matches!(violation, Violation::CodeChanged { .. }), "{violation}");
}

#[test]
fn codes_of_other_vouchers_are_detected() {
    for codes in [
        Codes("o1", &[("v9", "c")]),
        Codes("o1", &[]),
        Codes("o2", &[("v9", "c")]),
    ] {
        let violation = history()
            .order("k", Order("o1", &["v1"]))
            .codes("o1", codes)
            .expect_violation();
        assert!(matches!(violation, Violation::ForeignCodes { .. }), "{violation}");
    }
}

#[test]
fn response_without_facts_is_detected() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(|event| event.order = None)
        .expect_violation();
    assert_eq!(violation, Violation::MalformedResponse { op_id: 0 });
}
