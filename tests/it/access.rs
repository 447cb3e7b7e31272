//! Who is let in, from where, and what is everybody else told?

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_load::client::Answer;
use vouchsafe_load::signer::{API_KEY, API_SECRET};

use crate::support::{Operator, Partner, accepted, order_of, refused, shared};

/// An error without what differs from one request to the next.
fn without_trace(answer: &Answer, status: u16, code: &str) -> (Value, Vec<String>) {
    let mut error = refused(answer, status, code);
    error["trace_id"] = Value::Null;
    let headers = answer.headers.iter();
    let headers = headers.filter(|(name, _)| !["x-trace-id", "date"].contains(&name.as_str()));
    let mut headers: Vec<_> = headers
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort_unstable();
    (error, headers)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers[name].to_str().unwrap().to_owned()
}

fn changed(partner: &Partner, change: impl Fn(&mut HeaderMap)) -> HeaderMap {
    let mut headers = HeaderMap::new();
    partner.client.credentials().identify(&mut headers);
    change(&mut headers);
    headers
}

#[tokio::test]
async fn every_way_to_be_a_stranger_looks_the_same() {
    let mut operator = Operator::of(shared());
    let (mut partner, other, revoked) = (
        operator.partner("1").await,
        operator.partner("1").await,
        operator.partner("1").await,
    );
    operator.revoke(&revoked).await;
    let honest = changed(&partner, |_| {});
    let (key, secret) = (text(&honest, &API_KEY), text(&honest, &API_SECRET));
    let set = |headers: &mut HeaderMap, name: &HeaderName, value: &str| {
        headers.insert(name.clone(), HeaderValue::from_str(value).unwrap());
    };
    let unknown = format!("{}{}", &key[..key.len() - 8], "00000000");
    let strangers = [
        (
            "no key",
            changed(&partner, |headers| drop(headers.remove(API_KEY))),
        ),
        (
            "no secret",
            changed(&partner, |headers| drop(headers.remove(API_SECRET))),
        ),
        ("nothing", HeaderMap::new()),
        (
            "an unknown key",
            changed(&partner, |headers| set(headers, &API_KEY, &unknown)),
        ),
        (
            "no key at all",
            changed(&partner, |headers| set(headers, &API_KEY, "' OR 1=1 --")),
        ),
        (
            "an empty key",
            changed(&partner, |headers| set(headers, &API_KEY, "")),
        ),
        (
            "a key of production",
            changed(&partner, |headers| {
                set(headers, &API_KEY, &key.replace("vs_sandbox_", "vs_live_"));
            }),
        ),
        (
            "the key in capitals",
            changed(&partner, |headers| set(headers, &API_KEY, &key.to_uppercase())),
        ),
        (
            "a wrong secret",
            changed(&partner, |headers| {
                set(headers, &API_SECRET, &secret.to_uppercase())
            }),
        ),
        (
            "half a secret",
            changed(&partner, |headers| {
                set(headers, &API_SECRET, &secret[..secret.len() / 2])
            }),
        ),
        (
            "the secret of another",
            changed(&partner, |headers| {
                headers.insert(API_SECRET, changed(&other, |_| {})[API_SECRET].clone());
            }),
        ),
        (
            "two keys",
            changed(&partner, |headers| {
                headers.append(API_KEY, honest[API_KEY].clone());
            }),
        ),
        (
            "two secrets",
            changed(&partner, |headers| {
                headers.append(API_SECRET, honest[API_SECRET].clone());
            }),
        ),
        ("revoked", changed(&revoked, |_| {})),
    ];
    assert!(key.starts_with("vs_sandbox_"));
    let mut told = Vec::new();
    for (who, headers) in strangers {
        let answer = partner
            .client
            .raw(Method::GET, "/api/v1/wallets", headers, "")
            .await
            .unwrap();
        assert_eq!(answer.status, 401, "{who}: {:?}", answer.body);
        told.push(without_trace(&answer, 401, "INVALID_CREDENTIALS"));
    }
    assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    accepted(&partner.get("/wallets").await, 200);
}

#[tokio::test]
async fn an_unknown_key_with_a_signature_looks_like_a_wrong_secret_with_one() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(1).await;
    let mut partner = operator.partner("100").await;
    let body = order_of(&sale, 1).to_string();
    let mut told = Vec::new();
    for (name, value) in [(API_KEY, "vs_sandbox_unknown"), (API_SECRET, "wrong")] {
        let mut headers = partner.headers("/api/v1/orders", body.as_bytes());
        headers.insert(name, HeaderValue::from_static(value));
        let answer = partner.post(headers, body.clone()).await;
        told.push(without_trace(&answer, 401, "INVALID_CREDENTIALS"));
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn every_route_needs_credentials() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.partner("1").await;
    for (method, path) in [
        (Method::GET, "/categories"),
        (Method::GET, "/products"),
        (Method::GET, "/products/sbx-instant"),
        (Method::POST, "/orders"),
        (Method::GET, "/orders/ord_0"),
        (Method::GET, "/orders/ord_0/vouchers"),
        (Method::GET, "/wallets"),
        (Method::GET, "/transactions"),
        (Method::POST, "/credentials/rotate"),
    ] {
        let path = format!("/api/v1{path}");
        let answer = partner
            .client
            .raw(method, &path, HeaderMap::new(), "")
            .await
            .unwrap();
        refused(&answer, 401, "INVALID_CREDENTIALS");
    }
}

#[tokio::test]
async fn an_address_off_the_allowlist_is_refused_after_the_credentials_matched() {
    let mut operator = Operator::of(shared());
    for allowlist in [&["192.0.2.0/24", "2001:db8::/32"][..], &[]] {
        let mut partner = operator.partner_at(allowlist).await;
        let error = refused(&partner.get("/wallets").await, 403, "IP_NOT_ALLOWED");
        assert!(
            error["message"].as_str().unwrap().contains("127.0.0.1"),
            "{error}"
        );
        let answer = partner.signed(Method::POST, "/orders", "{}").await;
        refused(&answer, 403, "IP_NOT_ALLOWED");
        // Who does not know the secret is not told that there is a list.
        let wrong = changed(&partner, |headers| {
            drop(headers.insert(API_SECRET, HeaderValue::from_static("wrong")))
        });
        let answer = partner
            .client
            .raw(Method::GET, "/api/v1/wallets", wrong, "")
            .await
            .unwrap();
        refused(&answer, 401, "INVALID_CREDENTIALS");
        operator
            .patch(&partner, &json!({ "allowlist": ["127.0.0.1"] }))
            .await;
        accepted(&partner.get("/wallets").await, 200);
    }
}

#[tokio::test]
async fn nobody_talks_himself_onto_the_allowlist() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.partner_at(&["192.0.2.7"]).await;
    for (name, value) in [
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7"),
        ("x-real-ip", "192.0.2.7"),
        ("true-client-ip", "192.0.2.7"),
    ] {
        let spoofed = changed(&partner, |headers| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        });
        let answer = partner
            .client
            .raw(Method::GET, "/api/v1/wallets", spoofed, "")
            .await
            .unwrap();
        refused(&answer, 403, "IP_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn a_credential_may_narrow_its_partners_list() {
    let mut operator = Operator::of(shared());
    let partner = operator.partner("1").await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    for (allowlist, status) in [
        (json!(["192.0.2.0/24"]), 403),
        (json!([]), 403),
        (json!(["127.0.0.1"]), 200),
    ] {
        let issued = operator
            .put(Method::POST, &path, &json!({ "allowlist": allowlist }))
            .await;
        let narrowed = changed(&partner, |headers| {
            for (name, field) in [(API_KEY, "api_key"), (API_SECRET, "api_secret")] {
                headers.insert(
                    name,
                    HeaderValue::from_str(issued[field].as_str().unwrap()).unwrap(),
                );
            }
        });
        let answer = partner
            .again()
            .client
            .raw(Method::GET, "/api/v1/wallets", narrowed, "")
            .await
            .unwrap();
        assert_eq!(answer.status.as_u16(), status, "{allowlist}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn a_suspended_partner_is_told_so_until_it_is_not() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(1).await;
    let mut partner = operator.partner("100").await;
    operator.patch(&partner, &json!({ "suspended": true })).await;
    refused(&partner.get("/wallets").await, 403, "PARTNER_SUSPENDED");
    refused(&partner.order(&sale, 1).await, 403, "PARTNER_SUSPENDED");
    operator.patch(&partner, &json!({ "suspended": false })).await;
    accepted(&partner.order(&sale, 1).await, 201);
}

#[tokio::test]
async fn a_revoked_credential_is_out_at_once_and_the_next_one_works() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.partner("1").await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.put(Method::POST, &path, &json!({})).await;
    accepted(&partner.get("/wallets").await, 200);
    operator.revoke(&partner).await;
    refused(&partner.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    let next = changed(&partner, |headers| {
        for (name, field) in [(API_KEY, "api_key"), (API_SECRET, "api_secret")] {
            headers.insert(
                name,
                HeaderValue::from_str(issued[field].as_str().unwrap()).unwrap(),
            );
        }
    });
    let answer = partner
        .client
        .raw(Method::GET, "/api/v1/wallets", next, "")
        .await
        .unwrap();
    accepted(&answer, 200);
}
