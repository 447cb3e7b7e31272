//! Response body of `GET /certification`, for both listeners.

use serde::Serialize;
use strum::VariantArray as _;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_domain::certification::check::Check;
use vouchsafe_domain::certification::result::{CertificationResult, CheckResult, CheckState, CheckWarning};
use vouchsafe_domain::ids::PartnerId;

use crate::schema::extensible_enum;

/// The certification status of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub struct Certification {
    /// Partner id.
    partner_id: PartnerId,
    /// Whether all checks were passed. It stays true: later failures are `warnings`.
    passed: bool,
    /// When all checks were passed for the first time. Null until then.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    first_passed_at: Option<OffsetDateTime>,
    /// When a check was last passed. Null until all are passed.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    passed_at: Option<OffsetDateTime>,
    /// The checks.
    checks: Vec<CertificationCheck>,
    /// Checks whose latest attempt failed after all were passed. They take nothing back, but your client
    /// should not fail them.
    warnings: Vec<CertificationWarning>,
}

/// A failed attempt after the certification was passed.
#[derive(Debug, Serialize, ToSchema)]
struct CertificationWarning {
    #[schema(schema_with = check_schema)]
    check: Check,
    /// When the failure was observed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    at: OffsetDateTime,
    /// What was observed.
    reason: &'static str,
}

/// A check of the certification.
#[derive(Debug, Serialize, ToSchema)]
struct CertificationCheck {
    #[schema(schema_with = check_schema)]
    check: Check,
    #[schema(schema_with = state_schema)]
    state: CheckState,
    /// When the deciding request was observed. Null if there was none.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    at: Option<OffsetDateTime>,
    /// What was observed.
    reason: &'static str,
    /// What the check requires.
    requirement: &'static str,
    /// What to do to pass the check.
    advice: &'static str,
}

fn check_schema() -> Object {
    extensible_enum(
        "Name of the check.",
        Check::VARIANTS.iter().map(|check| check.into_str()),
    )
}

fn state_schema() -> Object {
    extensible_enum(
        "State of the check: `PASSED` or `FAILED` by the latest decisive attempt, `NOT_SEEN` without any. \
         `PASSED` from the time on when all checks were.",
        CheckState::VARIANTS.iter().map(|state| state.into_str()),
    )
}

impl Certification {
    /// The certification of a partner with this result.
    #[must_use]
    pub fn of(partner_id: PartnerId, result: CertificationResult) -> Self {
        let CertificationResult {
            first_passed_at,
            checks,
            warnings,
        } = result;
        let passed = first_passed_at.is_some();
        let last = checks.iter().filter_map(|check| check.at).max();
        Self {
            partner_id,
            passed,
            first_passed_at,
            passed_at: last.filter(|_| passed),
            checks: checks.into_iter().map(CertificationCheck::of).collect(),
            warnings: warnings.into_iter().map(CertificationWarning::of).collect(),
        }
    }
}

impl CertificationWarning {
    const fn of(CheckWarning { check, at, reason }: CheckWarning) -> Self {
        Self { check, at, reason }
    }
}

impl CertificationCheck {
    fn of(result: CheckResult) -> Self {
        Self {
            check: result.check,
            state: result.state,
            at: result.at,
            reason: result.reason,
            requirement: result.check.requirement(),
            advice: result.check.advice(),
        }
    }
}
