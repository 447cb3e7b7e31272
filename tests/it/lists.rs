//! List endpoints: filters, order, cursors and pagination during writes.

use std::cell::Cell;

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_success, order_body, shared, text_of, unique,
};

/// Returns a field of each entry.
fn field_values(entries: &[Value], name: &str) -> Vec<Value> {
    entries.iter().map(|entry| entry[name].clone()).collect()
}

/// Lists all entries and returns a field of each.
async fn list_field(partner: &mut Partner, path: &str, name: &str) -> Vec<Value> {
    field_values(&partner.list_all(path).await, name)
}

/// Escapes a timestamp for a query string.
fn escape_time(time: &Value) -> String {
    time.as_str().unwrap().replace('+', "%2B")
}

async fn adjust(operator: &mut Operator, partner: &Partner, currency: &str, amount: &str) {
    let path = format!(
        "/admin/v1/partners/{}/wallets/{currency}/adjustments",
        partner.partner_id
    );
    let body = json!({ "amount": amount, "reference": unique("adjustment") });
    operator.send_json(Method::POST, &path, &body).await;
}

/// Creates a partner with seven entries in two wallets and two orders of one product.
async fn add_partner_with_entries(operator: &mut Operator) -> (Partner, Sale, [Value; 2]) {
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let first = expect_success(&partner.order(&sale, 1).await, 201);
    operator.top_up(&partner.partner_id, "EUR", "10").await;
    adjust(operator, &partner, "EUR", "-1").await;
    adjust(operator, &partner, "USD", "-1").await;
    let second = expect_success(&partner.order(&sale, 1).await, 201);
    operator.top_up(&partner.partner_id, "USD", "5").await;
    (partner, sale, [first, second])
}

/// A client that knows only the wallets' address sees all of them; one that pages sees the same.
#[tokio::test]
async fn wallets_are_complete_without_a_limit() {
    const CURRENCIES: &str = "AUD BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR JPY \
        KRW KWD MXN MYR NOK NZD PLN";
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    for currency in CURRENCIES.split(' ') {
        operator.top_up(&partner.partner_id, currency, "1").await;
    }
    let whole = partner.read("/wallets").await;
    let listed: Vec<_> = whole["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wallet| &wallet["currency"])
        .collect();
    assert_eq!(listed, CURRENCIES.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (&whole["has_more"], &whole["next_cursor"]),
        (&json!(false), &Value::Null)
    );
    let paged = partner.list_all("/wallets?limit=10").await;
    assert_eq!(&paged, whole["data"].as_array().unwrap());
}

#[tokio::test]
async fn transactions_filter_by_type_currency_and_order() {
    let mut operator = Operator::of(shared());
    let (mut partner, _, orders) = add_partner_with_entries(&mut operator).await;
    let id = |n: usize| orders[n]["order_id"].as_str().unwrap();
    let all = partner.list_all("/transactions").await;
    let descriptions: Vec<_> = all
        .iter()
        .map(|e| {
            format!(
                "{} {} {}",
                e["type"].as_str().unwrap(),
                e["currency"].as_str().unwrap(),
                e["sequence"]
            )
        })
        .collect();
    let expected = [
        "TOP_UP USD 5",
        "DEBIT USD 4",
        "ADJUSTMENT USD 3",
        "ADJUSTMENT EUR 2",
        "TOP_UP EUR 1",
        "DEBIT USD 2",
        "TOP_UP USD 1",
    ];
    assert_eq!(descriptions, expected);
    for (query, found) in [
        ("type=TOP_UP".to_owned(), &[0, 4, 6][..]),
        ("type=DEBIT".to_owned(), &[1, 5]),
        ("type=ADJUSTMENT&currency=EUR".to_owned(), &[3]),
        ("type=PAYOUT".to_owned(), &[]),
        ("currency=USD".to_owned(), &[0, 1, 2, 5, 6]),
        ("currency=EUR".to_owned(), &[3, 4]),
        ("currency=JPY".to_owned(), &[]),
        (format!("order_id={}", id(0)), &[5]),
        (
            format!("order_id={}&type=DEBIT&currency=USD&from=2020-01-01", id(1)),
            &[1],
        ),
        (format!("order_id={}&type=REFUND", id(1)), &[]),
        (format!("order_id={}&currency=EUR", id(1)), &[]),
        (format!("order_id={}&to=2020-01-01", id(1)), &[]),
    ] {
        let expected: Vec<_> = found.iter().map(|n| all[*n].clone()).collect();
        // With small pages and in one page.
        for limit in [1, 2, 100] {
            let path = format!("/transactions?{query}&limit={limit}");
            assert_eq!(partner.list_all(&path).await, expected, "{path}");
        }
    }
}

#[tokio::test]
async fn transactions_filter_by_time() {
    let mut operator = Operator::of(shared());
    let (mut partner, ..) = add_partner_with_entries(&mut operator).await;
    let all = partner.list_all("/transactions").await;
    let times: Vec<_> = all
        .iter()
        .map(|entry| escape_time(&entry["created_at"]))
        .collect();
    // `from` is inclusive, `to` exclusive.
    for begin in 0..all.len() {
        let from = &times[begin];
        let path = format!("/transactions?from={from}&limit=2");
        assert_eq!(partner.list_all(&path).await, all[..=begin], "{path}");
        for end in 0..=begin {
            let path = format!("/transactions?from={from}&to={}", times[end]);
            assert_eq!(partner.list_all(&path).await, all[end + 1..=begin], "{path}");
        }
    }
    for (query, found) in [
        ("from=2020-01-01", all.len()),
        ("from=2020-01-01T00:00:00Z&currency=EUR", 2),
        ("to=2999-12-31", all.len()),
        ("to=2020-01-01", 0),
        ("from=2020-01-01&to=2020-01-02", 0),
        ("from=0000-01-01&to=9999-12-31", all.len()),
    ] {
        assert_eq!(
            partner.list_all(&format!("/transactions?{query}")).await.len(),
            found,
            "{query}"
        );
    }
}

#[tokio::test]
async fn orders_filter_by_status_reference_and_time() {
    let mut operator = Operator::of(shared());
    let (stocked, bought) = (
        operator.add_stocked_product(3).await,
        operator.add_product("vendor", 0).await,
    );
    let mut partner = operator.add_partner("1000").await;
    let (reference, other) = (unique("po"), unique("po"));
    let mut placed = Vec::new();
    for (sale, reference) in [
        (&stocked, Some(&reference)),
        (&bought, Some(&reference)),
        (&stocked, Some(&other)),
        (&bought, None),
        (&stocked, None),
    ] {
        let mut body = order_body(sale, 1);
        body["reference"] = json!(reference);
        let response = partner.send(&unique("key"), &body).await;
        assert!(response.status.is_success(), "{response:?}");
        placed.insert(0, serde_json::from_slice::<Value>(&response.body).unwrap());
    }
    let ids = field_values(&placed, "order_id");
    let at = |n: usize| escape_time(&placed[n]["created_at"]);
    for (query, found) in [
        (String::new(), &[0, 1, 2, 3, 4][..]),
        ("status=DELIVERED".to_owned(), &[0, 2, 4]),
        ("status=PENDING".to_owned(), &[1, 3]),
        ("status=REFUNDED".to_owned(), &[]),
        (format!("reference={reference}"), &[3, 4]),
        (format!("reference={reference}&status=PENDING"), &[3]),
        (format!("reference={other}"), &[2]),
        ("reference=no-such-reference".to_owned(), &[]),
        ("reference=".to_owned(), &[]),
        (format!("from={}", at(2)), &[0, 1, 2]),
        (format!("to={}", at(2)), &[3, 4]),
        (format!("from={}&to={}", at(3), at(1)), &[2, 3]),
        (format!("from={}&to={}", at(3), at(3)), &[]),
        (
            format!("from={}&status=PENDING&reference={reference}", at(4)),
            &[3],
        ),
        ("from=2020-01-01&to=2999-01-01".to_owned(), &[0, 1, 2, 3, 4]),
        ("to=2020-01-01".to_owned(), &[]),
    ] {
        let expected: Vec<_> = found.iter().map(|n| ids[*n].clone()).collect();
        for limit in [1, 2, 100] {
            let path = format!("/orders?{query}&limit={limit}");
            assert_eq!(
                list_field(&mut partner, &path, "order_id").await,
                expected,
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn listed_order_equals_single_order() {
    let mut operator = Operator::of(shared());
    let sales = [
        operator.add_stocked_product(3).await,
        operator.add_product("vendor", 0).await,
    ];
    let mut partner = operator.add_partner("1000").await;
    for sale in &sales {
        let mut body = order_body(sale, 3);
        body["metadata"] = json!({ "shop": 3 });
        assert!(partner.send(&unique("key"), &body).await.status.is_success());
    }
    let list = partner.get("/orders").await;
    let mut expected = Vec::new();
    for order in expect_success(&list, 200)["data"].as_array().unwrap() {
        let path = format!("/orders/{}", order["order_id"].as_str().unwrap());
        expected.push(text_of(&partner.get(&path).await).to_owned());
    }
    assert_eq!(expected.len(), 2);
    let expected = format!(
        r#"{{"data":[{}],"has_more":false,"next_cursor":null}}"#,
        expected.join(",")
    );
    assert_eq!(text_of(&list), expected);
    assert!(
        expected.contains("voucher_id") && !expected.contains("credentials"),
        "{expected}"
    );
}

#[tokio::test]
async fn invalid_filter_is_named() {
    let mut partner = Operator::of(shared()).add_partner("0").await;
    for (path, field) in [
        ("/transactions?from=yesterday", "from"),
        ("/transactions?to=2026-13-01", "to"),
        ("/transactions?from=2999-01-01&to=2020-01-01", "to"),
        ("/transactions?from=2026-11-20T12:00:00+01:00", "from"),
        ("/transactions?order_id=ord_1", "order_id"),
        ("/transactions?order_id=", "order_id"),
        ("/transactions?type=debit", "type"),
        ("/transactions?currency=XXX", "currency"),
        ("/transactions?currency=usdollar", "currency"),
        ("/transactions?limit=0", "limit"),
        ("/transactions?limit=101", "limit"),
        ("/transactions?status=PENDING", "status"),
        ("/transactions?type=DEBIT&type=DEBIT", "type"),
        ("/orders?status=pending", "status"),
        ("/orders?status=", "status"),
        ("/orders?from=1795176000", "from"),
        ("/orders?to=", "to"),
        ("/orders?reference=a%00b", "reference"),
        (
            "/orders?order_id=ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
            "order_id",
        ),
        ("/orders?type=DEBIT", "type"),
    ] {
        let error = expect_error(&partner.get(path).await, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{path}: {error}");
    }
}

#[tokio::test]
async fn cursor_with_other_list_or_filter_is_rejected() {
    let mut operator = Operator::of(shared());
    let (mut partner, sale, _) = add_partner_with_entries(&mut operator).await;
    let cursor = async |partner: &mut Partner, path: &str| {
        partner.read(path).await["next_cursor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let orders = cursor(&mut partner, "/orders?limit=1").await;
    let entries = cursor(&mut partner, "/transactions?limit=1").await;
    let debits = cursor(&mut partner, "/transactions?limit=1&type=DEBIT").await;
    for path in [
        format!("/orders?cursor={entries}"),
        format!("/orders?cursor={orders}&status=DELIVERED"),
        format!("/transactions?cursor={orders}"),
        format!("/transactions?cursor={debits}"),
        format!("/transactions?cursor={entries}&type=DEBIT"),
        format!("/transactions?cursor={debits}&type=TOP_UP"),
        format!("/transactions?cursor={debits}&type=DEBIT&currency=USD"),
        format!("/transactions?cursor={}", &entries[1..]),
        format!("/transactions?cursor={entries}AAAA"),
        "/transactions?cursor=".to_owned(),
        "/orders?cursor=no%20cursor".to_owned(),
    ] {
        expect_error(&partner.get(&path).await, 400, "INVALID_CURSOR");
    }
    // The limit may change between pages.
    for path in [
        format!("/transactions?cursor={debits}&type=DEBIT&limit=100"),
        format!("/orders?cursor={orders}"),
    ] {
        assert_eq!(
            partner.read(&path).await["data"].as_array().unwrap().len(),
            1,
            "{path}"
        );
    }
    // A cursor encodes a position, not the partner.
    let mut other = operator.add_partner("1000").await;
    assert!(other.read(&format!("/orders?cursor={orders}")).await["data"] == json!([]));
    operator.restock(&sale, 1, "").await;
    expect_success(&other.order(&sale, 1).await, 201);
    let own = list_field(&mut other, "/orders", "order_id").await;
    let shown = list_field(&mut other, &format!("/orders?cursor={orders}"), "order_id").await;
    assert!(shown.iter().all(|id| own.contains(id)));
}

#[tokio::test]
async fn lists_contain_only_own_entries() {
    let mut operator = Operator::of(shared());
    let (_, _, [order, _]) = add_partner_with_entries(&mut operator).await;
    let mut other = operator.add_partner("0").await;
    let order_id = order["order_id"].as_str().unwrap();
    for path in [
        "/orders".to_owned(),
        "/transactions".to_owned(),
        format!("/transactions?order_id={order_id}"),
        "/transactions?order_id=ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f".to_owned(),
    ] {
        assert_eq!(other.read(&path).await["data"], json!([]), "{path}");
    }
}

#[tokio::test]
async fn pagination_during_writes_lists_older_entries_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(300).await;
    let mut partner = operator.add_partner("10000").await;
    for _ in 0..20 {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    for (list, id) in [("/orders", "order_id"), ("/transactions", "transaction_id")] {
        let older = list_field(&mut partner, list, id).await;
        let (finished, placed) = (Cell::new(false), Cell::new(0));
        let mut buyer = partner.reconnect();
        let ordering = async {
            while !finished.get() {
                expect_success(&buyer.order(&sale, 1).await, 201);
                placed.set(placed.get() + 1);
            }
        };
        let paginating = async {
            let listed = list_field(&mut partner, &format!("{list}?limit=1"), id).await;
            finished.set(true);
            listed
        };
        let (listed, ()) = tokio::join!(paginating, ordering);
        assert!(placed.get() > 0, "no order was placed during the pagination");
        let newer = listed.len() - older.len();
        assert_eq!(listed[newer..], older, "{list}");
        assert!(listed[..newer].iter().all(|new| !older.contains(new)), "{list}");
    }
}
