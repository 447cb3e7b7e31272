//! The exact payload of each kind of event.

use serde_json::{Value, json};
use time::macros::date;

use super::*;
use crate::money::Amount;

fn bundle(status: OrderStatus, steps: Vec<EventStep>) -> EventBundle {
    let voucher = |digit: u8, expiry: Option<Date>| VoucherSnapshot {
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
        fulfilled_from: Some(FulfilmentSource::Cache),
        pending_reason: Some(PendingReason::Vendor),
        reference: Some("PO-1".to_owned()),
        metadata: Some(Arc::from(r#"{"n":1.50}"#)),
        lines: vec![
            ("amzn-us".parse().unwrap(), Amount::from_minor(2_500)),
            ("never".parse().unwrap(), Amount::from_minor(550)),
        ],
        vouchers: vec![voucher(b'0', Some(date!(2027 - 02 - 28))), voucher(b'1', None)],
    }
}

fn payload(bundle: &EventBundle, index: u32) -> Value {
    serde_json::from_str(&serde_json::to_string(&bundle.data(index).unwrap()).unwrap()).unwrap()
}

fn order(status: &str, sequence: u32, more: &Value) -> Value {
    let mut order = json!({
        "order_id": format!("ord_{}", "a".repeat(32)), "status": status, "total_amount": 30.5, "currency": "USD",
        "fulfilled_from": "cache", "reference": "PO-1", "metadata": { "n": 1.5 }, "voucher_count": 2, "sequence": sequence,
        "vouchers": [
            { "voucher_id": format!("vch_{}", "0".repeat(32)), "product_id": "amzn-us", "expiry": "2027-02-28" },
            { "voucher_id": format!("vch_{}", "1".repeat(32)), "product_id": "never", "expiry": null },
        ],
    });
    let more = more.as_object().unwrap().clone();
    order.as_object_mut().unwrap().extend(more);
    order
}

#[test]
fn order_delivered_at_once_emits_created_issued_and_delivered() {
    let bundle = bundle(
        OrderStatus::Delivered,
        vec![
            EventStep::Created,
            EventStep::Issued { first: 0, count: 2 },
            EventStep::Delivered,
        ],
    );
    assert_eq!(payload(&bundle, 0), order("DELIVERED", 3, &json!({})));
    let second = json!({
        "order_id": format!("ord_{}", "a".repeat(32)), "voucher_id": format!("vch_{}", "1".repeat(32)),
        "product_id": "never", "denomination": 5.5, "currency": "USD", "expiry": null, "sequence": 5,
    });
    assert_eq!(payload(&bundle, 2), second);
    assert_eq!(payload(&bundle, 3), order("DELIVERED", 6, &json!({})));
    assert_eq!((bundle.data(4), bundle.kind(4)), (None, None));
    assert_eq!(bundle.kind(1), Some(EventKind::VoucherIssued));
}

#[test]
fn event_payload_has_its_state_and_its_own_fields() {
    let partially_delivered = EventStep::PartiallyDelivered {
        delivered: 1,
        pending: 0,
        failed: 2,
    };
    let refunded = EventStep::Refunded {
        transaction_id: format!("txn_{}", "b".repeat(32)).parse().unwrap(),
        amount: Amount::from_minor(3_050),
    };
    let cancelled = EventStep::Cancelled {
        by: Actor::Operator,
        reason: None,
    };
    let refund = |scope: &str| {
        json!({ "refund": {
            "transaction_id": format!("txn_{}", "b".repeat(32)), "amount": 30.5, "currency": "USD", "scope": scope,
        } })
    };
    let partially_delivered_bundle = bundle(
        OrderStatus::PartiallyDelivered,
        vec![EventStep::Processing, partially_delivered, refunded.clone()],
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
        (2, order("PARTIALLY_DELIVERED", 5, &refund("partial"))),
    ];
    for (index, expected) in cases {
        assert_eq!(payload(&partially_delivered_bundle, index), expected);
    }
    let bundle = bundle(OrderStatus::Refunded, vec![cancelled, refunded]);
    let cancellation = json!({ "by": "operator", "reason": null });
    assert_eq!(payload(&bundle, 0), order("CANCELLED", 3, &cancellation));
    assert_eq!(payload(&bundle, 1), order("REFUNDED", 4, &refund("full")));
}

#[test]
fn envelope_matches_the_spec_with_exact_money() {
    let at = time::macros::datetime!(2026-01-02 03:04:05 UTC);
    let envelope = Envelope {
        event: EventKind::OrderDelivered,
        event_id: format!("evt_{}", "c".repeat(32)).parse().unwrap(),
        created_at: at,
        data: bundle(OrderStatus::Delivered, vec![EventStep::Delivered])
            .data(0)
            .unwrap(),
    };
    let text = serde_json::to_string(&envelope).unwrap();
    let expected_start = format!(
        r#"{{"event":"order.delivered","event_id":"evt_{}","created_at":"2026-01-02T03:04:05.000000Z","data":{{"#,
        "c".repeat(32)
    );
    assert!(text.starts_with(&expected_start), "{text}");
    assert!(text.contains(r#""total_amount":30.50,"#), "{text}");
    assert!(text.contains(r#""metadata":{"n":1.50},"#), "{text}");
}

#[test]
fn incomplete_row_has_no_payload() {
    let steps = vec![EventStep::Issued { first: 1, count: 3 }];
    let bundle = bundle(OrderStatus::Delivered, steps);
    assert!(bundle.data(0).is_some() && bundle.data(1).is_none());
}

/// docs/partner/webhooks.md names the size, for body limits of receivers.
#[test]
fn largest_event_is_below_its_documented_size() {
    let cancelled = EventStep::Cancelled {
        by: Actor::Operator,
        // A reason has at most 500 characters, of at most four bytes each.
        reason: Some("\u{1f600}".repeat(500)),
    };
    let mut bundle = bundle(OrderStatus::PartiallyDelivered, vec![cancelled]);
    bundle.lines[0].0 = "x".repeat(64).parse().unwrap();
    bundle.vouchers = vec![bundle.vouchers[0].clone(); 1_000];
    bundle.reference = Some("\u{1f600}".repeat(128));
    // An order's metadata has at most 32 KiB.
    bundle.metadata = Some(format!(r#"{{"a":{}1}}"#, " ".repeat(32 * 1_024 - 7)).into());
    let envelope = Envelope {
        event: EventKind::OrderCancelled,
        event_id: format!("evt_{}", "e".repeat(32)).parse().unwrap(),
        created_at: time::macros::datetime!(2026-11-20 12:00:00.123_456 UTC),
        data: bundle.data(0).unwrap(),
    };
    let text = serde_json::to_string(&envelope).unwrap();
    assert!((80_000..100_000).contains(&text.len()), "{}", text.len());
    assert_eq!(text.matches("vch_").count(), MAX_EVENT_VOUCHERS);
    assert!(text.contains(r#""voucher_count":1000,"#));
}
