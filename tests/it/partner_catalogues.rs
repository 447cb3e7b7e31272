//! Restricted catalogues: a partner sees and orders only its products.

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_success, order_body, shared, unique,
};

/// Two categories with two products and one product.
struct TestCategories {
    categories: [String; 2],
    sales: [Sale; 3],
}

async fn add_categories(operator: &mut Operator) -> TestCategories {
    let categories = [unique("category"), unique("category")];
    for category in &categories {
        let path = format!("/admin/v1/categories/{category}");
        operator
            .send_json(Method::PUT, &path, &json!({ "name": "A category" }))
            .await;
    }
    let mut sales = Vec::new();
    for category in [&categories[0], &categories[0], &categories[1]] {
        sales.push(
            operator
                .add_product_with(json!({ "category_id": category }), "25", 5)
                .await,
        );
    }
    TestCategories {
        categories,
        sales: sales.try_into().unwrap(),
    }
}

impl TestCategories {
    /// Returns the visible products by index; all endpoints must agree.
    async fn visible_products(&self, partner: &mut Partner) -> Vec<usize> {
        let listed = partner.list_all("/products?limit=100").await;
        let categories = partner.list_all("/categories?limit=100").await;
        let mut visible = Vec::new();
        for (index, sale) in self.sales.iter().enumerate() {
            let path = format!("/products/{}", sale.product_id);
            let found = partner.get(&path).await;
            if listed
                .iter()
                .any(|product| product["product_id"] == sale.product_id)
            {
                expect_success(&found, 200);
                visible.push(index);
            } else {
                expect_error(&found, 404, "PRODUCT_NOT_FOUND");
            }
        }
        for (category, members) in self.categories.iter().zip([&[0, 1][..], &[2]]) {
            let count = members.iter().filter(|index| visible.contains(index)).count();
            let shown = categories.iter().find(|shown| shown["category_id"] == *category);
            let shown = shown.map_or(0, |shown| shown["product_count"].as_u64().unwrap());
            assert_eq!(shown, count as u64, "{category}");
        }
        visible
    }

    async fn assert_visible(&self, partner: &mut Partner, expected: &[usize]) {
        assert_eq!(self.visible_products(partner).await, expected);
        for (index, sale) in self.sales.iter().enumerate() {
            let response = partner.order(sale, 1).await;
            if expected.contains(&index) {
                expect_success(&response, 201);
            } else {
                expect_error(&response, 404, "PRODUCT_NOT_FOUND");
            }
        }
    }
}

#[tokio::test]
async fn partner_catalogue_applies_everywhere_immediately() {
    let mut operator = Operator::of(shared());
    let fixture = add_categories(&mut operator).await;
    let (mut partner, mut other) = (
        operator.add_partner("1000").await,
        operator.add_partner("1000").await,
    );
    let [categories, ids] = [
        &fixture.categories,
        &fixture.sales.each_ref().map(|s| s.product_id.clone())[..2],
    ]
    .map(<[String]>::to_vec);
    let (first_category, second) = (&categories[0], &ids[1]);
    for (catalogue, expected) in [
        (Value::Null, &[0, 1, 2][..]),
        (json!({ "categories": [first_category] }), &[0, 1]),
        (json!({ "products": [second] }), &[1]),
        (
            json!({ "categories": [categories[1]], "products": [second] }),
            &[1, 2],
        ),
        (
            json!({ "categories": ["retail"], "products": ["no-such-product"] }),
            &[],
        ),
        (json!({}), &[]),
        (Value::Null, &[0, 1, 2]),
    ] {
        operator
            .patch_partner(&partner, &json!({ "catalogue": catalogue }))
            .await;
        fixture.assert_visible(&mut partner, expected).await;
    }
    assert_eq!(fixture.visible_products(&mut other).await, [0, 1, 2]);
}

#[tokio::test]
async fn rejection_outside_catalogue_is_not_stored() {
    let mut operator = Operator::of(shared());
    let sales = [
        operator.add_stocked_product(2).await,
        operator.add_stocked_product(2).await,
    ];
    let mut partner = operator.add_partner("100").await;
    let inside = json!({ "catalogue": { "products": [sales[0].product_id] } });
    operator.patch_partner(&partner, &inside).await;
    let key = unique("key");
    let mut both = order_body(&sales[0], 1);
    both["items"]
        .as_array_mut()
        .unwrap()
        .push(order_body(&sales[1], 1)["items"][0].clone());
    let error = expect_error(&partner.send(&key, &both).await, 404, "PRODUCT_NOT_FOUND");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&sales[1].product_id), "{message}");
    assert_eq!(partner.balance("USD").await, "100.00");
    operator
        .patch_partner(&partner, &json!({ "catalogue": null }))
        .await;
    expect_success(&partner.send(&key, &both).await, 201);
    // Existing orders stay visible after the catalogue changes.
    operator
        .patch_partner(&partner, &json!({ "catalogue": {} }))
        .await;
    let response = partner.send(&key, &both).await;
    assert_eq!(response.header("idempotent-replayed"), Some("true"));
    assert_eq!(partner.list_all("/orders").await.len(), 1);
}
