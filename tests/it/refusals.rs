//! Is every error what the table of errors says, wherever it is met (contract §7)?

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::support::{Operator, accepted, json_of, line_of, refused, shared, unique};

#[tokio::test]
async fn what_the_catalogue_does_not_have_is_refused() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(1).await;
    let gone = operator.offer(json!({ "discontinued": true }), "25", 0).await;
    let euros = operator.offer(json!({ "currency": "EUR" }), "25", 1).await;
    let range = json!({ "denominations": ["7"], "denomination_range": { "min": 10, "max": 30, "step": 5 } });
    let ranged = operator.offer(range, "10", 1).await;
    let mut partner = operator.partner("1000").await;
    let item = |product: &str, denomination: &str| {
        let denomination: Value = serde_json::from_str(denomination).unwrap();
        json!({ "product_id": product, "denomination": denomination, "quantity": 1 })
    };
    let good = line_of(&sale, 1);
    let cases = [
        (
            json!({ "items": [good, item("no-such-product", "25")] }),
            404,
            "PRODUCT_NOT_FOUND",
            "no-such-product",
        ),
        (
            json!({ "items": [item("../../etc", "25")] }),
            404,
            "PRODUCT_NOT_FOUND",
            "../../etc",
        ),
        (
            json!({ "items": [item("' OR 1=1 --", "25")] }),
            404,
            "PRODUCT_NOT_FOUND",
            "' OR 1=1 --",
        ),
        (
            json!({ "items": [item(&gone.product_id, "25")] }),
            409,
            "PRODUCT_UNAVAILABLE",
            &gone.product_id,
        ),
        (
            json!({ "items": [item(&sale.product_id, "24")] }),
            422,
            "DENOMINATION_NOT_ALLOWED",
            &sale.product_id,
        ),
        (
            json!({ "items": [item(&ranged.product_id, "12")] }),
            422,
            "DENOMINATION_NOT_ALLOWED",
            &ranged.product_id,
        ),
        (
            json!({ "items": [item(&ranged.product_id, "9.99")] }),
            422,
            "DENOMINATION_NOT_ALLOWED",
            "",
        ),
        (
            json!({ "items": [item(&ranged.product_id, "35")] }),
            422,
            "DENOMINATION_NOT_ALLOWED",
            "",
        ),
        (
            json!({ "items": [good, line_of(&euros, 1)] }),
            422,
            "CURRENCY_MISMATCH",
            &euros.product_id,
        ),
        (
            json!({ "items": [good], "currency": "EUR" }),
            422,
            "CURRENCY_MISMATCH",
            &sale.product_id,
        ),
    ];
    for (body, status, code, named) in cases {
        let error = refused(&partner.send(&unique("key"), &body).await, status, code);
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
        assert_eq!(error["retryable"], false, "{error}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn a_shortage_names_its_product_and_holds_nothing() {
    let mut operator = Operator::of(shared());
    let [first, second] = [operator.sale(1).await, operator.sale(1).await];
    let mut partner = operator.partner("1000").await;
    let body = json!({ "items": [line_of(&first, 1), line_of(&second, 2)] });
    let error = refused(
        &partner.send(&unique("key"), &body).await,
        409,
        "INSUFFICIENT_INVENTORY",
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&second.product_id) && !message.contains(&first.product_id),
        "{error}"
    );
    assert_eq!(
        (&error["name"], &error["retryable"]),
        (&json!("InsufficientInventory"), &json!(false))
    );
    assert_eq!(partner.balance("USD").await, "1000.00");
    accepted(&partner.order(&first, 1).await, 201);
    accepted(&partner.order(&second, 1).await, 201);
}

#[tokio::test]
async fn too_little_money_is_402_also_without_a_wallet() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(5).await;
    let (mut poor, mut none) = (operator.partner("24.99").await, operator.partner("0").await);
    let error = refused(&poor.order(&sale, 1).await, 402, "INSUFFICIENT_FUNDS");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("25.00 USD") && message.contains("24.99 USD"),
        "{error}"
    );
    refused(&none.order(&sale, 1).await, 402, "INSUFFICIENT_FUNDS");
    assert_eq!(
        (poor.balance("USD").await, none.balance("USD").await),
        ("24.99".to_owned(), String::new())
    );
}

#[tokio::test]
async fn the_order_of_another_looks_like_none() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(1).await;
    let (mut owner, mut stranger) = (operator.partner("100").await, operator.partner("100").await);
    let order = accepted(&owner.order(&sale, 1).await, 201);
    let foreign = order["order_id"].as_str().unwrap();
    let nobodys = format!(
        "{}{}",
        &foreign[..foreign.len() - 4],
        if foreign.ends_with("0000") { "1111" } else { "0000" }
    );
    let strip = |mut error: Value, id: &str| {
        error["trace_id"] = Value::Null;
        error.to_string().replace(id, "ID")
    };
    let mut told = Vec::new();
    for id in [foreign, &nobodys] {
        let read = refused(
            &stranger.get(&format!("/orders/{id}")).await,
            404,
            "ORDER_NOT_FOUND",
        );
        let codes = refused(&stranger.codes(id).await, 404, "ORDER_NOT_FOUND");
        told.push((strip(read, id), strip(codes, id)));
    }
    assert_eq!(told[0], told[1]);
    accepted(&owner.get(&format!("/orders/{foreign}")).await, 200);
}

#[tokio::test]
async fn what_is_no_id_names_no_order() {
    let mut partner = Operator::of(shared()).partner("1").await;
    let long = format!("ord_{}", "0".repeat(5_000));
    for id in [
        "x",
        "ord_",
        "ord_zz",
        "ORD_00000000000000000000000000000000",
        "%00",
        "%27%20OR%201=1",
        "..",
        &long,
    ] {
        let answer = partner.get(&format!("/orders/{id}")).await;
        let code = if id == ".." {
            "ROUTE_NOT_FOUND"
        } else {
            "ORDER_NOT_FOUND"
        };
        assert!(answer.status == 404, "{id:.60}: {answer:?}");
        if answer.error_code().as_deref() != Some("ROUTE_NOT_FOUND") {
            refused(&answer, 404, code.replace("ROUTE", "ORDER").as_str());
        }
    }
    for id in ["x", "ord_0", "ord_00000000000000000000000000000000"] {
        refused(&partner.codes(id).await, 404, "ORDER_NOT_FOUND");
    }
    refused(&partner.get("/products/No-Such").await, 404, "PRODUCT_NOT_FOUND");
}

#[tokio::test]
async fn what_is_no_route_is_404_and_a_wrong_method_405() {
    let service = shared();
    let mut partner = Operator::of(service).partner("1").await;
    for path in [
        "/",
        "/api/v1",
        "/api/v2/orders",
        "/api/v1/order",
        "/api/v1/orders/",
        "/orders",
        "/api/v1/orders/a/b/c",
    ] {
        let answer = partner
            .client
            .raw(Method::GET, path, HeaderMap::new(), "")
            .await
            .unwrap();
        refused(&answer, 404, "ROUTE_NOT_FOUND");
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/api/v1/orders", "POST"),
        (Method::PUT, "/api/v1/orders/ord_0", "GET"),
        (Method::POST, "/api/v1/orders/ord_0/vouchers", "GET"),
        (Method::POST, "/api/v1/wallets", "GET"),
        (Method::PATCH, "/api/v1/products/sbx-instant", "GET"),
        (Method::OPTIONS, "/api/v1/categories", "GET"),
        (Method::TRACE, "/api/v1/transactions", "GET"),
        (Method::POST, "/healthz", "GET"),
    ] {
        let answer = partner
            .client
            .raw(method, path, HeaderMap::new(), "")
            .await
            .unwrap();
        refused(&answer, 405, "METHOD_NOT_ALLOWED");
        assert!(
            answer
                .header("allow")
                .is_some_and(|methods| methods.contains(allowed)),
            "{path}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn each_listener_has_its_own_routes_alone() {
    let service = shared();
    let mut operator = Operator::of(service);
    let mut partner = operator.partner("1").await;
    let token = std::fs::read_to_string(service.data_dir().join("operator-token")).unwrap();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim())).unwrap();
    let headers = HeaderMap::from_iter([(HeaderName::from_static("authorization"), bearer)]);
    for path in ["/admin/v1/partners", "/admin/v1/actors", "/admin/v1", "/metrics"] {
        let answer = partner
            .client
            .raw(Method::GET, path, headers.clone(), "")
            .await
            .unwrap();
        refused(&answer, 404, "ROUTE_NOT_FOUND");
    }
    for path in ["/api/v1/orders", "/api/v1/wallets", "/api/v1/products"] {
        let answer = operator.call(Method::GET, path, "application/json", "").await;
        refused(&answer, 404, "ROUTE_NOT_FOUND");
    }
}

#[tokio::test]
async fn an_operators_route_needs_the_operators_token() {
    let mut operator = Operator::of(shared());
    let partner = operator.partner("1").await;
    let mut identity = HeaderMap::new();
    partner.client.credentials().identify(&mut identity);
    let key = identity["x-api-key"].to_str().unwrap().to_owned();
    let secret = identity["x-api-secret"].to_str().unwrap().to_owned();
    let bearer = format!("Bearer {secret}");
    let strangers: [&[(&'static str, &str)]; 5] = [
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", "Basic YTpi")],
        &[("authorization", &bearer)],
        &[("x-api-key", &key), ("x-api-secret", &secret)],
    ];
    for headers in strangers {
        for path in ["/admin/v1/partners", "/admin/v1/no-such-route"] {
            let answer = operator.anonymous(Method::GET, path, headers).await;
            refused(&answer, 401, "INVALID_CREDENTIALS");
        }
    }
}

#[tokio::test]
async fn an_order_without_vouchers_has_no_codes_yet() {
    let mut operator = Operator::of(shared());
    let sale = operator.product("vendor", 0).await;
    let mut partner = operator.partner("100").await;
    let order = accepted(&partner.order(&sale, 1).await, 202);
    let error = refused(
        &partner.codes(order["order_id"].as_str().unwrap()).await,
        409,
        "ORDER_NOT_READY",
    );
    assert_eq!(error["retryable"], true);
}

#[tokio::test]
async fn a_trace_of_the_partner_is_continued() {
    let mut partner = Operator::of(shared()).partner("1").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut headers = HeaderMap::new();
    partner.client.credentials().identify(&mut headers);
    headers.insert(
        "traceparent",
        HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    );
    let answer = partner
        .client
        .raw(Method::GET, "/api/v1/orders/ord_0", headers.clone(), "")
        .await
        .unwrap();
    assert_eq!(refused(&answer, 404, "ORDER_NOT_FOUND")["trace_id"], trace);
    headers.insert("traceparent", HeaderValue::from_static("00-zz-1-1"));
    let answer = partner
        .client
        .raw(Method::GET, "/api/v1/orders/ord_0", headers, "")
        .await
        .unwrap();
    assert_ne!(refused(&answer, 404, "ORDER_NOT_FOUND")["trace_id"], trace);
}

#[tokio::test]
async fn lists_refuse_what_they_do_not_know() {
    let mut partner = Operator::of(shared()).partner("1").await;
    for list in ["/categories", "/products", "/wallets", "/transactions"] {
        for (query, status, code) in [
            ("limit=0", 422, "VALIDATION_FAILED"),
            ("limit=101", 422, "VALIDATION_FAILED"),
            ("limit=x", 422, "VALIDATION_FAILED"),
            ("limit=1&limit=2", 422, "VALIDATION_FAILED"),
            ("colour=red", 422, "VALIDATION_FAILED"),
            ("cursor=", 400, "INVALID_CURSOR"),
            ("cursor=AAAA", 400, "INVALID_CURSOR"),
            ("cursor=%FF%00", 400, "INVALID_CURSOR"),
        ] {
            let answer = partner.get(&format!("{list}?{query}")).await;
            assert_eq!(
                answer.status.as_u16(),
                status,
                "{list}?{query}: {}",
                json_of(&answer)
            );
            refused(&answer, status, code);
        }
        for query in ["limit=1", "limit=100"] {
            accepted(&partner.get(&format!("{list}?{query}")).await, 200);
        }
    }
}
