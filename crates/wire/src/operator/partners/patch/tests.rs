//! Changes of the terms of a partner: validation, merging and removal.

use time::macros::datetime;
use vouchsafe_domain::limits::Limit;

use super::*;
use crate::error_code::Code;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn partner() -> Partner {
    let mut partner = Partner::new("Acme".to_owned(), Allowlist::default(), NOW);
    partner.limits.orders = Some(Limit {
        quota: 5,
        window_s: 60,
    });
    partner.approval_rule = serde_json::from_str(r#"{"first_orders":1}"#).unwrap();
    partner.cancel_window_s = 7;
    partner
}

fn patched(text: &str) -> Result<Partner, InvalidRequest> {
    let patch: PartnerPatch = crate::json::parse(text.as_bytes())?;
    patch.check(NOW)?;
    let mut partner = partner();
    patch.apply(&mut partner);
    Ok(partner)
}

#[test]
fn end_of_a_suspension_changes_access_and_a_suspension_does_not() {
    assert!(!PartnerPatch::suspend(false).changes_access());
    assert!(!PartnerPatch::suspend(true).changes_access());
    assert!(PartnerPatch::resume().changes_access());
}

#[test]
fn limits_merge_per_class() {
    let patch = r#"{"limits":{"general":{"quota":9,"window_s":10}}}"#;
    let merged = patched(patch).unwrap().limits;
    assert_eq!(
        merged.orders,
        Some(Limit {
            quota: 5,
            window_s: 60
        })
    );
    assert_eq!(
        merged.general,
        Some(Limit {
            quota: 9,
            window_s: 10
        })
    );
    assert_eq!(
        patched(r#"{"limits":{"orders":null}}"#).unwrap().limits,
        Limits::default()
    );
}

#[test]
fn null_removes_a_term() {
    let cleared = patched(r#"{"approval_rule":null,"catalogue":null,"cancel_window_s":null}"#).unwrap();
    assert_eq!((cleared.approval_rule, cleared.catalogue), (None, None));
    assert_eq!(cleared.cancel_window_s, DEFAULT_CANCEL_WINDOW_S);
    let unchanged = patched("{}").unwrap();
    assert!(unchanged.approval_rule.is_some() && unchanged.cancel_window_s == 7);
}

#[test]
fn timestamp_is_stored_in_utc_with_microseconds() {
    let certified = patched(r#"{"certified_at":"2026-11-20T12:30:00.1234567+01:00"}"#).unwrap();
    assert_eq!(
        certified.certified_at,
        Some(datetime!(2026-11-20 11:30:00.123456 UTC))
    );
}

#[test]
fn invalid_value_names_its_field() {
    for (text, field) in [
        (r#"{"suspended":null}"#, "suspended"),
        (r#"{"codes_blocked":null}"#, "codes_blocked"),
        (r#"{"allowlist":null}"#, "allowlist"),
        (r#"{"allowlist":["nowhere"]}"#, "allowlist"),
        (r#"{"limits":null}"#, "limits"),
        (r#"{"limits":[null]}"#, "limits"),
        (r#"{"limits":{"orders":[5,60]}}"#, "limits.orders"),
        (
            r#"{"limits":{"orders":{"quota":0,"window_s":60}}}"#,
            "limits.orders",
        ),
        (r#"{"limits":{"shoes":null}}"#, "limits.shoes"),
        (r#"{"cancel_window_s":31536001}"#, "cancel_window_s"),
        (r#"{"certified_at":"2026-11-20T12:00:01Z"}"#, "certified_at"),
        (r#"{"certified_at":"yesterday"}"#, "certified_at"),
        (r#"{"catalogue":{"categories":["Not a slug"]}}"#, "catalogue"),
        (
            r#"{"approval_rule":{"amount_over":{"USD":1.001}}}"#,
            "approval_rule.amount_over",
        ),
        (r#"{"approval_rule":[{},"pass",1]}"#, "approval_rule"),
        (r#"{"catalogue":[[],[]]}"#, "catalogue"),
        (r#"{"name":"Other"}"#, "name"),
    ] {
        let error = patched(text).unwrap_err();
        let found = error.details.first().map(|d| d.field.clone()).unwrap_or_default();
        assert!(
            error.code == Code::ValidationFailed && found.starts_with(field),
            "{text}: {error:?}"
        );
    }
}
