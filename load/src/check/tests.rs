//! Does each rule fire, and on nothing else? Stories of a few operations, each broken in one place.

use super::history_builder::Completion::{Codes, Nothing, Order, Pending, Refused, Unknown};
use super::history_builder::history;
use super::{HistorySummary, Violation};
use crate::history::Event;

#[test]
fn a_story_without_a_lie_is_clean() {
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
fn a_replay_with_other_bytes_is_seen() {
    let lie = |event: &mut Event| event.body_hash = Some("other".into());
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(lie)
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
fn a_replay_with_another_status_is_seen() {
    let lie = |event: &mut Event| event.status = Some(200);
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(lie)
        .expect_violation();
    assert!(
        matches!(violation, Violation::ResponsesDiffer { .. }),
        "{violation}"
    );
}

#[test]
fn a_kept_refusal_that_turns_into_an_order_is_seen() {
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
fn an_order_that_its_key_no_longer_knows_is_seen() {
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
fn another_body_under_the_key_may_be_refused_but_not_executed() {
    let other = |event: &mut Event| event.req_hash = Some("other".into());
    let refused = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Refused(422, "IDEMPOTENCY_KEY_REUSED"))
        .alter_last_event(other)
        .get("o1", Order("o1", &["v1"]));
    assert!(refused.check().is_ok());
    let executed = history()
        .order("k", Order("o1", &["v1"]))
        .order("k", Order("o2", &["v2"]))
        .alter_last_event(other);
    assert!(matches!(executed.expect_violation(), Violation::ResponsesDiffer { .. }));
}

#[test]
fn an_outcome_that_stays_unknown_is_seen() {
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
    assert!(matches!(postponed.expect_violation(), Violation::Unsettled { .. }));
    let before = history()
        .order("k", Refused(404, "PRODUCT_NOT_FOUND"))
        .order("k", Unknown);
    assert!(matches!(
        before.expect_violation(),
        Violation::Unsettled { op_id: 1, .. }
    ));
}

#[test]
fn one_order_under_two_keys_is_seen() {
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
fn a_lost_order_is_seen() {
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
fn an_order_that_nobody_found_again_is_seen() {
    let story = || history().order("k", Order("o1", &["v1"]));
    assert!(matches!(story().expect_violation(), Violation::NotReadBack { .. }));
    let postponed = story().get("o1", Refused(429, "RATE_LIMIT_EXCEEDED"));
    assert!(matches!(postponed.expect_violation(), Violation::NotReadBack { .. }));
    let by_another = story()
        .get("o1", Refused(404, "ORDER_NOT_FOUND"))
        .alter_last_event(|event| event.partner = "x".into());
    assert!(
        matches!(by_another.expect_violation(), Violation::OrderLost { .. }),
        "the invocation says whose read it is"
    );
}

#[test]
fn each_changed_field_is_seen() {
    type Lie = fn(&mut Event);
    let lies: [(&str, Lie); 4] = [
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
    for (name, lie) in lies {
        let read = if name == "order_id" {
            Order("o1", &[])
        } else {
            Order("o1", &["v1"])
        };
        let violation = history()
            .order("k", Order("o1", &["v1"]))
            .get("o1", read)
            .alter_last_event(lie)
            .expect_violation();
        assert!(
            matches!(violation, Violation::OrderChanged { field, .. } if field == name),
            "{violation}"
        );
    }
}

#[test]
fn a_delivered_order_gains_no_voucher() {
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
fn a_voucher_sold_twice_is_seen() {
    for second in [&["v2", "v1"], &["v2", "v2"]] {
        let violation = history()
            .order("k1", Order("o1", &["v1"]))
            .order("k2", Order("o2", second))
            .expect_violation();
        assert!(matches!(violation, Violation::DuplicateVoucher { .. }), "{violation}");
    }
}

#[test]
fn a_code_sold_twice_is_seen() {
    let violation = history()
        .order("k", Order("o1", &["v1", "v2"]))
        .codes("o1", Codes("o1", &[("v1", "c"), ("v2", "c")]))
        .expect_violation();
    assert!(matches!(violation, Violation::DuplicateCode { .. }), "{violation}");
}

#[test]
fn a_code_that_changes_is_seen() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .codes("o1", Codes("o1", &[("v1", "c")]))
        .codes("o1", Codes("o1", &[("v1", "d")]))
        .expect_violation();
    assert!(matches!(violation, Violation::CodeChanged { .. }), "{violation}");
}

#[test]
fn codes_of_other_vouchers_are_seen() {
    for codes in [
        Codes("o1", &[("v9", "c")]),
        Codes("o1", &[]),
        Codes("o2", &[("v9", "c")]),
    ] {
        let violation = history()
            .order("k", Order("o1", &["v1"]))
            .codes("o1", codes)
            .expect_violation();
        assert!(
            matches!(violation, Violation::ForeignCodes { .. }),
            "{violation}"
        );
    }
}

#[test]
fn an_answer_without_facts_is_seen() {
    let violation = history()
        .order("k", Order("o1", &["v1"]))
        .alter_last_event(|event| event.order = None)
        .expect_violation();
    assert_eq!(violation, Violation::MalformedResponse { op_id: 0 });
}
