//! Catalogue for partners: products, categories, filters, availability.

use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_success, order_line, shared, text_of, unique,
};

/// Creates products in a separate category and returns its id.
async fn add_category(operator: &mut Operator, products: &[Value]) -> (String, Vec<Sale>) {
    let category = unique("category");
    let path = format!("/admin/v1/categories/{category}");
    operator
        .send_json(
            hyper::Method::PUT,
            &path,
            &json!({ "name": "A shelf", "parent_id": "retail" }),
        )
        .await;
    let mut sales = Vec::new();
    for changes in products {
        let mut changes = changes.clone();
        changes["category_id"] = json!(category);
        sales.push(operator.add_product_with(changes, "25", 0).await);
    }
    (category, sales)
}

async fn ids(partner: &mut Partner, query: &str) -> Vec<String> {
    let page = partner.read(&format!("/products?{query}")).await;
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|product| product["product_id"].as_str().unwrap().to_owned())
        .collect()
}

async fn availability(partner: &mut Partner, sale: &Sale) -> String {
    let product = partner.read(&format!("/products/{}", sale.product_id)).await;
    product["availability"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn product_response_has_all_fields() {
    let mut operator = Operator::of(shared());
    let changes = json!({
        "name": "Caf\u{e9} Card", "brand": "Acme", "currency": "KWD", "countries": ["KW", "BH"],
        "denominations": ["5", "10.5"], "denomination_range": { "min": 20, "max": "30.000", "step": "0.5" },
        "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "At the till", "terms": "None" }, "route": "vendor",
    });
    let sale = operator.add_product_with(changes, "20.500", 30).await;
    let mut partner = operator.add_partner("0").await;
    let response = partner.get(&format!("/products/{}", sale.product_id)).await;
    let updated_at = expect_success(&response, 200)["updated_at"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(updated_at.ends_with('Z'), "{updated_at}");
    let shared = [
        format!(
            r#"{{"product_id":"{}","name":"Café Card","brand":"Acme","category_id":"retail","#,
            sale.product_id
        ),
        r#""vendor":"by-hand","currency":"KWD","countries":["BH","KW"],"denominations":[5.000,10.500],"#
            .to_owned(),
        r#""denomination_range":{"min":20.000,"max":30.000,"step":0.500},"#.to_owned(),
        r#""expiry_policy":{"type":"MONTHS_FROM_ISSUE","expires_on":null,"valid_months":12,"value":12},"availability":"IN_STOCK","#.to_owned(),
        r#""language":"en","languages":["en"],"description":"","redemption":{"instructions":"At the till","terms":"None"},"#
            .to_owned(),
        r#""images":[],"barcode_format":null,"balance_check_url":null,"support":{"email":null,"phone":null,"url":null},"#
            .to_owned(),
        format!(r#""updated_at":"{updated_at}""#),
    ];
    let stock = [
        ("5.000", "ON_DEMAND"),
        ("10.500", "ON_DEMAND"),
        ("20.500", "IN_STOCK"),
    ];
    let stock = stock.map(|(value, availability)| {
        format!(r#"{{"denomination":{value},"availability":"{availability}"}}"#)
    });
    assert_eq!(
        text_of(&response),
        format!(r#"{},"stock":[{}]}}"#, shared.concat(), stock.join(","))
    );
    // The list omits the stock per denomination.
    let list = partner.get("/products?currency=KWD&country=BH&limit=100").await;
    assert!(
        text_of(&list).contains(&format!("{}}}", shared.concat())),
        "{list:?}"
    );
}

#[tokio::test]
async fn products_filter_by_currency_country_and_category() {
    let mut operator = Operator::of(shared());
    let products = [
        json!({ "currency": "USD", "countries": ["US"] }),
        json!({ "currency": "EUR", "countries": ["DE", "FR"] }),
        json!({ "currency": "EUR", "countries": [] }),
    ];
    let (category, sales) = add_category(&mut operator, &products).await;
    let mut partner = operator.add_partner("0").await;
    let all: Vec<_> = sales.iter().map(|sale| sale.product_id.clone()).collect();
    for (query, found) in [
        ("", &[0, 1, 2][..]),
        ("&currency=EUR", &[1, 2]),
        ("&currency=JPY", &[]),
        ("&country=DE", &[1, 2]),
        ("&country=de&currency=eur", &[1, 2]),
        ("&country=US", &[0, 2]),
        ("&country=US&currency=USD", &[0]),
    ] {
        let mut expected: Vec<_> = found.iter().map(|n| all[*n].clone()).collect();
        expected.sort_unstable();
        assert_eq!(
            ids(&mut partner, &format!("category_id={category}{query}")).await,
            expected,
            "{query}"
        );
    }
    assert!(ids(&mut partner, "category_id=no-such-category").await.is_empty());
}

#[tokio::test]
async fn filtered_product_pages_are_complete() {
    let mut operator = Operator::of(shared());
    let (category, sales) = add_category(&mut operator, &vec![json!({}); 5]).await;
    let mut partner = operator.add_partner("0").await;
    let mut expected: Vec<_> = sales.into_iter().map(|sale| sale.product_id).collect();
    expected.sort_unstable();
    let (mut found, mut cursor) = (Vec::new(), String::new());
    for (count, has_more) in [(2, true), (2, true), (1, false)] {
        let page = partner
            .read(&format!("/products?category_id={category}&limit=2{cursor}"))
            .await;
        assert_eq!(
            (page["data"].as_array().unwrap().len(), page["has_more"].as_bool()),
            (count, Some(has_more))
        );
        found.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| p["product_id"].as_str().unwrap().to_owned()),
        );
        cursor = page["next_cursor"]
            .as_str()
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
    }
    assert_eq!((found, cursor.as_str()), (expected, ""));
}

#[tokio::test]
async fn invalid_product_filter_is_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    for (query, field) in [
        ("currency=ABC", "currency"),
        ("currency=", "currency"),
        ("country=usa", "country"),
        ("country=USA", "country"),
        ("country=", "country"),
        ("category_id=", "category_id"),
    ] {
        let response = partner.get(&format!("/products?{query}")).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], json!(field), "{query}");
    }
}

#[tokio::test]
async fn product_cursor_with_other_list_or_filter_is_rejected() {
    let mut operator = Operator::of(shared());
    let (category, _) = add_category(&mut operator, &vec![json!({}); 2]).await;
    let mut partner = operator.add_partner("1").await;
    operator.top_up(&partner.partner_id, "USD", "1").await;
    let cursor = async |partner: &mut Partner, path: &str| {
        partner.read(&format!("{path}limit=1")).await["next_cursor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let filtered = cursor(&mut partner, &format!("/products?category_id={category}&")).await;
    let plain = cursor(&mut partner, "/products?").await;
    let categories = cursor(&mut partner, "/categories?").await;
    expect_success(
        &partner
            .get(&format!("/products?cursor={filtered}&category_id={category}"))
            .await,
        200,
    );
    for path in [
        format!("/products?cursor={filtered}"),
        format!("/products?category_id=retail&cursor={filtered}"),
        format!("/products?category_id={category}&currency=USD&cursor={filtered}"),
        format!("/products?category_id={category}&cursor={plain}"),
        format!("/products?cursor={categories}"),
        format!("/transactions?cursor={plain}"),
        format!("/categories?cursor={plain}"),
    ] {
        expect_error(&partner.get(&path).await, 400, "INVALID_CURSOR");
    }
}

#[tokio::test]
async fn category_without_products_is_not_listed() {
    let mut operator = Operator::of(shared());
    let (full, _) = add_category(&mut operator, &vec![json!({}); 3]).await;
    let (empty, _) = add_category(&mut operator, &[]).await;
    let mut partner = operator.add_partner("0").await;
    let (mut categories, mut path) = (Vec::new(), "/categories?limit=100".to_owned());
    loop {
        let page = partner.read(&path).await;
        categories.extend(page["data"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/categories?limit=100&cursor={cursor}");
    }
    let of = |id: &str| categories.iter().find(|category| category["category_id"] == *id);
    let expected =
        json!({ "category_id": full, "name": "A shelf", "parent_id": "retail", "product_count": 3 });
    assert_eq!(of(&full), Some(&expected));
    assert_eq!(of(&empty), None);
    assert!(of("gaming").is_some_and(|category| category["parent_id"].is_null()));
}

#[tokio::test]
async fn availability_after_order_is_current() {
    let mut operator = Operator::of(shared());
    let sale = operator
        .add_product_with(json!({ "low_stock_at": 2 }), "25", 4)
        .await;
    let mut partner = operator.add_partner("1000").await;
    let mut counts = vec![availability(&mut partner, &sale).await];
    for _ in 0..4 {
        expect_success(&partner.order(&sale, 1).await, 201);
        counts.push(availability(&mut partner, &sale).await);
    }
    assert_eq!(
        counts,
        ["IN_STOCK", "IN_STOCK", "IN_STOCK", "LOW_STOCK", "OUT_OF_STOCK"]
    );
    operator.restock(&sale, 1, "").await;
    assert_eq!(availability(&mut partner, &sale).await, "LOW_STOCK");
}

#[tokio::test]
async fn availability_is_tracked_per_denomination() {
    let mut operator = Operator::of(shared());
    let ten = operator
        .add_product_with(json!({ "denominations": [10, 25], "low_stock_at": 2 }), "10", 5)
        .await;
    let twenty_five = Sale {
        denomination: "25",
        ..ten.clone()
    };
    operator.restock(&twenty_five, 1, "").await;
    let mut partner = operator.add_partner("1000").await;
    let path = format!("/products/{}", ten.product_id);
    let stock = |product: &Value| {
        let stock = product["stock"].as_array().unwrap().iter();
        stock
            .map(|entry| entry["availability"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(stock(&partner.read(&path).await), ["IN_STOCK", "LOW_STOCK"]);
    expect_success(
        &partner
            .send(&unique("key"), &json!({ "items": [order_line(&twenty_five, 1)] }))
            .await,
        201,
    );
    let product = partner.read(&path).await;
    assert_eq!(
        (stock(&product), &product["availability"]),
        (vec!["IN_STOCK".into(), "OUT_OF_STOCK".into()], &json!("IN_STOCK"))
    );
}

#[tokio::test]
async fn vendor_product_out_of_stock_is_on_demand() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 1).await;
    let mut partner = operator.add_partner("1000").await;
    assert_eq!(availability(&mut partner, &sale).await, "LOW_STOCK");
    expect_success(&partner.order(&sale, 1).await, 201);
    assert_eq!(availability(&mut partner, &sale).await, "ON_DEMAND");
}

#[tokio::test]
async fn discontinued_product_stays_visible() {
    let mut operator = Operator::of(shared());
    let (category, sales) = add_category(&mut operator, &[json!({ "discontinued": true })]).await;
    let mut partner = operator.add_partner("1000").await;
    assert_eq!(availability(&mut partner, &sales[0]).await, "DISCONTINUED");
    assert_eq!(
        ids(&mut partner, &format!("category_id={category}")).await,
        [sales[0].product_id.clone()]
    );
    expect_error(&partner.order(&sales[0], 1).await, 409, "PRODUCT_UNAVAILABLE");
}
