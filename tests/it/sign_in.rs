//! Sign-in to the console: one-time links, the session's cookie, and the page that a browser returns to.

use hyper::Method;
use serde_json::json;
use sqlx::ConnectOptions as _;
use vouchsafe_test_harness::{Instance, Operator, expect_error, shared, text_of};

use crate::browser::{Browser, SAME_ORIGIN, issue_link, link_path};
use crate::commands::{run, run_json, utf8};
use crate::operator_accounts::{add_operator, failed_sign_ins, text};

#[tokio::test]
async fn link_signs_in_once_and_only_by_its_button() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let link = issue_link(&mut admin, &name).await;
    let token = link.split_once('=').unwrap().1.to_owned();
    let mut browser = Browser::of(service);
    for _ in 0..2 {
        let page = browser.open(&link).await;
        assert!(text_of(&page).contains(&format!("Sign in as {name}")), "{page:?}");
        assert_eq!(browser.cookie, None, "opening a link signs nobody in");
        assert_eq!(page.headers["referrer-policy"], "no-referrer");
        assert_eq!(page.headers["cache-control"], "no-store");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
    }
    let form = format!("token={token}");
    let signed_in = browser.submit("/sign-in/link", &form).await;
    assert_eq!(
        (signed_in.status.as_u16(), &signed_in.headers["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Lax; Path=/; Max-Age=86400");
    let account = browser.open("/account").await;
    assert!(
        text_of(&account).contains(&format!("<strong>{name}</strong>")),
        "{account:?}"
    );

    let mut other = Browser::of(service);
    let again = other.submit("/sign-in/link", &form).await;
    assert_eq!((again.status.as_u16(), &other.cookie), (401, &None), "{again:?}");
    assert_eq!(other.open(&link).await.status, 401);

    let started = &admin.audit_entries(&format!("operator={name}")).await[0];
    assert_eq!(
        (&started["action"], &started["after"]["method"]),
        (&json!("operator_session.start"), &json!("link"))
    );
    let issued = &admin.audit_entries(&format!("subject={name}")).await[0];
    assert_eq!(
        (&issued["action"], &issued["operator"]),
        (&json!("operator_sign_in_link.issue"), &json!("admin"))
    );
    let log = service.log();
    let session = value.split_once("=vsn_").unwrap().1;
    assert!(log.contains("operator signed in") && !log.contains(&token[4..]) && !log.contains(session));
}

#[tokio::test]
async fn link_ends_with_its_time_its_successor_and_its_account() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let mut browser = Browser::of(service);
    let replaced = issue_link(&mut admin, &name).await;
    let link = issue_link(&mut admin, &name).await;
    assert_eq!(browser.open(&replaced).await.status, 401);
    assert_eq!(browser.open(&link).await.status, 200);

    let account = format!("/admin/v1/operators/{name}");
    admin
        .send_json(Method::PATCH, &account, &json!({ "disabled": true }))
        .await;
    assert_eq!(
        browser.submit("/sign-in/link", &link[14..]).await.status,
        401,
        "disabled"
    );
    let refused = admin
        .call_json(Method::POST, &format!("{account}/sign-in-links"), "")
        .await;
    expect_error(&refused, 409, "OPERATOR_DISABLED");
    admin
        .send_json(Method::PATCH, &account, &json!({ "disabled": false }))
        .await;
    assert_eq!(browser.open(&link).await.status, 401, "removed with the account");
    let link = issue_link(&mut admin, &name).await;

    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = database.connect().await.unwrap();
    sqlx::query("UPDATE operator_sign_in_links SET expires_at = now() WHERE operator = $1")
        .bind(&name)
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(browser.open(&link).await.status, 401, "expired");
    assert_eq!(
        browser.submit("/sign-in/link", &link[14..]).await.status,
        401,
        "expired"
    );
    assert_eq!(browser.cookie, None);
}

#[tokio::test]
async fn page_without_session_leads_to_the_sign_in_and_back() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let mut browser = Browser::of(service);
    let redirected = browser.open("/account?a=b").await;
    let location = redirected.headers["location"].to_str().unwrap();
    assert_eq!(
        (redirected.status.as_u16(), location),
        (303, "/sign-in?next=%2Faccount%3Fa%3Db")
    );
    let page = browser.open(location).await;
    assert!(
        text_of(&page).contains(r#"name="next" value="/account?a=b""#),
        "{page:?}"
    );
    // A program wants the error, and the API has no pages.
    let program = browser.send(Method::GET, "/account", &[], "").await;
    assert_eq!(program.status, 401);
    assert_eq!(browser.open("/admin/v1/partners").await.status, 401);

    for (next, expected) in [
        ("%2Faccount%3Fa%3Db", "/account?a=b"),
        ("%2F%2Fevil.example", "/"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
    ] {
        // The whole link may be pasted.
        let link = issue_link(&mut admin, &name).await.replace('=', "%3D");
        let form = format!("next={next}&token=http%3A%2F%2F127.0.0.1{link}");
        let signed_in = browser.submit("/sign-in/link", &form).await;
        assert_eq!(signed_in.headers["location"], expected, "{next}");
    }
}

#[tokio::test]
async fn cookie_under_tls_is_secure_and_forms_come_from_the_console_url() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_CONSOLE_URL", "https://console.example.com"),
        ("VOUCHSAFE_LIMIT_AUTH", "3/86400"),
    ]);
    let mut admin = Operator::of(&service);
    let path = "/admin/v1/operators/admin/sign-in-links";
    let issued = admin.send_json(Method::POST, path, &json!({})).await;
    let url = text(&issued, "url");
    assert!(
        url.starts_with("https://console.example.com/sign-in/link?token=vsl_"),
        "{url}"
    );
    let form = &link_path(&issued)[14..];
    let mut browser = Browser::of(&service);
    for foreign in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[
            ("origin", "https://console.example.com"),
            ("sec-fetch-site", "cross-site"),
        ],
        &[("sec-fetch-site", "same-site")],
    ] {
        let refused = browser.send(Method::POST, "/sign-in/link", foreign, form).await;
        assert_eq!(
            (refused.status.as_u16(), &browser.cookie),
            (403, &None),
            "{foreign:?}"
        );
    }
    let own = [("origin", "https://console.example.com")];
    let signed_in = browser.send(Method::POST, "/sign-in/link", &own, form).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert!(value.starts_with("__Host-vouchsafe_session=vsn_"), "{value}");
    assert_eq!(
        attributes,
        "HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=86400"
    );
    assert_eq!(browser.open("/account").await.status, 200);

    // Failures are counted and limited; a link that someone else holds still works.
    let issued = admin.send_json(Method::POST, path, &json!({})).await;
    let mut stranger = Browser::of(&service);
    let wrong = format!("/sign-in/link?token=vsl_{}", "7".repeat(64));
    stranger.cookie = Some(format!("__Host-vouchsafe_session=vsn_{}", "7".repeat(64)));
    assert_eq!(stranger.status(Method::GET, "/admin/v1/partners").await, 401);
    assert_eq!(stranger.open(&wrong).await.status, 401);
    assert_eq!(stranger.submit("/sign-in/link", &wrong[14..]).await.status, 401);
    let limited = stranger.open(&wrong).await;
    assert_eq!(limited.status, 429);
    assert!(limited.headers.contains_key("retry-after"), "{limited:?}");
    let signed_in = browser
        .send(Method::POST, "/sign-in/link", &own, &link_path(&issued)[14..])
        .await;
    assert_eq!(signed_in.status, 303);
    assert_eq!(failed_sign_ins(&mut admin).await, 4);
    let log = service.log();
    assert_eq!(log.matches("security event").count(), 3, "{log}");
}

#[tokio::test]
async fn page_of_another_site_learns_nothing_and_uses_up_no_failed_sign_ins() {
    let service = Instance::start_with(&[("VOUCHSAFE_LIMIT_AUTH", "2/86400")]);
    let mut admin = Operator::of(&service);
    let link = issue_link(&mut admin, "admin").await;
    let wrong = format!("/sign-in/link?token=vsl_{}", "7".repeat(64));
    let mut browser = Browser::of(&service);
    for site in ["cross-site", "same-site"] {
        for path in [&wrong, &link] {
            let page = browser
                .send(Method::GET, path, &[("sec-fetch-site", site)], "")
                .await;
            let text = text_of(&page);
            assert_eq!(page.status, 200, "{site}: {text}");
            assert!(text.contains(&format!("href=\"{path}\"")), "{site}: {text}");
            assert!(!text.contains("Sign in as"), "{site}: {text}");
        }
        let incomplete = "/sign-in/link?token=vsl_7";
        let refused = browser
            .send(Method::GET, incomplete, &[("sec-fetch-site", site)], "")
            .await;
        assert_eq!(refused.status, 401, "{site}: {refused:?}");
    }
    assert_eq!(browser.open("/sign-in/link").await.status, 401, "no guess");
    assert_eq!(browser.submit("/sign-in/link", "token=typo").await.status, 401);

    // The person follows the link of the page.
    let page = browser.send(Method::GET, &link, &[SAME_ORIGIN], "").await;
    assert!(text_of(&page).contains("Sign in as admin"), "{page:?}");
    for expected in [401, 401, 429] {
        assert_eq!(browser.open(&wrong).await.status, expected, "a guess");
    }
    let guess = browser.submit("/sign-in/link", &wrong[14..]).await;
    assert_eq!(guess.status, 429);
    assert_eq!(failed_sign_ins(&mut admin).await, 4);
}

#[tokio::test]
async fn new_sign_in_ends_the_session_that_its_browser_had() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (jane, _) = add_operator(&mut admin, "viewer").await;
    let (sam, _) = add_operator(&mut admin, "viewer").await;
    let mut browser = Browser::signed_in(service, &mut admin, &jane).await;
    let mut elsewhere = Browser::signed_in(service, &mut admin, &jane).await;
    let mut previous = Browser::of(service);
    previous.cookie.clone_from(&browser.cookie);
    assert_eq!(browser.submit("/sign-in/link", "token=typo").await.status, 401);
    assert_eq!(
        previous.status(Method::GET, "/admin/v1/partners").await,
        200,
        "a failed sign-in ends nothing"
    );
    let link = issue_link(&mut admin, &sam).await;
    assert_eq!(browser.submit("/sign-in/link", &link[14..]).await.status, 303);
    for (session, expected) in [(&mut previous, 401), (&mut elsewhere, 200), (&mut browser, 200)] {
        assert_eq!(session.status(Method::GET, "/admin/v1/partners").await, expected);
    }
    let trail = admin.audit_entries(&format!("operator={sam}")).await;
    let actions: Vec<_> = trail.iter().map(|entry| text(entry, "action")).collect();
    assert_eq!(actions, ["operator_session.end", "operator_session.start"]);
    assert_eq!(trail[0]["after"]["operator"], json!(jane));
}

#[tokio::test]
async fn commands_sign_in_and_out() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    for arguments in [
        &["operator", "sign-in", &name][..],
        &["operator", "sign-in", &name, "--break-glass"],
    ] {
        let issued = run_json(arguments);
        assert_eq!(issued["operator"], json!(name));
        let mut browser = Browser::of(service);
        let form = &link_path(&issued)[14..];
        assert_eq!(
            browser.submit("/sign-in/link", form).await.status,
            303,
            "{arguments:?}"
        );
        let listed = run_json(&["operator", "sessions", &name]);
        let session = text(&listed["data"][0], "session_id");
        assert_eq!(browser.status(Method::GET, "/admin/v1/partners").await, 200);
        run_json_or_empty(&["operator", "sign-out", &session]);
        assert_eq!(browser.status(Method::GET, "/admin/v1/partners").await, 401);
    }
    let audited = admin.audit_entries(&format!("subject={name}")).await;
    let by: Vec<_> = audited.iter().map(|entry| text(entry, "operator")).collect();
    assert_eq!(by[..2], ["command-line", "admin"]);
    let unknown = run(&["operator", "sign-in", "nobody", "--break-glass"]);
    let error = utf8(&unknown.stderr);
    assert!(
        !unknown.status.success() && error.contains("no such operator"),
        "{error}"
    );
}

fn run_json_or_empty(arguments: &[&str]) {
    let output = run(arguments);
    assert!(output.status.success(), "{}", utf8(&output.stderr));
}

#[tokio::test]
async fn sign_out_ends_the_session_and_removes_the_cookie() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let mut browser = Browser::signed_in(service, &mut admin, &name).await;
    let cookie = browser.cookie.clone();
    let foreign = browser
        .send(Method::POST, "/sign-out", &[("sec-fetch-site", "cross-site")], "")
        .await;
    assert_eq!((foreign.status.as_u16(), &browser.cookie), (403, &cookie));
    let signed_out = browser.send(Method::POST, "/sign-out", &[SAME_ORIGIN], "").await;
    assert_eq!((signed_out.status.as_u16(), &browser.cookie), (303, &None));
    browser.cookie = cookie;
    assert_eq!(
        browser.status(Method::GET, "/admin/v1/partners").await,
        401,
        "the session has ended"
    );
    assert_eq!(browser.submit("/sign-out", "").await.status, 303, "again");
    let trail = admin.audit_entries(&format!("operator={name}")).await;
    assert_eq!(trail[0]["action"], "operator_session.end");
}
