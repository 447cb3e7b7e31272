//! Which voucher of a shelf is sold, and which never?

use serde_json::{Value, json};
use time::OffsetDateTime;
use vouchsafe_load::partner::unix_seconds;

use crate::support::{Operator, accepted, refused, shared};

#[tokio::test]
async fn what_expires_first_is_sold_first_over_several_imports() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(0).await;
    for (vouchers, expiry) in [(2, ""), (2, "2099-01-01"), (2, "2090-01-01")] {
        operator.restock(&sale, vouchers, expiry).await;
    }
    let mut partner = operator.partner("1000").await;
    assert_eq!(
        expiries(&accepted(&partner.order(&sale, 1).await, 201)),
        ["2090-01-01"]
    );
    // The shelf holds what it claimed; what came later and expires sooner goes before it.
    operator.restock(&sale, 1, "2080-01-01").await;
    assert_eq!(
        expiries(&accepted(&partner.order(&sale, 3).await, 201)),
        ["2080-01-01", "2090-01-01", "2099-01-01"]
    );
    assert_eq!(
        expiries(&accepted(&partner.order(&sale, 3).await, 201)),
        ["2099-01-01", "null", "null"]
    );
}

#[tokio::test]
async fn a_voucher_with_too_few_days_left_is_never_sold() {
    let mut operator = Operator::of(shared());
    let sale = operator.offer(json!({ "min_validity_days": 30 }), "25", 0).await;
    operator.restock(&sale, 1, &in_days(29)).await;
    let mut partner = operator.partner("1000").await;
    refused(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    operator.restock(&sale, 1, &in_days(31)).await;
    assert_eq!(
        expiries(&accepted(&partner.order(&sale, 1).await, 201)),
        [in_days(31)]
    );
    refused(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
}

fn expiries(order: &Value) -> Vec<String> {
    let text = |voucher: &Value| voucher["expiry"].as_str().unwrap_or("null").to_owned();
    order["vouchers"].as_array().unwrap().iter().map(text).collect()
}

/// The date so many days from now.
fn in_days(days: i64) -> String {
    let now = OffsetDateTime::from_unix_timestamp(i64::try_from(unix_seconds()).unwrap()).unwrap();
    (now.date() + time::Duration::days(days)).to_string()
}
