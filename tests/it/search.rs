//! Search by id and by reference; partners by name, id and credential.

use hyper::Method;
use serde_json::{Value, json};

use crate::commands::{run_json, run_ok};
use vouchsafe_test_harness::{Operator, Partner, expect_error, expect_success, order_body, shared, unique};

/// Returns kind, id and partner of each object found.
async fn find(operator: &mut Operator, text: &str) -> Vec<[String; 3]> {
    let found = operator.get(&format!("/admin/v1/search?q={text}")).await;
    assert_eq!(found["has_more"], false);
    let field = |object: &Value, name: &str| object[name].as_str().unwrap_or("-").to_owned();
    let objects = found["data"].as_array().unwrap().iter();
    objects
        .map(|object| ["kind", "id", "partner_id"].map(|name| field(object, name)))
        .collect()
}

async fn first_entry(partner: &mut Partner, path: &str, id: &str) -> String {
    let page = partner.read(path).await;
    page["data"][0][id].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_kind_of_object_is_found_by_its_id() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let partner_id = partner.partner_id.clone();
    let sale = operator.add_stocked_product(1).await;
    let reference = unique("po");
    let mut body = order_body(&sale, 1);
    body["reference"] = json!(reference);
    let order = expect_success(&partner.send(&unique("key"), &body).await, 201);
    let order_id = order["order_id"].as_str().unwrap();
    let voucher_id = order["vouchers"][0]["voucher_id"].as_str().unwrap();
    let transaction_id = first_entry(&mut partner, "/transactions", "transaction_id").await;
    let shown = operator.get(&format!("/admin/v1/partners/{partner_id}")).await;
    let credential_id = shown["credentials"][0]["credential_id"].as_str().unwrap();
    for (kind, text, id, owner) in [
        ("partner", &*partner_id, &*partner_id, &*partner_id),
        ("credential", credential_id, credential_id, &partner_id),
        ("order", order_id, order_id, &partner_id),
        ("order", &reference, order_id, &partner_id),
        ("voucher", voucher_id, voucher_id, &partner_id),
        ("transaction", &transaction_id, &transaction_id, &partner_id),
        ("product", &sale.product_id, &sale.product_id, "-"),
    ] {
        assert_eq!(find(&mut operator, text).await, [[kind, id, owner]], "{text}");
    }
    // Objects of other tests may begin alike, but not with all but one of the digits.
    for (kind, id) in [
        ("partner", &*partner_id),
        ("order", order_id),
        ("voucher", voucher_id),
    ] {
        let found = find(&mut operator, &id[..id.len() - 1]).await;
        assert!(
            found.contains(&[kind, id, &*partner_id].map(str::to_owned)),
            "{found:?}"
        );
    }
    let name = shown["name"].as_str().unwrap();
    let found = find(&mut operator, &name[1..].to_uppercase()).await;
    assert_eq!(found, [["partner", &*partner_id, &*partner_id]]);
    assert_eq!(find(&mut operator, "admin").await[0], ["operator", "admin", "-"]);
    let found = run_json(&["search", voucher_id]);
    assert_eq!(found["data"][0]["order_id"], *order_id);
    let table = run_ok(&["search", &reference]);
    assert!(table.contains(order_id) && table.contains("DELIVERED"), "{table}");
}

#[tokio::test]
async fn search_for_unknown_text_or_code_finds_nothing() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(1).await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    let codes = partner.get_codes(order["order_id"].as_str().unwrap()).await;
    let codes = expect_success(&codes, 200);
    let code = codes["data"][0]["credentials"][0]["value"].as_str().unwrap();
    let unknown = format!("ord_{}", "0".repeat(32));
    for text in [code, &unknown, "ord_1", "no-such-thing", "%20x%20y"] {
        assert_eq!(find(&mut operator, text).await, [[""; 3]; 0], "{text}");
    }
    for query in ["", "?q=", "?q=%20", "?q=a%00", "?other=1"] {
        let path = format!("/admin/v1/search{query}");
        expect_error(
            &operator.call_json(Method::GET, &path, "").await,
            422,
            "VALIDATION_FAILED",
        );
    }
}

#[tokio::test]
async fn partners_are_found_by_name_id_and_credential() {
    let mut operator = Operator::of(shared());
    let name = format!("{}-end", unique("partner"));
    let body = json!({ "name": name, "allowlist": [] });
    let created = operator
        .send_json(Method::POST, "/admin/v1/partners", &body)
        .await;
    let partner_id = created["partner_id"].as_str().unwrap();
    let credential_id = created["credential"]["credential_id"].as_str().unwrap();
    let unknown = format!("_{}", "0".repeat(32));
    for (query, expected) in [
        (format!("name={}", &name[1..]), 1),
        (format!("partner_id={partner_id}"), 1),
        (format!("partner_id=ptn{unknown},{partner_id},{partner_id}"), 1),
        (format!("credential_id={credential_id}"), 1),
        (format!("credential_id={credential_id}&name=x{name}"), 0),
        (format!("partner_id=ptn{unknown}"), 0),
        (format!("credential_id=cred{unknown}"), 0),
    ] {
        let found = operator.get(&format!("/admin/v1/partners?{query}")).await;
        let ids: Vec<_> = found["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| &found["partner_id"])
            .collect();
        assert_eq!(ids, vec![partner_id; expected], "{query}");
    }
    assert!(run_ok(&["partner", "list", "--credential", credential_id]).contains(partner_id));
}
