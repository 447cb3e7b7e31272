//! Conditional requests: `ETag` and `If-None-Match` on the catalogue.

use serde_json::json;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, Partner, expect_success, shared, text_of, unique};

const IF_NONE_MATCH: &str = "if-none-match";

fn etag_of(response: &ApiResponse) -> String {
    let tag = response
        .header("etag")
        .unwrap_or_else(|| panic!("no ETag: {response:?}"));
    assert!(
        tag.starts_with('"') && tag.ends_with('"') && tag.len() == 34,
        "{tag}"
    );
    tag.to_owned()
}

/// Asserts 304 for the known tag.
async fn assert_unchanged(partner: &mut Partner, path: &str, known: &str) {
    let response = partner.get_with_header(path, (IF_NONE_MATCH, known)).await;
    assert_eq!(
        (response.status.as_u16(), text_of(&response)),
        (304, ""),
        "{path}"
    );
    assert_eq!(
        response.header("etag"),
        Some(known.trim_start_matches("W/")),
        "{path}"
    );
    assert!(response.header("x-trace-id").is_some());
}

#[tokio::test]
async fn matching_etag_returns_304_until_change() {
    let mut operator = Operator::of(shared());
    let category = unique("category");
    let path = format!("/admin/v1/categories/{category}");
    operator
        .send_json(hyper::Method::PUT, &path, &json!({ "name": "A category" }))
        .await;
    let sale = operator
        .add_product_with(json!({ "category_id": category }), "25", 1)
        .await;
    let mut partner = operator.add_partner("100").await;
    // Other tests add products concurrently: restrict this partner to its own category.
    operator
        .patch_partner(&partner, &json!({ "catalogue": { "categories": [category] } }))
        .await;
    let paths = [
        "/products".to_owned(),
        format!("/products?category_id={category}&limit=1"),
        format!("/products/{}", sale.product_id),
        "/categories".to_owned(),
    ];
    let mut tags = Vec::new();
    for path in &paths {
        let response = partner.get(path).await;
        expect_success(&response, 200);
        assert_eq!(response.header("cache-control"), Some("private, no-cache"));
        let tag = etag_of(&response);
        assert_unchanged(&mut partner, path, &tag).await;
        assert_unchanged(&mut partner, path, &format!("W/{tag}")).await;
        expect_success(
            &partner
                .get_with_header(path, (IF_NONE_MATCH, "\"another\""))
                .await,
            200,
        );
        tags.push(tag);
    }
    // Selling the last voucher changes every response that shows availability.
    expect_success(&partner.order(&sale, 1).await, 201);
    for (path, known) in paths.iter().zip(&tags).take(3) {
        let response = partner.get_with_header(path, (IF_NONE_MATCH, known)).await;
        assert!(
            text_of(&response).contains("OUT_OF_STOCK"),
            "{path}: {response:?}"
        );
        assert_ne!(etag_of(&response), *known, "{path}");
    }
    assert_unchanged(&mut partner, &paths[3], &tags[3]).await;
    operator.restock(&sale, 1, "2099-12-31").await;
    for (path, known) in paths.iter().zip(&tags) {
        assert_unchanged(&mut partner, path, known).await;
    }
}
