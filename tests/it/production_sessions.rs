//! Sessions of browsers in production: over https only.

use hyper::Method;
use vouchsafe_private_postgres::Durability;
use vouchsafe_test_harness::{Database, Operator, expect_error, expect_success};

use crate::browser::Browser;
use crate::commands::run_in_production;
use crate::operator_accounts::text;
use crate::production::{start_production, start_production_with};

/// Over plain HTTP on loopback a browser would send the cookie to every port of the machine.
#[tokio::test(flavor = "multi_thread")]
async fn production_has_no_sessions_over_plain_http() {
    let database = Database::create_on(Durability::Durable).await;
    let service = start_production(&database);
    let jane = run_in_production(&database, &["operator", "create", "jane", "--admin"]);
    let jane = text(&jane, "token");
    let mut admin = Operator::of(&service).with_token(&jane);
    let links = "/admin/v1/operators/jane/sign-in-links";
    let refused = admin.call_json(Method::POST, links, "").await;
    let error = expect_error(&refused, 403, "FORBIDDEN");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("VOUCHSAFE_CONSOLE_URL"),
        "{error}"
    );
    let mut browser = Browser::of(&service);
    for path in [
        "/sign-in",
        "/sign-in/link?token=a",
        "/sign-in/oidc",
        "/sign-in/callback",
    ] {
        let page = browser.open(path).await;
        assert_eq!((page.status.as_u16(), &browser.cookie), (403, &None), "{path}");
    }
    // Also the token of a session is none, and a guess of it no event.
    browser.cookie = Some(format!("vouchsafe_session=vsn_{}", "7".repeat(64)));
    assert_eq!(browser.status(Method::GET, "/admin/v1/partners").await, 401);
    assert!(!service.log().contains("security event"), "{}", service.log());
    drop(service);
    let https = ("VOUCHSAFE_CONSOLE_URL", "https://console.example.com");
    let service = start_production_with(&database, &[https]);
    let mut admin = Operator::of(&service).with_token(&jane);
    let issued = admin.call_json(Method::POST, links, "").await;
    let url = expect_success(&issued, 201)["url"].as_str().unwrap().to_owned();
    assert!(
        url.starts_with("https://console.example.com/sign-in/link?token="),
        "{url}"
    );
    drop(service);
    database.remove().await;
}
