//! Validates and applies a change of a partner's terms.

use serde::Deserialize;
use time::{OffsetDateTime, UtcOffset};
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::clock::truncate_to_micros;
use vouchsafe_domain::limits::{Limit, Limits, MAX_QUOTA, MAX_WINDOW_S};
use vouchsafe_domain::partner::approval_rule::ApprovalRule;
use vouchsafe_domain::partner::{DEFAULT_CANCEL_WINDOW_S, Partner};
use vouchsafe_domain::scope::Scope;

use crate::error_body::{FieldError, InvalidRequest};
use crate::operator::patch_field::{deserialize_nullable_object, deserialize_some, deserialize_some_object};

/// A year, in seconds: most vouchers have expired by then.
pub(in crate::operator) const MAX_CANCEL_WINDOW_S: u32 = 31_536_000;

/// Fails with the class whose limit is out of range.
pub(super) fn validate_limits(limits: Limits) -> Result<Limits, InvalidRequest> {
    match limits.first_out_of_range() {
        Some(class) => Err(InvalidRequest::field(format!("limits.{class}"), limit_range())),
        None => Ok(limits),
    }
}

fn limit_range() -> String {
    format!("expected quota 1 to {MAX_QUOTA} and window_s 1 to {MAX_WINDOW_S}")
}

/// Terms to change. `null` removes a term; it is an error for terms that cannot be removed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PartnerPatch)]
pub struct PartnerPatch {
    /// Networks from which the partner may call.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schema(nullable = false)]
    allowlist: Option<Allowlist>,
    /// Rate limits that differ from the settings; other classes stay unchanged.
    #[serde(default, deserialize_with = "deserialize_some_object")]
    #[schema(nullable = false)]
    limits: Option<LimitsPatch>,
    /// Whether the partner's requests are rejected.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schema(nullable = false)]
    suspended: Option<bool>,
    /// Which orders wait for approval; null: none.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<ApprovalRule>)]
    approval_rule: Option<Option<ApprovalRule>>,
    /// Products that the partner may order; null: all.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<Scope>)]
    catalogue: Option<Option<Scope>>,
    /// Time in which the partner may cancel an order, in seconds; null: the default, a day.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schema(value_type = Option<u32>, maximum = 31_536_000)]
    cancel_window_s: Option<Option<u32>>,
    /// Time at which the partner passed the certification in the sandbox.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schema(value_type = Option<OffsetDateTime>)]
    certified_at: Option<Option<Timestamp>>,
    /// Time at which the partner signed the agreement.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schema(value_type = Option<OffsetDateTime>)]
    agreement_signed_at: Option<Option<Timestamp>>,
}

/// Rate limits to change; `null` resets a class to the settings.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsPatch {
    /// `POST /orders`.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<Limit>)]
    orders: Option<Option<Limit>>,
    /// All requests without a class of their own.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<Limit>)]
    general: Option<Option<Limit>>,
    /// Credential rotation.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<Limit>)]
    auth: Option<Option<Limit>>,
    /// Reading the codes of an order.
    #[serde(default, deserialize_with = "deserialize_nullable_object")]
    #[schema(value_type = Option<Limit>)]
    vouchers: Option<Option<Limit>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Timestamp(#[serde(with = "vouchsafe_domain::timestamp")] OffsetDateTime);

impl Timestamp {
    fn to_utc(self) -> OffsetDateTime {
        truncate_to_micros(self.0.to_offset(UtcOffset::UTC))
    }
}

impl LimitsPatch {
    pub(super) fn apply(self, limits: &mut Limits) {
        let classes = [
            (&mut limits.orders, self.orders),
            (&mut limits.general, self.general),
            (&mut limits.auth, self.auth),
            (&mut limits.vouchers, self.vouchers),
        ];
        for (limit, change) in classes {
            *limit = change.unwrap_or(*limit);
        }
    }
}

impl PartnerPatch {
    /// Reports the errors of all fields.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn check(&self, now: OffsetDateTime) -> Result<(), InvalidRequest> {
        let mut errors = Vec::new();
        let mut add_error = |field: &str, message: &str| {
            errors.push(FieldError {
                field: field.to_owned(),
                message: message.to_owned(),
            });
        };
        let mut changed = Limits::default();
        if let Some(limits) = &self.limits {
            changed = Limits {
                orders: limits.orders.flatten(),
                general: limits.general.flatten(),
                auth: limits.auth.flatten(),
                vouchers: limits.vouchers.flatten(),
            };
        }
        if let Some(class) = changed.first_out_of_range() {
            add_error(&format!("limits.{class}"), &limit_range());
        }
        if let Some(reason) = self
            .catalogue
            .as_ref()
            .and_then(|scope| scope.as_ref()?.validation_error())
        {
            add_error("catalogue", reason);
        }
        if self
            .cancel_window_s
            .flatten()
            .is_some_and(|seconds| seconds > MAX_CANCEL_WINDOW_S)
        {
            let message = format!("expected at most {MAX_CANCEL_WINDOW_S} seconds");
            add_error("cancel_window_s", &message);
        }
        for (field, timestamp) in [
            ("certified_at", self.certified_at),
            ("agreement_signed_at", self.agreement_signed_at),
        ] {
            if timestamp
                .flatten()
                .is_some_and(|timestamp| timestamp.to_utc() > now)
            {
                add_error(field, "is in the future");
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(InvalidRequest::fields(errors))
        }
    }

    /// Changes the terms of a partner.
    pub fn apply(self, partner: &mut Partner) {
        if let Some(limits) = self.limits {
            limits.apply(&mut partner.limits);
        }
        assign_if_some(&mut partner.allowlist, self.allowlist);
        assign_if_some(&mut partner.suspended, self.suspended);
        assign_if_some(&mut partner.approval_rule, self.approval_rule);
        assign_if_some(&mut partner.catalogue, self.catalogue);
        let window = self
            .cancel_window_s
            .map(|seconds| seconds.unwrap_or(DEFAULT_CANCEL_WINDOW_S));
        assign_if_some(&mut partner.cancel_window_s, window);
        assign_if_some(
            &mut partner.certified_at,
            self.certified_at
                .map(|timestamp| timestamp.map(Timestamp::to_utc)),
        );
        let signed_at = self
            .agreement_signed_at
            .map(|timestamp| timestamp.map(Timestamp::to_utc));
        assign_if_some(&mut partner.agreement_signed_at, signed_at);
    }
}

fn assign_if_some<T>(field: &mut T, change: Option<T>) {
    if let Some(value) = change {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

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
}
