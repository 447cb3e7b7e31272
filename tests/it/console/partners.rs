//! Partners in the console: onboarding, terms, credentials, wallets.

use vouchsafe_test_harness::{Operator, shared, text_of, unique};

use super::{Browser, forms};

/// The value of a fact that is shown once.
fn fact<'a>(page: &'a str, name: &str) -> &'a str {
    let after = page.split(&format!("<dt>{name}</dt><dd>")).nth(1);
    let after = after.map(|value| value.trim_start_matches("<code data-copy>"));
    after
        .and_then(|rest| rest.split('<').next())
        .unwrap_or_else(|| panic!("no {name} in {page}"))
}

#[tokio::test]
async fn partner_is_onboarded_by_the_console_alone() {
    let mut browser = Browser::of(shared());
    let name = unique("Console & Co ");
    let refused = browser
        .submit(
            "/partners/create",
            &[("name", &name), ("allowlist", "10.0.0.0/99")],
        )
        .await;
    assert_eq!(refused.status, 422);
    let refused = text_of(&refused);
    assert!(
        refused.contains("10.0.0.0/99") && refused.contains("aria-invalid=\"true\""),
        "{refused}"
    );
    let created = browser
        .submit(
            "/partners/create",
            &[("name", &name), ("allowlist", "127.0.0.0/8")],
        )
        .await;
    assert_eq!(created.status, 200);
    let created = text_of(&created);
    let partner_id = created
        .split("href=\"/partners/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(created.contains("API secret"), "{created}");
    let page = format!("/partners/{partner_id}");
    let top_up = [("currency", "USD"), ("amount", "250.00"), ("reference", "wire-7")];
    let shown = browser
        .submit_and_follow(&format!("{page}/top-up"), &top_up)
        .await;
    assert!(
        shown.contains("The amount was added") && shown.contains("250.00"),
        "{shown}"
    );
    let adjust = [("currency", "USD"), ("amount", "-0.50"), ("reference", "fee-1")];
    let shown = browser
        .submit_and_follow(&format!("{page}/adjust"), &adjust)
        .await;
    assert!(shown.contains("249.50") && shown.contains("fee-1"), "{shown}");
    let ledger = browser
        .read(&format!("{page}/transactions?type=ADJUSTMENT"))
        .await;
    assert!(ledger.contains("fee-1") && !ledger.contains("wire-7"), "{ledger}");

    let issued = browser
        .submit(&format!("{page}/issue"), &[("allowlist", "127.0.0.1")])
        .await;
    let issued = text_of(&issued);
    let credential = fact(issued, "Credential ID").to_owned();
    let secret = fact(issued, "API secret").to_owned();
    assert!(secret.len() > 20, "{issued}");
    let shown = browser.read(&page).await;
    assert!(
        shown.contains(&format!("<code>{credential}</code>")) && !shown.contains(&secret),
        "the secret is shown again"
    );
    let rotation = [("credential_id", credential.as_str()), ("overlap_seconds", "0")];
    let rotated = browser
        .submit(&format!("{page}/credentials/rotate"), &rotation)
        .await;
    assert_ne!(fact(text_of(&rotated), "Credential ID"), credential);
}

#[tokio::test]
async fn terms_form_shows_current_values_and_changes_them() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let page = format!("/partners/{}", partner.partner_id);
    let mut browser = Browser::of(shared());
    let limits = [
        ("limits.orders", "7/9"),
        ("limits.general", ""),
        ("limits.auth", ""),
        ("limits.vouchers", ""),
    ];
    let shown = browser
        .submit_and_follow(&format!("{page}/limits"), &limits)
        .await;
    assert!(shown.contains("name=\"limits.orders\" value=\"7/9\""), "{shown}");
    let wrong = [("limits.orders", "7 per 9")];
    let refused = browser.submit(&format!("{page}/limits"), &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(
        text_of(&refused).contains("value=\"7 per 9\""),
        "{}",
        text_of(&refused)
    );
    let rule = [
        ("approval_rule", "on"),
        ("approval_rule.amount_over", "USD 500.00\r\nEUR 450"),
        ("approval_rule.other_currencies", "approve"),
        ("approval_rule.first_orders", "3"),
    ];
    let terms = [("catalogue", ""), ("cancel_window_s", "60")];
    browser.submit_and_follow(&format!("{page}/terms"), &terms).await;
    let shown = browser
        .submit_and_follow(&format!("{page}/approval-rule"), &rule)
        .await;
    assert!(shown.contains("EUR 450.00\nUSD 500.00</textarea>"), "{shown}");
    let suspended = browser
        .submit_and_follow(&format!("{page}/suspend"), &[("codes_blocked", "on")])
        .await;
    assert!(suspended.contains("The partner is suspended."), "{suspended}");
    assert!(forms(&suspended).contains(&format!("{page}/resume").as_str()));
    assert!(!forms(&suspended).contains(&format!("{page}/suspend").as_str()));
    let path = format!("/admin/v1{page}");
    let stored = operator.get(&path).await;
    assert_eq!(
        (&stored["suspended"], &stored["codes_blocked"]),
        (&true.into(), &true.into())
    );
    assert_eq!(stored["cancel_window_s"], 60);
    assert_eq!(
        stored["approval_rule"],
        serde_json::json!({"amount_over": {"EUR": 450.0, "USD": 500.0}, "other_currencies": "approve", "first_orders": 3})
    );
    browser.submit_and_follow(&format!("{page}/resume"), &[]).await;
    assert_eq!(operator.get(&path).await["suspended"], false);
    let allowlist = [("allowlist", "10.0.0.0/8\r\n::1/128")];
    browser
        .submit_and_follow(&format!("{page}/allowlist"), &allowlist)
        .await;
    assert_eq!(
        operator.get(&path).await["allowlist"],
        serde_json::json!(["10.0.0.0/8", "::1/128"])
    );
}
