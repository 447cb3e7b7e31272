//! Code reads that a partner sees: `GET /orders/{order_id}/vouchers/access`, and `first_retrieved_at` of an
//! order's vouchers.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{Operator, Partner, Sale, expect_error, expect_success, id_of, shared, text_of};

/// Places an order of two vouchers and returns its id.
async fn order_two(partner: &mut Partner, sale: &Sale) -> String {
    id_of(&expect_success(&partner.order(sale, 2).await, 201))
}

/// Rotates the partner's credential and returns the partner with the new one.
async fn rotate(partner: &mut Partner) -> Partner {
    let rotated = partner.send_signed(Method::POST, "/credentials/rotate", "").await;
    partner.with_credential(&expect_success(&rotated, 201))
}

#[tokio::test]
async fn code_reads_of_all_credentials_are_listed_newest_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(4).await;
    let mut partner = operator.add_partner("100").await;
    let [order_id, other] = [
        order_two(&mut partner, &sale).await,
        order_two(&mut partner, &sale).await,
    ];
    let path = format!("/orders/{order_id}/vouchers/access");
    assert_eq!(partner.list_all(&path).await, [] as [Value; 0]);
    let mut second = rotate(&mut partner).await;
    let responses = [
        partner.get_codes(&order_id).await,
        second.get_codes(&order_id).await,
        partner.get_codes(&order_id).await,
    ];
    expect_success(&partner.get_codes(&other).await, 200);
    let expected: Vec<_> = [(&partner, 0), (&second, 1), (&partner, 2)]
        .into_iter()
        .rev()
        .map(|(reader, n): (&Partner, usize)| {
            json!({
                "credential_id": reader.credential_id, "address": "127.0.0.1", "vouchers": 2,
                "trace_id": responses[n].header("x-trace-id").unwrap(),
            })
        })
        .collect();
    for page in ["", "?limit=1"] {
        let mut listed = partner.list_all(&format!("{path}{page}")).await;
        let times: Vec<_> = listed
            .iter_mut()
            .map(|read| read.as_object_mut().unwrap().remove("at").unwrap())
            .collect();
        assert!(
            times.is_sorted_by(|newer, older| newer.as_str() > older.as_str()),
            "{times:?}"
        );
        assert_eq!(listed, expected);
    }
}

#[tokio::test]
async fn code_reads_contain_no_code() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("50").await;
    let order_id = order_two(&mut partner, &sale).await;
    let codes = expect_success(&partner.get_codes(&order_id).await, 200);
    let code = codes["data"][0]["credentials"][0]["value"].as_str().unwrap();
    for path in [
        format!("/orders/{order_id}/vouchers/access"),
        format!("/orders/{order_id}"),
    ] {
        assert!(!partner.read(&path).await.to_string().contains(code), "{path}");
    }
}

#[tokio::test]
async fn code_reads_of_another_partner_are_not_found() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("50").await;
    let order_id = order_two(&mut partner, &sale).await;
    expect_success(&partner.get_codes(&order_id).await, 200);
    let mut other = operator.add_partner("0").await;
    for (reader, id) in [(&mut other, order_id.as_str()), (&mut partner, "ord_1")] {
        let response = reader.get(&format!("/orders/{id}/vouchers/access")).await;
        expect_error(&response, 404, "ORDER_NOT_FOUND");
    }
}

#[tokio::test]
async fn first_code_read_is_shown_by_orders_and_lists() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("50").await;
    let placed = partner.order_with_key("first-read", &sale, 2).await;
    let order_id = id_of(&expect_success(&placed, 201));
    expect_success(&partner.get_codes(&order_id).await, 200);
    let reads = partner
        .list_all(&format!("/orders/{order_id}/vouchers/access"))
        .await;
    expect_success(&partner.get_codes(&order_id).await, 200);
    let mut expected = expect_success(&placed, 201);
    for voucher in expected["vouchers"].as_array_mut().unwrap() {
        assert_eq!(voucher["first_retrieved_at"], Value::Null);
        voucher["first_retrieved_at"] = reads[0]["at"].clone();
    }
    assert_eq!(partner.read(&format!("/orders/{order_id}")).await, expected);
    assert_eq!(partner.read("/orders").await["data"][0], expected);
    // A stored response stays as it was sent.
    let replayed = partner.order_with_key("first-read", &sale, 2).await;
    assert_eq!(text_of(&replayed), text_of(&placed));
    let seen = operator.get(&format!("/admin/v1/orders/{order_id}")).await;
    assert_eq!(seen["vouchers"], expected["vouchers"]);
}
