//! What holds for every form: it is carried out once, changes only what the operator changed, and survives
//! the end of a session.

use hyper::Method;
use serde_json::json;
use vouchsafe_test_harness::{Operator, shared, text_of, unique};

use super::Browser;
use crate::browser::{self, SAME_ORIGIN};
use crate::operator_accounts::add_operator;

/// The value of a hidden field of the form with this address.
fn hidden(page: &str, address: &str, name: &str) -> String {
    let form = page.split(&format!("action=\"{address}\"")).nth(1).unwrap();
    let field = form.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
    field.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn form_that_is_sent_twice_issues_one_credential() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let mut browser = Browser::of(shared());
    let page = format!("/partners/{}", partner.partner_id);
    let address = format!("{page}/issue");
    let form_id = hidden(&browser.read(&page).await, &address, "form_id");
    let fields = [("form_id", form_id.as_str()), ("allowlist", "")];
    let issued = browser.submit(&address, &fields).await;
    assert!(
        text_of(&issued).contains("shown only now"),
        "{}",
        text_of(&issued)
    );
    let repeated = browser.submit(&address, &fields).await;
    assert_eq!(repeated.status, 409);
    assert!(
        text_of(&repeated).contains("was not sent again"),
        "{}",
        text_of(&repeated)
    );
    let listed = operator
        .get(&format!("/admin/v1/partners/{}/credentials", partner.partner_id))
        .await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn two_operators_who_change_different_terms_keep_both_changes() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let mut browser = Browser::of(shared());
    let page = format!("/partners/{}", partner.partner_id);
    let shown = browser.read(&page).await;
    let address = format!("{page}/limits");
    let before = |name: &str| hidden(&shown, &address, &format!("before:{name}"));
    let [orders, general] = ["limits.orders", "limits.general"].map(before);
    let other = json!({ "limits": { "general": { "quota": 7, "window_s": 60 } } });
    operator.patch_partner(&partner, &other).await;
    let fields = [
        ("before:limits.orders", orders.as_str()),
        ("limits.orders", "50/60"),
        ("before:limits.general", general.as_str()),
        ("limits.general", general.as_str()),
    ];
    let changed = browser.submit(&address, &fields).await;
    assert_eq!(changed.status, 303, "{}", text_of(&changed));
    let now = operator
        .get(&format!("/admin/v1/partners/{}", partner.partner_id))
        .await;
    assert_eq!(now["limits"]["orders"]["quota"], 50, "{now}");
    assert_eq!(now["limits"]["general"]["quota"], 7, "{now}");

    let stale = [
        ("before:limits.general", general.as_str()),
        ("limits.general", "9/60"),
    ];
    let refused = browser.submit(&address, &stale).await;
    assert_eq!(refused.status, 409);
    let refused = text_of(&refused);
    assert!(
        refused.contains("is “7/60” now") && refused.contains("value=\"9/60\""),
        "{refused}"
    );
}

#[tokio::test]
async fn form_after_the_session_ended_is_kept_and_a_foreign_one_is_not() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "operator").await;
    let mut jane = browser::Browser::signed_in(service, &mut admin, &name).await;
    let sessions = admin.get(&format!("/admin/v1/sessions?operator={name}")).await;
    let session = sessions["data"][0]["session_id"].as_str().unwrap();
    let path = format!("/admin/v1/sessions/{session}");
    admin.send_json(Method::DELETE, &path, &json!(null)).await;

    let reason = unique("typed");
    let form = format!("reason={reason}");
    let address = format!("/orders/ord_{}/reject", "0".repeat(32));
    let html = ("accept", "text/html");
    let ended = jane
        .send(Method::POST, &address, &[html, SAME_ORIGIN], &form)
        .await;
    assert_eq!(ended.status, 401);
    let page = text_of(&ended);
    for text in [
        "Your session has ended",
        reason.as_str(),
        address.as_str(),
        "/sign-in",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for (name, value) in vouchsafe_ui::PAGE_HEADERS {
        assert_eq!(ended.header(name), Some(value));
    }
    let cross_site = ("sec-fetch-site", "cross-site");
    let foreign = jane
        .send(Method::POST, &address, &[html, cross_site], &form)
        .await;
    assert_eq!(foreign.status, 401);
    assert!(!text_of(&foreign).contains(&reason), "{}", text_of(&foreign));
}

#[tokio::test]
async fn category_and_product_are_created_and_changed() {
    let mut browser = Browser::of(shared());
    let [category, product] = ["cat", "prod"].map(unique);
    let fields = [
        ("category_id", category.as_str()),
        ("name", "Games"),
        ("parent_id", ""),
    ];
    let shown = browser.submit_and_follow("/categories/create", &fields).await;
    assert!(shown.contains(&category), "{shown}");
    let mut fields = vec![
        ("product_id", product.as_str()),
        ("name", "Game card"),
        ("brand", "Acme"),
        ("category_id", category.as_str()),
        ("vendor", "mock"),
        ("currency", "USD"),
        ("denominations", "10.00\r\n25.00"),
        ("denomination_range", ""),
        ("countries", "US"),
        ("expiry_policy.type", "MONTHS_FROM_ISSUE"),
        ("expiry_policy.expires_on", ""),
        ("expiry_policy.valid_months", "12"),
        ("route", "stock"),
        ("approval", "rule"),
        ("code_identity", "code"),
        ("redemption.instructions", "Enter the code."),
    ];
    let page = format!("/products/{product}");
    let created = browser.submit("/products/create", &fields).await;
    assert_eq!(created.status, 303, "{}", text_of(&created));
    let shown = browser.read(&page).await;
    assert!(
        shown.contains("Game card") && shown.contains("Enter the code."),
        "{shown}"
    );
    fields[1].1 = "Game card 2";
    fields.push(("discontinued", "on"));
    let shown = browser
        .submit_and_follow(&format!("{page}/change"), &fields[1..])
        .await;
    assert!(shown.contains("The product was changed."), "{shown}");
    assert!(
        shown.contains("Game card 2") && shown.contains("<dt>Discontinued</dt><dd>yes</dd>"),
        "{shown}"
    );
}

/// Sends a form of several parts as it is.
async fn send_parts(boundary: &str, body: String) -> u16 {
    let mut browser = Browser::of(shared());
    let content_type = format!("multipart/form-data; boundary={boundary}");
    let address = "/products/sbx-instant/import";
    let response = browser
        .operator
        .call(Method::POST, address, &content_type, body)
        .await;
    response.status.as_u16()
}

#[tokio::test]
async fn malformed_form_is_refused_and_ends() {
    let head = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";
    let long_name = format!(
        "Content-Disposition: form-data; name=\"{}\"\r\n\r\n\r\n",
        "n".repeat(100_000)
    );
    let many = format!("--boundary\r\n{long_name}").repeat(4);
    for (boundary, body, status) in [
        ("a", "\n".to_owned(), 400),
        ("abc", "--\n".to_owned(), 400),
        ("boundary", format!("--boundary\r\n{head}value"), 400),
        ("boundary", "no line end ".repeat(30_000), 413),
        ("boundary", many, 413),
        (
            "boundary",
            format!("--boundary\r\n{head}{}", "v".repeat(300_000)),
            413,
        ),
        // The parser waits for the rest of what may be the boundary.
        ("boundary", format!("--boundary\r\n{head}v\r\n--bou"), 408),
    ] {
        let begin: String = body.chars().take(40).collect();
        assert_eq!(send_parts(boundary, body).await, status, "{boundary} {begin}");
    }
}
