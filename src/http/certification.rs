//! `GET /certification`: a partner's own checklist, in the sandbox. Production has none, and answers as if there were no such
//! route.
//!
//! Operators read the same of any partner; the answer is made here for both.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_actors::domain::ids::PartnerId;

use super::caller::Caller;
use crate::certification::{Finding, Point, State, judge};
use crate::errors::{ApiError, Code};
use crate::openapi::open_words;
use crate::service::Service;

/// How a partner's certification stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Certification)]
pub(crate) struct CertificationBody {
    /// Whose.
    partner_id: PartnerId,
    /// Whether every point is passed.
    passed: bool,
    /// When the last of them was; null where one is not.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    passed_at: Option<OffsetDateTime>,
    /// The checklist.
    points: Vec<PointBody>,
}

/// A point of the checklist.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CertificationPoint)]
struct PointBody {
    #[schema(schema_with = point_schema)]
    point: Point,
    #[schema(schema_with = state_schema)]
    state: State,
    /// When that was seen; null where nothing was.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    at: Option<OffsetDateTime>,
    /// What was seen.
    why: &'static str,
    /// What must be seen.
    asks: &'static str,
    /// What to do to pass it.
    advice: &'static str,
}

fn point_schema() -> Object {
    open_words("Which point.", Point::ALL.iter().map(|point| point.as_str()))
}

fn state_schema() -> Object {
    open_words(
        "How it stands: `PASSED` and `FAILED` are of the newest trial that is decided, `NOT_SEEN` is that there is none.",
        State::ALL.map(State::as_str),
    )
}

/// `GET /certification`.
///
/// # Errors
/// `ROUTE_NOT_FOUND` in production.
pub async fn get(service: web::Data<Service>, caller: Caller) -> Result<HttpResponse, ApiError> {
    in_sandbox(&service)?;
    let body = CertificationBody::of(&service, caller.partner_id()).await?;
    Ok(HttpResponse::Ok().json(body))
}

/// There is nothing to see anywhere else.
///
/// # Errors
/// `ROUTE_NOT_FOUND` in production.
pub(crate) fn in_sandbox(service: &Service) -> Result<(), ApiError> {
    let seen = service.certification.as_ref().map(|_| ());
    seen.ok_or_else(|| {
        ApiError::new(
            Code::RouteNotFound,
            "the checklist of a certification is kept by the sandbox; there is none here",
        )
    })
}

impl CertificationBody {
    /// How the certification of a partner stands now.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE`.
    pub(crate) async fn of(service: &Service, partner_id: PartnerId) -> Result<Self, ApiError> {
        let observations = service.store.observations_of(partner_id).await?;
        let findings = judge(&observations, service.clock.now());
        let passed = findings.iter().all(|finding| finding.state == State::Passed);
        let last = findings.iter().filter_map(|finding| finding.at).max();
        Ok(Self {
            partner_id,
            passed,
            passed_at: last.filter(|_| passed),
            points: findings.into_iter().map(PointBody::of).collect(),
        })
    }
}

impl PointBody {
    fn of(
        Finding {
            point,
            state,
            at,
            why,
        }: Finding,
    ) -> Self {
        Self {
            point,
            state,
            at,
            why,
            asks: point.asks(),
            advice: point.advice(),
        }
    }
}
