//! What each kind of event says, to the letter.

use serde_json::{Value, json};
use time::macros::date;

use super::*;
use crate::domain::money::Amount;

fn bundle(status: OrderStatus, steps: Vec<Step>) -> EventBundle {
    let voucher = |digit: u8, expiry: Option<Date>| TaleVoucher {
        voucher_id: format!("vch_{}", char::from(digit).to_string().repeat(32))
            .parse()
            .unwrap(),
        line: u32::from(digit - b'0'),
        expiry: expiry.map(Date::to_julian_day),
    };
    EventBundle {
        order_id: format!("ord_{}", "a".repeat(32)).parse().unwrap(),
        first_sequence: 3,
        steps,
        status,
        total: Amount::from_minor(3_050),
        currency: "USD".parse().unwrap(),
        fulfilled_from: Some(Source::Cache),
        pending_reason: Some(PendingReason::Vendor),
        lines: vec![
            ("amzn-us".parse().unwrap(), Amount::from_minor(2_500)),
            ("never".parse().unwrap(), Amount::from_minor(550)),
        ],
        vouchers: vec![voucher(b'0', Some(date!(2027 - 02 - 28))), voucher(b'1', None)],
    }
}

fn told(bundle: &EventBundle, place: u32) -> Value {
    serde_json::from_str(&serde_json::to_string(&bundle.tell(place).unwrap()).unwrap()).unwrap()
}

fn order(status: &str, sequence: u32, more: &Value) -> Value {
    let mut order = json!({
        "order_id": format!("ord_{}", "a".repeat(32)), "status": status, "total_amount": 30.5, "currency": "USD",
        "fulfilled_from": "cache", "sequence": sequence,
        "vouchers": [
            { "product_id": "amzn-us", "expiry": "2027-02-28" },
            { "product_id": "never", "expiry": null },
        ],
    });
    let more = more.as_object().unwrap().clone();
    order.as_object_mut().unwrap().extend(more);
    order
}

#[test]
fn a_delivery_at_once_tells_of_creation_each_voucher_and_delivery() {
    let bundle = bundle(
        OrderStatus::Delivered,
        vec![
            Step::Created,
            Step::Issued { first: 0, count: 2 },
            Step::Delivered,
        ],
    );
    assert_eq!(told(&bundle, 0), order("DELIVERED", 3, &json!({})));
    let second = json!({
        "order_id": format!("ord_{}", "a".repeat(32)), "voucher_id": format!("vch_{}", "1".repeat(32)),
        "product_id": "never", "denomination": 5.5, "currency": "USD", "expiry": null, "sequence": 5,
    });
    assert_eq!(told(&bundle, 2), second);
    assert_eq!(told(&bundle, 3), order("DELIVERED", 6, &json!({})));
    assert_eq!((bundle.tell(4), bundle.kind(4)), (None, None));
    assert_eq!(bundle.kind(1), Some(EventKind::VoucherIssued));
}

#[test]
fn each_event_tells_the_state_that_it_stands_for_and_what_is_its_own() {
    let partly = Step::PartiallyDelivered {
        delivered: 1,
        pending: 0,
        failed: 2,
    };
    let refunded = Step::Refunded {
        transaction_id: format!("txn_{}", "b".repeat(32)).parse().unwrap(),
        amount: Amount::from_minor(3_050),
    };
    let cancelled = Step::Cancelled {
        by: Actor::Operator,
        reason: None,
    };
    let refund = json!({
        "refund": { "transaction_id": format!("txn_{}", "b".repeat(32)), "amount": 30.5, "currency": "USD" },
    });
    let partly_bundle = bundle(
        OrderStatus::PartiallyDelivered,
        vec![Step::Processing, partly, refunded.clone()],
    );
    let cases = [
        (0, order("PROCESSING", 3, &json!({ "pending_reason": "VENDOR" }))),
        (
            1,
            order(
                "PARTIALLY_DELIVERED",
                4,
                &json!({ "delivered": 1, "pending": 0, "failed": 2 }),
            ),
        ),
        (2, order("PARTIALLY_DELIVERED", 5, &refund)),
    ];
    for (place, expected) in cases {
        assert_eq!(told(&partly_bundle, place), expected);
    }
    let bundle = bundle(OrderStatus::Refunded, vec![cancelled, refunded]);
    let word = json!({ "by": "operator", "reason": null });
    assert_eq!(told(&bundle, 0), order("CANCELLED", 3, &word));
    assert_eq!(told(&bundle, 1), order("REFUNDED", 4, &refund));
}

#[test]
fn an_envelope_is_the_specs_with_exact_money() {
    let at = time::macros::datetime!(2026-01-02 03:04:05 UTC);
    let envelope = Envelope {
        event: EventKind::OrderDelivered,
        event_id: format!("evt_{}", "c".repeat(32)).parse().unwrap(),
        created_at: at,
        data: bundle(OrderStatus::Delivered, vec![Step::Delivered])
            .tell(0)
            .unwrap(),
    };
    let text = serde_json::to_string(&envelope).unwrap();
    let begin = format!(
        r#"{{"event":"order.delivered","event_id":"evt_{}","created_at":"2026-01-02T03:04:05.000000Z","data":{{"#,
        "c".repeat(32)
    );
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.contains(r#""total_amount":30.50,"#), "{text}");
}

#[test]
fn a_row_that_is_not_whole_tells_nothing() {
    let steps = vec![Step::Issued { first: 1, count: 3 }];
    let bundle = bundle(OrderStatus::Delivered, steps);
    assert!(bundle.tell(0).is_some() && bundle.tell(1).is_none());
}
