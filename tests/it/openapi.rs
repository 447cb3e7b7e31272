//! Served OpenAPI documents and their routes.

use hyper::Method;
use hyper::header::HeaderMap;

use vouchsafe_test_harness::{Listener, Operator, expect_error, expect_success, shared};

#[tokio::test]
async fn listeners_serve_own_document_without_credentials() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    let anonymous = HeaderMap::new();
    let response = partner
        .client
        .send_raw(Method::GET, "/openapi.json", anonymous, "")
        .await
        .unwrap();
    let of_partners = expect_success(&response, 200);
    let of_operators = expect_success(
        &operator
            .call_without_token(Method::GET, "/openapi.json", &[])
            .await,
        200,
    );
    for (document, own, foreign) in [
        (of_partners, "/orders", "/admin/v1/partners"),
        (of_operators, "/admin/v1/partners", "/orders"),
    ] {
        assert_eq!(document["openapi"], "3.1.0");
        assert!(document["paths"][own].is_object(), "{own}");
        assert!(document["paths"][foreign].is_null(), "{foreign}");
    }
}

/// The client checks the `Allow` header of each 405 against the document.
#[tokio::test]
async fn documented_paths_exist_with_their_methods() {
    let service = shared();
    let mut operator = Operator::of(service);
    let mut partner = operator.add_partner("0").await;
    for path in paths(Listener::Partner) {
        let response = partner
            .client
            .send_raw(Method::TRACE, &path, HeaderMap::new(), "")
            .await
            .unwrap();
        expect_error(&response, 405, "METHOD_NOT_ALLOWED");
    }
    for path in paths(Listener::Operator) {
        let response = operator.call_json(Method::TRACE, &path, "").await;
        expect_error(&response, 405, "METHOD_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn secured_operations_without_credentials_are_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    for listener in [Listener::Partner, Listener::Operator] {
        for (template, item) in listener.document().served()["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let path = &fill_template(template);
                let method: Method = method.to_uppercase().parse().unwrap();
                let response = match listener {
                    Listener::Partner => partner
                        .client
                        .send_raw(method, path, HeaderMap::new(), "")
                        .await
                        .unwrap(),
                    Listener::Operator => operator.call_without_token(method, path, &[]).await,
                };
                let refused = response.error_code().as_deref() == Some("INVALID_CREDENTIALS");
                let is_secured = operation["security"] != serde_json::json!([]);
                assert_eq!(refused, is_secured, "{path}: {response:?}");
            }
        }
    }
}

fn paths(listener: Listener) -> Vec<String> {
    let paths = listener.document().served()["paths"].as_object().unwrap();
    paths.keys().map(|path| fill_template(path)).collect()
}

fn fill_template(template: &str) -> String {
    template.replace(['{', '}'], "x")
}
