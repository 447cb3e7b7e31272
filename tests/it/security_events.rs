//! Security events: right secrets from foreign addresses and failed sign-ins of operators, in responses, log,
//! metrics and audit log.

use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::signer::API_SECRET;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, WAIT_TIMEOUT, eventually, expect_error, expect_success, text_of,
};

use crate::access::{api_headers, get_wallets};
use crate::browser::Browser;

const FOREIGN: &str = "198.51.100.9";

const HOME: &str = "203.0.113.7";

async fn read_from(partner: &mut Partner, address: &str) -> ApiResponse {
    let mut headers = api_headers(partner);
    headers.insert(
        HeaderName::from_static("x-forwarded-for"),
        HeaderValue::from_str(address).unwrap(),
    );
    get_wallets(partner, headers).await
}

/// The number of events with this reason.
async fn count_events(operator: &mut Operator, reason: &str) -> String {
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let series = format!("vouchsafe_security_events_total{{reason=\"{reason}\"}} ");
    let text = text_of(&metrics);
    let count = text.lines().find_map(|line| line.strip_prefix(&series));
    count.unwrap_or_else(|| panic!("no {series}")).to_owned()
}

/// Waits for the audit entries of this action.
async fn wait_for_entries(operator: &mut Operator, action: &str) -> Vec<Value> {
    eventually("the audit entry of a security event", WAIT_TIMEOUT, async || {
        let entries = operator.audit_entries(&format!("action={action}")).await;
        (!entries.is_empty()).then_some(entries)
    })
    .await
}

#[tokio::test]
async fn right_secret_from_foreign_address_is_limited_logged_counted_and_audited() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_TRUSTED_PROXIES", "127.0.0.0/8"),
        ("VOUCHSAFE_LIMIT_AUTH", "3/86400"),
    ]);
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner_with_allowlist(&[HOME]).await;
    assert_eq!(count_events(&mut operator, "foreign_address").await, "0");
    for _ in 0..3 {
        let error = expect_error(&read_from(&mut partner, FOREIGN).await, 403, "IP_NOT_ALLOWED");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(FOREIGN) && !message.contains(HOME), "{message}");
    }
    for _ in 0..20 {
        let limited = read_from(&mut partner, FOREIGN).await;
        let error = expect_error(&limited, 429, "RATE_LIMIT_EXCEEDED");
        assert!(
            !error.to_string().contains("allowlist"),
            "shows nothing about the secret: {error}"
        );
    }
    expect_success(&read_from(&mut partner, HOME).await, 200);
    assert_eq!(count_events(&mut operator, "foreign_address").await, "23");

    let entries = wait_for_entries(&mut operator, "security.foreign_address").await;
    let entry = &entries[0];
    let audited = &entry["after"];
    assert_eq!(entry["subject"], partner.credential_id.as_str());
    assert_eq!(entry["operator"], "service");
    assert_eq!(audited["partner_id"], partner.partner_id.as_str());
    assert_eq!(audited["client"], FOREIGN);
    let count = audited["count"].as_u64().unwrap();
    assert!((1..=23).contains(&count), "{entry}");
    let of_partner = operator
        .audit_entries(&format!(
            "action=security.foreign_address&partner_id={}",
            partner.partner_id
        ))
        .await;
    assert_eq!(of_partner, entries);

    // The audit job has run again when it has written the entry of another address.
    for _ in 0..2 {
        expect_error(
            &read_from(&mut partner, "198.51.100.10").await,
            403,
            "IP_NOT_ALLOWED",
        );
        expect_error(
            &read_from(&mut partner, FOREIGN).await,
            429,
            "RATE_LIMIT_EXCEEDED",
        );
    }
    let entries = eventually("the entry of another address", WAIT_TIMEOUT, async || {
        let entries = operator.audit_entries("action=security.foreign_address").await;
        let clients: Vec<&Value> = entries.iter().map(|entry| &entry["after"]["client"]).collect();
        clients
            .contains(&&Value::from("198.51.100.10"))
            .then(|| entries.clone())
    })
    .await;
    assert_eq!(entries.len(), 2, "one entry per address and hour: {entries:#?}");

    let log = service.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("security event") && line.contains(FOREIGN))
        .filter(|line| !line.contains("198.51.100.10"))
        .collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for text in ["foreign_address", &partner.partner_id, &partner.credential_id] {
        assert!(lines[0].contains(text), "{text}: {}", lines[0]);
    }
    let secret = api_headers(&partner)[API_SECRET].to_str().unwrap().to_owned();
    assert!(!log.contains(&secret) && !format!("{entries:?}").contains(&secret));
    service.assert_verified();
}

/// An attacker could use up the limit of the own address first, and try the stolen secret unseen.
#[tokio::test]
async fn first_use_of_a_stolen_secret_is_logged_above_the_limit_of_failures() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_TRUSTED_PROXIES", "127.0.0.0/8"),
        ("VOUCHSAFE_LIMIT_AUTH", "1/86400"),
    ]);
    let mut operator = Operator::of(&service);
    let mut first = operator.add_partner_with_allowlist(&[HOME]).await;
    let mut second = operator.add_partner_with_allowlist(&[HOME]).await;
    expect_error(&read_from(&mut first, FOREIGN).await, 403, "IP_NOT_ALLOWED");
    for _ in 0..3 {
        expect_error(&read_from(&mut second, FOREIGN).await, 429, "RATE_LIMIT_EXCEEDED");
    }
    let log = service.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("security event") && line.contains(&second.credential_id));
    assert_eq!(lines.count(), 1, "{log}");
}

#[tokio::test]
async fn failed_sign_ins_of_operators_are_audited_by_reason_and_address() {
    // The right token is not needed: the counts come from the service's own network.
    let service = Instance::start_with(&[
        ("VOUCHSAFE_METRICS_TOKEN", &"8".repeat(64)),
        ("VOUCHSAFE_METRICS_NETWORKS", "127.0.0.1"),
        ("VOUCHSAFE_ADMIN_TRUSTED_PROXIES", "127.0.0.1"),
    ]);
    let mut operator = Operator::of(&service);
    let secret = "7".repeat(64);
    let mut browser = Browser::of(&service);
    for reason in [
        "operator_token",
        "operator_session",
        "operator_sign_in",
        "metrics_token",
    ] {
        let refused = match reason {
            "operator_token" => {
                let bearer = format!("Bearer vso_{secret}");
                operator
                    .call_without_token(Method::GET, "/admin/v1/partners", &[("authorization", &bearer)])
                    .await
                    .status
                    .as_u16()
            }
            "metrics_token" => {
                let bearer = format!("Bearer {secret}");
                let headers = [("authorization", bearer.as_str()), ("x-forwarded-for", FOREIGN)];
                operator
                    .call_without_token(Method::GET, "/metrics", &headers)
                    .await
                    .status
                    .as_u16()
            }
            "operator_session" => {
                browser.cookie = Some(format!("vouchsafe_session=vsn_{secret}"));
                browser.status(Method::GET, "/admin/v1/partners").await
            }
            _ => browser
                .open(&format!("/sign-in/link?token=vsl_{secret}"))
                .await
                .status
                .as_u16(),
        };
        assert_eq!(refused, 401, "{reason}");
        assert_eq!(count_events(&mut operator, reason).await, "1", "{reason}");
        let entries = wait_for_entries(&mut operator, &format!("security.{reason}")).await;
        let [entry] = &entries[..] else {
            panic!("{entries:?}")
        };
        let client = if reason == "metrics_token" {
            FOREIGN
        } else {
            "127.0.0.1"
        };
        assert_eq!(entry["subject"], client);
        assert_eq!(entry["after"]["count"], 1, "{entry}");
        assert!(!entry.to_string().contains(&secret));
    }
    assert!(!service.log().contains(&secret));
}
