//! Validates and applies a change of a partner's terms.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::bounds::Count;
use vouchsafe_domain::limits::Limits;
use vouchsafe_domain::partner::approval_rule::ApprovalRule;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::partner::{DEFAULT_CANCEL_WINDOW_S, Partner};
use vouchsafe_domain::scope::Scope;

use super::arguments;
use super::limits_patch::{CeilingsPatch, LimitsPatch, limit_range};
use crate::error_body::{ErrorDetail, InvalidRequest};
use crate::operator::patch_field::{
    Nullable, Timestamp, nullable_number, nullable_object, some, some_object,
};

/// A year, in seconds: most vouchers have expired by then.
const MAX_CANCEL_WINDOW_S: u32 = 31_536_000;

/// Terms to change. `null` removes a term; it is an error for terms that cannot be removed.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct PartnerPatch {
    /// Networks from which the partner may call.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[command(flatten)]
    allowlist: Option<Allowlist>,
    /// Rate limits that differ from the settings; other classes stay unchanged.
    #[serde(default, deserialize_with = "some_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[command(flatten)]
    limits: Option<LimitsPatch>,
    /// Rate limits of all credentials together; other classes stay unchanged, null removes one. Not below
    /// what the live credentials may send together.
    #[serde(default, deserialize_with = "some_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<LimitsPatch>)]
    #[command(flatten)]
    ceilings: Option<CeilingsPatch>,
    /// Whether the partner's requests are rejected, except reading the codes of its orders.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[arg(skip)]
    suspended: Option<bool>,
    /// Whether a suspension also rejects reading the codes of the partner's orders.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[arg(skip)]
    codes_blocked: Option<bool>,
    /// Which orders wait for approval; null: none.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ApprovalRule>)]
    #[arg(
        long,
        value_name = "JSON",
        value_parser = arguments::parse_json::<ApprovalRule>,
        help = "Rule for orders that wait for approval, as JSON, or `none`"
    )]
    approval_rule: Option<Nullable<ApprovalRule>>,
    /// Caps that override those of the settings; null: those of the settings apply; an empty object: none
    /// apply.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PartnerCaps>)]
    #[arg(
        long,
        value_name = "JSON",
        value_parser = arguments::parse_caps,
        help = "Caps on pending orders, cancellations and spend, as JSON: {} for no caps; or `default` for those of the settings"
    )]
    caps: Option<Nullable<PartnerCaps>>,
    /// Products that the partner may order; null: all.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Scope>)]
    #[arg(
        long,
        value_name = "JSON",
        value_parser = arguments::parse_json::<Scope>,
        help = "Products that it may order, as JSON {\"categories\":[…],\"products\":[…]}, or `none` for all"
    )]
    catalogue: Option<Nullable<Scope>>,
    /// Time in which the partner may cancel an order, in seconds; null: the default, a day.
    #[serde(default, deserialize_with = "nullable_number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Count<0, { MAX_CANCEL_WINDOW_S }>>)]
    #[arg(
        long = "cancel-window",
        value_name = "SECONDS",
        value_parser = arguments::parse_window,
        help = "Seconds in which orders can be cancelled, or `default`"
    )]
    cancel_window_s: Option<Nullable<u32>>,
    /// Time at which the partner passed the certification in the sandbox.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OffsetDateTime>)]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = arguments::parse_time,
        help = "Time of the passed certification, e.g. 2026-11-20T12:00:00Z, or `none`"
    )]
    certified_at: Option<Nullable<Timestamp>>,
    /// Time at which the partner signed the agreement.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OffsetDateTime>)]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = arguments::parse_time,
        help = "Time of the signed agreement, or `none`"
    )]
    agreement_signed_at: Option<Nullable<Timestamp>>,
}

impl PartnerPatch {
    /// Suspends a partner, also from reading the codes of its orders if `block_codes`. Without it the reading
    /// of codes stays as it is.
    #[must_use]
    pub fn suspend(block_codes: bool) -> Self {
        Self {
            suspended: Some(true),
            // `false` would give access, for which a second operator is needed.
            codes_blocked: block_codes.then_some(true),
            ..Self::default()
        }
    }

    /// Ends the suspension of a partner.
    #[must_use]
    pub fn resume() -> Self {
        Self {
            suspended: Some(false),
            codes_blocked: Some(false),
            ..Self::default()
        }
    }

    /// Whether it decides who may call from where and without approval, or ends a suspension: such a change
    /// needs a second operator.
    #[must_use]
    pub fn changes_access(&self) -> bool {
        self.suspended == Some(false)
            || self.codes_blocked == Some(false)
            || self.allowlist.is_some()
            || self.approval_rule.is_some()
            || self.caps.is_some()
            || self.certified_at.is_some()
            || self.agreement_signed_at.is_some()
    }

    /// The limits of a partner after the change.
    #[must_use]
    pub fn limits_after(&self, mut limits: Limits) -> Limits {
        if let Some(patch) = &self.limits {
            patch.apply(&mut limits);
        }
        limits
    }

    /// The ceilings that are set, without those that are removed.
    #[must_use]
    pub fn changed_ceilings(&self) -> Option<Limits> {
        self.ceilings.as_ref().map(|ceilings| ceilings.0.changed())
    }

    /// Reports the errors of all fields.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn check(&self, now: OffsetDateTime) -> Result<(), InvalidRequest> {
        let mut errors = Vec::new();
        let mut add_error = |field: &str, message: &str| {
            errors.push(ErrorDetail::new(field.to_owned(), message.to_owned()));
        };
        for (field, changed) in [
            ("limits", self.limits.as_ref().map(LimitsPatch::changed)),
            ("ceilings", self.changed_ceilings()),
        ] {
            if let Some(class) = changed.and_then(|limits| limits.first_out_of_range()) {
                add_error(&format!("{field}.{class}"), &limit_range());
            }
        }
        if let Some(reason) = self
            .caps
            .as_ref()
            .and_then(|caps| caps.as_ref()?.validation_error())
        {
            add_error("caps", &reason);
        }
        if let Some(reason) = self
            .catalogue
            .as_ref()
            .and_then(|scope| scope.as_ref()?.validation_error())
        {
            add_error("catalogue", &reason);
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
        if let Some(CeilingsPatch(ceilings)) = self.ceilings {
            ceilings.apply(&mut partner.ceilings);
        }
        assign_if_some(&mut partner.allowlist, self.allowlist);
        assign_if_some(&mut partner.suspended, self.suspended);
        assign_if_some(&mut partner.codes_blocked, self.codes_blocked);
        assign_if_some(&mut partner.approval_rule, self.approval_rule);
        assign_if_some(&mut partner.caps, self.caps);
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
mod tests;
