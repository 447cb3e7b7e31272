//! Catalogue administration: categories and products.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared, text_of, unique};

async fn put(operator: &mut Operator, path: &str, body: &Value) -> ApiResponse {
    operator.call_json(Method::PUT, path, body.to_string()).await
}

fn product_body(changes: &Value) -> Value {
    let mut product = json!({
        "name": "Card", "brand": "Brand", "category_id": "retail", "vendor": "mock", "currency": "USD", "countries": [],
        "denominations": [50, "25.5"], "expiry_policy": { "type": "NONE" }, "redemption": {}, "route": "stock",
    });
    product
        .as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    product
}

#[tokio::test]
async fn put_category_returns_201_then_200() {
    let mut operator = Operator::of(shared());
    let (outer, inner) = (unique("outer"), unique("inner"));
    let path = |id: &str| format!("/admin/v1/categories/{id}");
    let response = put(&mut operator, &path(&outer), &json!({ "name": "Outer" })).await;
    expect_success(&response, 201);
    let child = json!({ "name": "Inner", "parent_id": outer });
    assert_eq!(
        expect_success(&put(&mut operator, &path(&inner), &child).await, 201)["parent_id"],
        json!(outer)
    );
    expect_success(&put(&mut operator, &path(&inner), &child).await, 200);
    let below = |parent: &str| json!({ "name": "Outer", "parent_id": parent });
    for (id, body, field) in [
        (outer.as_str(), below(&inner), "parent_id"),
        (&outer, below(&outer), "parent_id"),
        (&outer, below("nothing"), "parent_id"),
        (&outer, json!({ "name": "" }), "name"),
        ("Not-a-slug", json!({ "name": "X" }), "category_id"),
    ] {
        let response = put(&mut operator, &path(id), &body).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], json!(field), "{body}");
    }
}

#[tokio::test]
async fn put_product_applies_to_next_request() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let id = unique("card");
    let path = format!("/admin/v1/products/{id}");
    let response = put(&mut operator, &path, &product_body(&json!({}))).await;
    expect_success(&response, 201);
    assert!(
        text_of(&response).contains(r#""denominations":[25.50,50.00]"#),
        "{}",
        text_of(&response)
    );
    expect_success(&partner.get(&format!("/products/{id}")).await, 200);
    let change = product_body(&json!({ "name": "Other", "discontinued": true }));
    let changed = expect_success(&put(&mut operator, &path, &change).await, 200);
    assert_eq!(changed["name"], "Other");
    let shown = expect_success(&partner.get(&format!("/products/{id}")).await, 200);
    assert_eq!(
        (&shown["name"], &shown["availability"]),
        (&json!("Other"), &json!("DISCONTINUED"))
    );
    assert_eq!(operator.get(&path).await, changed);
    let entries = operator.audit_entries(&format!("subject={id}")).await;
    let names: Vec<_> = entries.iter().map(|entry| &entry["after"]["name"]).collect();
    assert_eq!(names, ["Other", "Card"]);
    assert_eq!(entries[0]["before"]["name"], "Card");
}

#[tokio::test]
async fn product_currency_is_fixed_and_brand_is_fixed_with_stock() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let path = format!("/admin/v1/products/{}", sale.product_id);
    let euros = product_body(&json!({ "currency": "EUR", "denominations": [25] }));
    let error = expect_error(&put(&mut operator, &path, &euros).await, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], json!("currency"));
    let brand_change = json!({ "brand": "Mine", "denominations": [25] });
    let response = put(&mut operator, &path, &product_body(&brand_change)).await;
    expect_success(&response, 200);
    operator.restock(&sale, 1, "").await;
    for (change, field) in [
        (json!({ "brand": "Other", "denominations": [25] }), "brand"),
        (json!({ "brand": "Mine", "currency": "EUR" }), "currency"),
    ] {
        let response = put(&mut operator, &path, &product_body(&change)).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], json!(field));
    }
    let new_name = product_body(&json!({ "brand": "Mine", "name": "New name" }));
    expect_success(&put(&mut operator, &path, &new_name).await, 200);
}

#[tokio::test]
async fn invalid_product_is_rejected_by_field() {
    let mut operator = Operator::of(shared());
    let path = format!("/admin/v1/products/{}", unique("card"));
    for (change, fields) in [
        (json!({ "category_id": "nowhere" }), vec!["category_id"]),
        (
            json!({ "denominations": [0, -5, 1.001] }),
            vec!["denominations[0]", "denominations[1]", "denominations[2]"],
        ),
    ] {
        let response = put(&mut operator, &path, &product_body(&change)).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        let details = error["details"].as_array().unwrap();
        let found: Vec<_> = details.iter().map(|detail| &detail["field"]).collect();
        assert_eq!(found, fields, "{change}");
    }
    let response = operator.call_json(Method::GET, &path, "").await;
    expect_error(&response, 404, "PRODUCT_NOT_FOUND");
}

#[tokio::test]
async fn partner_reads_texts_in_the_language_it_accepts() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let category = unique("category");
    let of_category = json!({ "name": "A shelf", "parent_id": "retail" });
    put(
        &mut operator,
        &format!("/admin/v1/categories/{category}"),
        &of_category,
    )
    .await;
    let id = unique("card");
    let path = format!("/admin/v1/products/{id}");
    let content = json!({
        "description": "A card", "images": ["https://cdn.example/1.png"], "barcode_format": "EAN13",
        "balance_check_url": "https://shop.example/balance", "support_email": "help@shop.example",
    });
    let body = product_body(&json!({ "category_id": category, "content": content }));
    expect_success(&put(&mut operator, &path, &body).await, 201);
    let german = json!({ "description": "Eine Karte", "redemption": { "instructions": "An der Kasse" } });
    let translation = format!("{path}/translations/DE");
    expect_success(&put(&mut operator, &translation, &german).await, 200);

    let page = format!("/products?category_id={category}");
    let single = format!("/products/{id}");
    for (accepted, language, description, instructions) in [
        ("de-AT, en;q=0.5", "de", "Eine Karte", "An der Kasse"),
        ("fr", "en", "A card", ""),
    ] {
        for path in [&page, &single] {
            let response = partner.get_with_header(path, ("accept-language", accepted)).await;
            let body = expect_success(&response, 200);
            let product = if path == &page { &body["data"][0] } else { &body };
            assert_eq!(
                [
                    &product["language"],
                    &product["description"],
                    &product["redemption"]["instructions"]
                ],
                [language, description, instructions],
                "{path}"
            );
            assert_eq!(product["languages"], json!(["en", "de"]));
            assert_eq!(product["images"], json!(["https://cdn.example/1.png"]));
            assert_eq!(product["support"]["email"], "help@shop.example");
            assert_eq!(response.header("content-language"), Some(language));
            let varies = response
                .headers
                .get_all("vary")
                .iter()
                .any(|value| value == "Accept-Language");
            assert!(varies, "{path}: {:?}", response.headers);
        }
    }

    // A change of the product leaves its translations, and its content returns to the defaults.
    let changed = put(
        &mut operator,
        &path,
        &product_body(&json!({ "category_id": category })),
    )
    .await;
    let changed = expect_success(&changed, 200);
    assert_eq!(
        (
            &changed["content"]["images"],
            &changed["translations"][0]["language"]
        ),
        (&json!([]), &json!("de"))
    );
    for (language, body, field) in [
        ("en", &german, "language"),
        ("german", &german, "language"),
        (
            "de",
            &json!({ "description": "x".repeat(20_001), "redemption": {} }),
            "description",
        ),
    ] {
        let refused = put(&mut operator, &format!("{path}/translations/{language}"), body).await;
        let error = expect_error(&refused, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], json!(field));
    }
    let unknown = format!("/admin/v1/products/{}/translations/de", unique("none"));
    expect_error(
        &put(&mut operator, &unknown, &german).await,
        404,
        "PRODUCT_NOT_FOUND",
    );
    for path in [&translation, &translation] {
        let deleted = operator.call_json(Method::DELETE, path, "").await;
        assert_eq!(deleted.status, 204);
    }
    let product = partner.get_with_header(&single, ("accept-language", "de")).await;
    assert_eq!(expect_success(&product, 200)["language"], "en");
    let audited = operator.audit_entries(&format!("subject={id}")).await;
    assert_eq!(audited.len(), 4, "{audited:?}");
}
