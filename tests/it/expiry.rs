//! Voucher expiry: allocation by expiry date, minimum validity and the expiry sweep.

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use vouchsafe_api_client::partner::unix_seconds;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, shared,
};

#[tokio::test]
async fn earliest_expiry_across_imports_is_sold_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    for (vouchers, expiry) in [(2, ""), (2, "2099-01-01"), (2, "2090-01-01")] {
        operator.restock(&sale, vouchers, expiry).await;
    }
    let mut partner = operator.add_partner("1000").await;
    assert_eq!(
        expiries(&expect_success(&partner.order(&sale, 1).await, 201)),
        ["2090-01-01"]
    );
    // Stock imported later that expires sooner is sold before the stock claimed earlier.
    operator.restock(&sale, 1, "2080-01-01").await;
    assert_eq!(
        expiries(&expect_success(&partner.order(&sale, 3).await, 201)),
        ["2080-01-01", "2090-01-01", "2099-01-01"]
    );
    assert_eq!(
        expiries(&expect_success(&partner.order(&sale, 3).await, 201)),
        ["2099-01-01", "null", "null"]
    );
}

#[tokio::test]
async fn voucher_below_min_validity_is_not_sold() {
    let mut operator = Operator::of(shared());
    let sale = operator
        .add_product_with(json!({ "min_validity_days": 30 }), "25", 0)
        .await;
    operator.restock(&sale, 1, &date_in_days(29)).await;
    let mut partner = operator.add_partner("1000").await;
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    operator.restock(&sale, 1, &date_in_days(31)).await;
    assert_eq!(
        expiries(&expect_success(&partner.order(&sale, 1).await, 201)),
        [date_in_days(31)]
    );
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
}

/// Sets the expiry of a product's free vouchers to yesterday.
async fn expire_free_vouchers(database: &mut ServiceDatabase, sale: &Sale) {
    let yesterday = "(now() AT TIME ZONE 'UTC')::date - 1";
    let of = format!(
        "(SELECT chunk_id FROM chunks WHERE product_id = '{}')",
        sale.product_id
    );
    database
        .run(format!(
            "UPDATE stock SET expiry = {yesterday}
              WHERE chunk_id IN {of} AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = stock.stock_id);
             UPDATE chunks AS c
                SET first_expiry = (SELECT min(expiry) FROM stock AS s WHERE s.chunk_id = c.chunk_id),
                    last_expiry = (SELECT max(expiry) FROM stock AS s WHERE s.chunk_id = c.chunk_id)
              WHERE product_id = '{}'",
            sale.product_id
        ))
        .await;
}

const COUNT_EXPIRED: &str = "SELECT count(*)
                           FROM allocations AS a
                           JOIN stock AS s ON s.stock_id = a.stock_id
                           JOIN chunks AS c ON c.chunk_id = s.chunk_id
                          WHERE a.withdrawal_reason = 'expired' AND c.product_id = $1";

async fn stock_level(operator: &mut Operator, sale: &Sale) -> Value {
    let path = format!("/admin/v1/stock?product_id={}", sale.product_id);
    let level = &operator.get(&path).await["data"][0];
    json!([
        level["loaded"],
        level["free"],
        level["sold"],
        level["void"],
        level["expired"]
    ])
}

async fn availability(partner: &mut Partner, sale: &Sale) -> Value {
    partner.read(&format!("/products/{}", sale.product_id)).await["availability"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_stock_is_removed_and_sold_vouchers_stay() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(7).await;
    let mut partner = operator.add_partner("1000").await;
    let order = expect_success(&partner.order(&sale, 2).await, 201);
    let mut database = ServiceDatabase::of(&service).await;
    expire_free_vouchers(&mut database, &sale).await;
    assert_eq!(stock_level(&mut operator, &sale).await, json!([7, 0, 2, 0, 5]));
    assert_eq!(availability(&mut partner, &sale).await, "OUT_OF_STOCK");
    // The sweep runs at start and then every minute.
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let (mut operator, mut partner) = (Operator::of(&service), partner.connect_to(&service.base_url()));
    let mut database = ServiceDatabase::of(&service).await;
    let expired = async || (database.count(COUNT_EXPIRED, &sale.product_id).await == 5).then_some(());
    eventually("five vouchers to be expired", WAIT_TIMEOUT, expired).await;
    assert_eq!(stock_level(&mut operator, &sale).await, json!([7, 0, 2, 0, 5]));
    assert_eq!(availability(&mut partner, &sale).await, "OUT_OF_STOCK");
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    expect_success(&partner.get_codes(order["order_id"].as_str().unwrap()).await, 200);
    let audit_log = operator
        .get(&format!(
            "/admin/v1/audit?action=stock.expire&subject={}/2500",
            sale.product_id
        ))
        .await;
    assert_eq!(
        (&audit_log["data"][0]["operator"], &audit_log["data"][0]["after"]),
        (&json!("service"), &json!({ "expired": 5 }))
    );
    // Expired stock cannot be voided again.
    let voided = json!({ "product_id": sale.product_id, "denomination": 25, "reason": "recalled" });
    let voided = operator
        .send_json(Method::POST, "/admin/v1/stock/void", &voided)
        .await;
    assert_eq!(voided["voided"], 0);
    operator.restock(&sale, 1, &date_in_days(0)).await;
    assert_eq!(
        expiries(&expect_success(&partner.order(&sale, 1).await, 201)),
        [date_in_days(0)],
        "a voucher is valid on its last day"
    );
    service.assert_verified();
}

/// Orders two vouchers from the sandbox vendor with this expiry policy; returns status and expiry dates.
async fn buy_two_vouchers(policy: Value) -> Value {
    let mut operator = Operator::of(shared());
    let changes = json!({ "route": "vendor", "vendor": "mock", "expiry_policy": policy });
    let sale = operator.add_product_with(changes, "25", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let order = expect_success(&partner.order(&sale, 2).await, 202);
    let path = format!("/orders/{}", order["order_id"].as_str().unwrap());
    let closed = async || {
        let order = partner.read(&path).await;
        (order["closed"] == json!(true)).then_some(order)
    };
    let order = eventually("the order to be closed", WAIT_TIMEOUT, closed).await;
    json!([order["status"], expiries(&order)])
}

#[tokio::test]
async fn bought_voucher_expires_by_product_policy() {
    let today = OffsetDateTime::from_unix_timestamp(i64::try_from(unix_seconds()).unwrap())
        .unwrap()
        .date();
    let (year, month) = (today.year() + 1, today.month());
    let last = time::util::days_in_month(month, year);
    let in_a_year = time::Date::from_calendar_date(year, month, today.day().min(last)).unwrap();
    let in_a_year = in_a_year.to_string();
    for (policy, expected) in [
        (
            json!({ "type": "FIXED_DATE", "value": "2031-02-28" }),
            json!(["DELIVERED", ["2031-02-28", "2031-02-28"]]),
        ),
        (
            json!({ "type": "MONTHS_FROM_ISSUE", "value": 12 }),
            json!(["DELIVERED", [in_a_year, in_a_year]]),
        ),
        (json!({ "type": "NONE" }), json!(["DELIVERED", ["null", "null"]])),
        // A voucher that is already expired is not delivered but refunded.
        (
            json!({ "type": "FIXED_DATE", "value": "2026-01-31" }),
            json!(["REFUNDED", []]),
        ),
    ] {
        assert_eq!(buy_two_vouchers(policy.clone()).await, expected, "{policy}");
    }
}

fn expiries(order: &Value) -> Vec<String> {
    let text = |voucher: &Value| voucher["expiry"].as_str().unwrap_or("null").to_owned();
    order["vouchers"].as_array().unwrap().iter().map(text).collect()
}

fn date_in_days(days: i64) -> String {
    let now = OffsetDateTime::from_unix_timestamp(i64::try_from(unix_seconds()).unwrap()).unwrap();
    (now.date() + time::Duration::days(days)).to_string()
}
