//! Response body of `GET /certification`, for both listeners.

use serde::Serialize;
use strum::VariantArray as _;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_domain::certification::check::Check;
use vouchsafe_domain::certification::result::{CheckResult, CheckState};
use vouchsafe_domain::ids::PartnerId;

use crate::schema::extensible_enum;

/// The certification status of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub struct Certification {
    /// Partner id.
    partner_id: PartnerId,
    /// Whether every check is passed.
    passed: bool,
    /// When the last check was passed. Null until all are passed.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    passed_at: Option<OffsetDateTime>,
    /// The checks.
    checks: Vec<CertificationCheck>,
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
        "State of the check: `PASSED` or `FAILED` by the latest decisive attempt, `NOT_SEEN` without any.",
        CheckState::VARIANTS.iter().map(|state| state.into_str()),
    )
}

impl Certification {
    /// The certification of a partner with these results, one per check.
    #[must_use]
    pub fn of(partner_id: PartnerId, results: Vec<CheckResult>) -> Self {
        let passed = results.iter().all(|result| result.state == CheckState::Passed);
        let last = results.iter().filter_map(|result| result.at).max();
        Self {
            partner_id,
            passed,
            passed_at: last.filter(|_| passed),
            checks: results.into_iter().map(CertificationCheck::of).collect(),
        }
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
