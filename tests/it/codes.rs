//! Code retrieval: the only response that contains codes, and its audit trail.

use serde_json::Value;

use vouchsafe_test_harness::{
    Operator, Partner, Sale, ServiceDatabase, expect_error, expect_success, id_of, shared, text_of, unique,
};

/// Creates a product with two vouchers, one with all fields and one with only a code.
async fn add_two_vouchers(operator: &mut Operator, prefix: &str) -> Sale {
    let sale = operator.add_stocked_product(0).await;
    let csv = format!(
        "code,pin,serial,url,expiry\n{prefix}-A,{prefix}-PIN,{prefix}-SER,https://redeem.test/{prefix},2050-01-31\n{prefix}-B,,,,\n"
    );
    assert_eq!(operator.import_csv(&sale, csv).await["imported"], 2);
    sale
}

async fn order_both(partner: &mut Partner, sale: &Sale) -> (String, Vec<String>) {
    let order = expect_success(&partner.order(sale, 2).await, 201);
    let vouchers = order["vouchers"].as_array().unwrap().iter();
    let ids = vouchers
        .map(|voucher| voucher["voucher_id"].as_str().unwrap().to_owned())
        .collect();
    (id_of(&order), ids)
}

fn uuid_of(id: &str) -> &str {
    id.split_once('_').unwrap().1
}

#[tokio::test]
async fn codes_are_returned_as_imported() {
    let mut operator = Operator::of(shared());
    let prefix = unique("CNRY");
    let sale = add_two_vouchers(&mut operator, &prefix).await;
    let mut partner = operator.add_partner("100").await;
    let (order_id, ids) = order_both(&mut partner, &sale).await;
    let response = partner.get_codes(&order_id).await;
    expect_success(&response, 200);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let voucher = |id: &str, expiry: &str, credentials: &str| {
        let product = &sale.product_id;
        format!(
            r#"{{"voucher_id":"{id}","product_id":"{product}","denomination":25.00,"currency":"USD","expiry":{expiry},"credentials":[{credentials}]}}"#
        )
    };
    let full_code = format!(
        r#"{{"type":"code","value":"{prefix}-A"}},{{"type":"pin","value":"{prefix}-PIN"}},{{"type":"serial","value":"{prefix}-SER"}},{{"type":"url","value":"https://redeem.test/{prefix}"}}"#
    );
    let bare = format!(r#"{{"type":"code","value":"{prefix}-B"}}"#);
    let vouchers = [
        voucher(&ids[0], r#""2050-01-31""#, &full_code),
        voucher(&ids[1], "null", &bare),
    ]
    .join(",");
    assert_eq!(
        text_of(&response),
        format!(r#"{{"order_id":"{order_id}","data":[{vouchers}]}}"#)
    );
}

#[tokio::test]
async fn order_responses_contain_no_code() {
    let mut operator = Operator::of(shared());
    let prefix = unique("CNRY");
    let sale = add_two_vouchers(&mut operator, &prefix).await;
    let mut partner = operator.add_partner("100").await;
    let placed = partner.order(&sale, 2).await;
    let order_id = id_of(&expect_success(&placed, 201));
    expect_success(&partner.get_codes(&order_id).await, 200);
    let mut texts = vec![text_of(&placed).to_owned()];
    for path in [
        &format!("/orders/{order_id}"),
        "/transactions",
        "/wallets",
        &format!("/products/{}", sale.product_id),
    ] {
        texts.push(text_of(&partner.get(path).await).to_owned());
    }
    texts.push(operator.get("/admin/v1/audit?limit=100").await.to_string());
    texts.push(operator.get("/admin/v1/stock").await.to_string());
    let mut database = ServiceDatabase::of(shared()).await;
    texts.extend(
        database
            .texts(
                "SELECT body FROM events WHERE order_id = $1::uuid",
                uuid_of(&order_id),
            )
            .await,
    );
    assert_eq!(texts.len(), 8);
    assert!(texts.iter().all(|text| !text.contains(&prefix)), "{texts:#?}");
}

#[tokio::test]
async fn every_code_read_is_audited_and_first_is_recorded() {
    const READS: &str = "SELECT count(*) FROM audit_log
                          WHERE action = 'codes.retrieve' AND subject = 'ord_' || replace($1, '-', '')";
    const FIRST: &str = "SELECT first_retrieved_at::text FROM allocations WHERE order_id = $1::uuid
                            AND first_retrieved_at IS NOT NULL";
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let (order_id, _) = order_both(&mut partner, &sale).await;
    let id = uuid_of(&order_id);
    let mut database = ServiceDatabase::of(shared()).await;
    assert_eq!(
        (
            database.count(READS, id).await,
            database.texts(FIRST, id).await.len()
        ),
        (0, 0)
    );
    // Rejected reads are not audited.
    let response = partner.get(&format!("/orders/{order_id}/vouchers")).await;
    expect_error(&response, 401, "INVALID_SIGNATURE");
    let response = operator.add_partner("0").await.get_codes(&order_id).await;
    expect_error(&response, 404, "ORDER_NOT_FOUND");
    assert_eq!(database.count(READS, id).await, 0);
    let first_response = partner.get_codes(&order_id).await;
    let first = database.texts(FIRST, id).await;
    assert_eq!((database.count(READS, id).await, first.len()), (1, 2));
    assert_eq!(partner.get_codes(&order_id).await.body, first_response.body);
    assert_eq!(
        (database.count(READS, id).await, database.texts(FIRST, id).await),
        (2, first)
    );
    let trail =
        "SELECT concat_ws(' ', operator, after ->> 'credential_id', after ->> 'address', after ->> 'vouchers', trace_id)
                   FROM audit_log
                  WHERE action = 'codes.retrieve' AND subject = 'ord_' || replace($1, '-', '')
                  ORDER BY audit_id";
    let (partner_id, credential_id) = (&partner.partner_id, &partner.credential_id);
    let trace = first_response.header("x-trace-id").unwrap();
    assert_eq!(
        database.texts(trail, id).await[0],
        format!("{partner_id} {credential_id} 127.0.0.1 2 {trace}")
    );
}

#[tokio::test]
async fn audit_log_lists_each_code_read() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let (order_id, _) = order_both(&mut partner, &sale).await;
    for readings in 1..=2 {
        expect_success(&partner.get_codes(&order_id).await, 200);
        let trail = operator
            .get(&format!(
                "/admin/v1/audit?action=codes.retrieve&subject={order_id}"
            ))
            .await;
        assert_eq!(trail["data"].as_array().unwrap().len(), readings);
        let newest = &trail["data"][0];
        assert_eq!(newest["operator"], partner.partner_id.as_str());
        let after = serde_json::json!({
            "credential_id": partner.credential_id, "address": "127.0.0.1", "vouchers": 2,
        });
        assert_eq!(newest["after"], after);
    }
}

#[tokio::test]
async fn code_imported_twice_is_sold_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let csv = format!("code\n{}\n{}\n", unique("CNRY"), unique("CNRY"));
    assert_eq!(operator.import_csv(&sale, csv.clone()).await["imported"], 2);
    let result = operator.import_csv(&sale, csv).await;
    assert_eq!(
        (&result["imported"], &result["duplicates"]),
        (&Value::from(0), &Value::from(2))
    );
    let mut partner = operator.add_partner("100").await;
    order_both(&mut partner, &sale).await;
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
}
