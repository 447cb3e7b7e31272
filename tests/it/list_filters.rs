//! Filters of operators' lists.

use serde_json::json;
use vouchsafe_test_harness::{Operator, expect_success, shared};

async fn count(operator: &mut Operator, path: &str) -> usize {
    let found = operator.get(&format!("/admin/v1{path}")).await;
    found["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn products_and_stock_are_filtered() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator
        .add_product_with(json!({ "low_stock_at": 2 }), "25", 2)
        .await;
    let id = &sale.product_id;
    let product = operator.get(&format!("/admin/v1/products/{id}")).await;
    let (category, vendor) = (
        product["category_id"].as_str().unwrap(),
        product["vendor"].as_str().unwrap(),
    );
    for (filter, expected) in [
        (String::new(), 1),
        (
            format!("&category_id={category}&vendor={vendor}&discontinued=false"),
            1,
        ),
        ("&discontinued=true".to_owned(), 0),
        ("&category_id=no-such-category".to_owned(), 0),
        ("&vendor=no-such-vendor".to_owned(), 0),
    ] {
        let part = id[1..].to_uppercase();
        let path = format!("/products?name={part}{filter}");
        assert_eq!(count(&mut operator, &path).await, expected, "{path}");
    }
    for (orders, expected) in [(0, [1, 0, 0]), (1, [1, 1, 0]), (1, [1, 1, 1])] {
        for _ in 0..orders {
            expect_success(&partner.order(&sale, 1).await, 201);
        }
        for (shortage, expected) in ["", "&shortage=low", "&shortage=empty"].into_iter().zip(expected) {
            // Pages of one SKU: short ones are found behind many others.
            let path = format!("/stock?product_id={id}{shortage}&limit=1");
            assert_eq!(count(&mut operator, &path).await, expected, "{path}");
        }
    }
    let changes = json!({ "low_stock_at": 2, "discontinued": true });
    operator.put_product(id, changes).await;
    let low = format!("/stock?product_id={id}&shortage=low");
    assert_eq!(count(&mut operator, &low).await, 0, "nobody restocks it");
    let empty = operator.get("/admin/v1/stock?shortage=empty&limit=100").await;
    let mut levels = empty["data"].as_array().unwrap().iter();
    assert!(levels.all(|level| level["free"] == 0), "{empty}");
}

#[tokio::test]
async fn audit_trail_is_read_without_code_reads() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(1).await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    expect_success(&partner.get_codes(order["order_id"].as_str().unwrap()).await, 200);
    let of_partner = format!("/audit?partner_id={}", partner.partner_id);
    let all = count(&mut operator, &of_partner).await;
    let changes = count(&mut operator, &format!("{of_partner}&code_reads=false")).await;
    assert_eq!(changes + 1, all);
}
