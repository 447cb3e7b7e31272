//! gzip of lists, and of nothing else.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use hyper::Method;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, VARY};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client};
use vouchsafe_test_harness::{Operator, expect_success, id_of, order_body, shared, text_of, unique};

use crate::access::api_headers;

fn with_accepted(headers: &HeaderMap, encoding: &'static str) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
    headers
}

async fn get(client: &mut Client, path: &str, headers: HeaderMap) -> ApiResponse {
    client
        .call(Method::GET, &format!("/api/v1{path}"), headers, Bytes::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn list_is_compressed_on_request_and_orders_and_codes_never() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    let order = expect_success(&partner.order(&sale, 10).await, 201);
    expect_success(&partner.order(&sale, 10).await, 201);
    let mut client = Client::new(Origin::parse(&format!("http://{}", shared().http_address())).unwrap());
    let headers = api_headers(&partner);
    for path in ["/orders", "/events", "/products?limit=100", "/transactions"] {
        let plain = get(&mut client, path, headers.clone()).await;
        let packed = get(&mut client, path, with_accepted(&headers, "gzip, deflate, br")).await;
        for response in [&plain, &packed] {
            let mut vary = response.headers.get_all(VARY).iter();
            assert!(vary.any(|part| part == "Accept-Encoding"), "{path}");
        }
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let is_packed = text_of(&plain).len() >= 1_400;
        let encoding = packed.header("content-encoding");
        assert_eq!(encoding, is_packed.then_some("gzip"), "{path}");
        if is_packed {
            let mut text = String::new();
            GzDecoder::new(&packed.body[..])
                .read_to_string(&mut text)
                .unwrap();
            // Other tests add products.
            if !path.starts_with("/products") {
                assert_eq!(text, text_of(&plain), "{path}");
            }
            assert!(packed.body.len() * 2 < text.len(), "{path}");
            let tag = packed.header("etag");
            assert!(tag.is_none_or(|tag| tag.starts_with("W/")), "{path}: {tag:?}");
        }
        let refused = get(&mut client, path, with_accepted(&headers, "gzip;q=0, identity")).await;
        assert_eq!(refused.header("content-encoding"), None, "{path}");
    }
    let path = format!("/orders/{}", id_of(&order));
    let one = get(&mut client, &path, with_accepted(&headers, "gzip")).await;
    assert!(one.body.len() >= 1_400 && one.header("content-encoding").is_none());
    let accept = [(ACCEPT_ENCODING, "gzip")];
    let accept: HeaderMap = accept
        .into_iter()
        .map(|(name, value): (HeaderName, &str)| (name, HeaderValue::from_static(value)))
        .collect();
    let codes = partner
        .client
        .send_signed(Method::GET, &format!("{path}/vouchers"), "", accept.clone())
        .await
        .unwrap();
    assert_eq!(
        (codes.status.as_u16(), codes.header("content-encoding")),
        (200, None)
    );
    assert!(codes.body.len() >= 1_400);
    let mut keyed = accept;
    keyed.insert("idempotency-key", HeaderValue::from_str(&unique("key")).unwrap());
    let body = order_body(&sale, 1).to_string();
    let placed = partner
        .client
        .send_signed(Method::POST, "/orders", body, keyed)
        .await
        .unwrap();
    assert_eq!(placed.header("content-encoding"), None);
}
