//! `GET /certification`: a partner's certification checklist. Sandbox only; in production the route is 404.
//!
//! The operator route uses the same response body.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_domain::ids::PartnerId;

use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::certification::{CheckResult, CheckState, evaluate};
use crate::service::Service;
use vouchsafe_domain::certification::check::Check;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::schema::extensible_enum;

/// The certification status of a partner.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Certification)]
pub(crate) struct CertificationBody {
    /// Partner id.
    partner_id: PartnerId,
    /// Whether every check is passed.
    passed: bool,
    /// When the last check was passed. Null until all are passed.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    passed_at: Option<OffsetDateTime>,
    /// The checklist.
    points: Vec<CheckBody>,
}

/// A check of the certification.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CertificationPoint)]
struct CheckBody {
    #[schema(schema_with = point_schema)]
    point: Check,
    #[schema(schema_with = state_schema)]
    state: CheckState,
    /// When the deciding request was observed. Null if there was none.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    at: Option<OffsetDateTime>,
    /// What was observed.
    why: &'static str,
    /// What the check requires.
    asks: &'static str,
    /// What to do to pass the check.
    advice: &'static str,
}

fn point_schema() -> Object {
    extensible_enum(
        "Name of the check.",
        Check::ALL.iter().map(|point| point.as_str()),
    )
}

fn state_schema() -> Object {
    extensible_enum(
        "State of the check: `PASSED` or `FAILED` by the latest decisive attempt, `NOT_SEEN` without any.",
        CheckState::ALL.map(CheckState::as_str),
    )
}

/// `GET /certification`.
///
/// # Errors
/// `ROUTE_NOT_FOUND` in production.
pub async fn get(service: web::Data<Service>, caller: AuthenticatedCaller) -> Result<HttpResponse, ApiError> {
    require_sandbox(&service)?;
    let body = CertificationBody::of(&service, caller.partner_id()).await?;
    Ok(HttpResponse::Ok().json(body))
}

/// Rejects the request unless this is a sandbox.
///
/// # Errors
/// `ROUTE_NOT_FOUND` in production.
pub(crate) fn require_sandbox(service: &Service) -> Result<(), ApiError> {
    let sandbox = service.certification.as_ref().map(|_| ());
    sandbox.ok_or_else(|| {
        ApiError::new(
            Code::RouteNotFound,
            "certification exists in the sandbox only; call the sandbox API",
        )
    })
}

impl CertificationBody {
    /// Evaluates the certification of a partner.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE`.
    pub(crate) async fn of(service: &Service, partner_id: PartnerId) -> Result<Self, ApiError> {
        let observations = service.store.observations.list(partner_id).await?;
        let findings = evaluate(&observations, service.clock.now());
        let passed = findings.iter().all(|finding| finding.state == CheckState::Passed);
        let last = findings.iter().filter_map(|finding| finding.at).max();
        Ok(Self {
            partner_id,
            passed,
            passed_at: last.filter(|_| passed),
            points: findings.into_iter().map(CheckBody::of).collect(),
        })
    }
}

impl CheckBody {
    fn of(
        CheckResult {
            check: point,
            state,
            at,
            reason: why,
        }: CheckResult,
    ) -> Self {
        Self {
            point,
            state,
            at,
            why,
            asks: point.requirement(),
            advice: point.advice(),
        }
    }
}
