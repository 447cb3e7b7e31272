//! `POST /webhooks/{webhook_id}/test`: does an endpoint do what it shall with what it is sent?
//!
//! | where | what is sent, one after the other |
//! |---|---|
//! | production | a sample |
//! | sandbox | the sample with a wrong signature; the sample; and where that was taken, the same once more |
//!
//! Rule: each is sent once, whatever comes of it. Nobody in production is sent a wrong signature.

use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::delivery::{Answered, Ending, Fault, Target};
use vouchsafe_actors::domain::event_kind::EventKind;
use vouchsafe_actors::domain::ids::EventId;

use super::{not_found, parse_id, request};
use crate::certification::{Seen, Watch};
use crate::delivery::{Parcel, Signing, sample};
use crate::errors::{ApiError, Code};
use crate::http::caller::{General, Signed};
use crate::service::Service;

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub(in crate::http) struct TestBody {
    /// The id of the sample; it is in no feed.
    event_id: EventId,
    /// What it was a sample of.
    event: EventKind,
    /// Whether the endpoint took it: a 2xx within five seconds.
    delivered: bool,
    /// The status of its answer; null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no answer; null if there was one.
    #[schema(required)]
    fault: Option<Fault>,
    /// How long it took.
    latency_ms: u32,
    /// What came of the sample with a wrong signature, sent before: right is a 4xx. Null in production.
    #[schema(required)]
    wrong_signature: Option<TrialBody>,
    /// What came of the sample when it was sent again: right is a 2xx. Null in production, and if it was not taken at first.
    #[schema(required)]
    duplicate: Option<TrialBody>,
}

/// What came of a delivery that shows how an endpoint verifies and remembers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTrial)]
pub(in crate::http) struct TrialBody {
    /// Whether the answer was the right one.
    passed: bool,
    /// The status of the answer; null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no answer; null if there was one.
    #[schema(required)]
    fault: Option<Fault>,
    /// How long it took.
    latency_ms: u32,
}

/// The attempts of a test.
struct Attempts {
    wrong: Option<(Answered, Duration)>,
    right: (Answered, Duration),
    again: Option<(Answered, Duration)>,
}

/// `POST /webhooks/{webhook_id}/test`: sends a sample now, and says what came of it. A body may be left out.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`.
pub(in crate::http) async fn test(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let event = request::tested(&signed.body)?;
    let target = service.store.webhook_target(partner_id, webhook_id).await?;
    let target = Arc::new(target.ok_or_else(not_found)?);
    let broken = || ApiError::new(Code::InternalError, "the sample could not be written");
    let envelope = sample(partner_id, event, service.clock.now()).ok_or_else(broken)?;
    let event_id = envelope.event_id;
    let parcel = Parcel {
        id: event_id.to_string(),
        body: serde_json::to_vec(&envelope).map_err(|_| broken())?,
        test: true,
        signing: Signing::Right,
    };
    let attempts = attempt(&service, &target, parcel).await;
    if let Some(watch) = &service.certification {
        note(&service, watch, &target, event_id, &attempts);
    }
    let Attempts { wrong, right, again } = attempts;
    let (answered, took) = right;
    Ok(HttpResponse::Ok().json(TestBody {
        event_id,
        event,
        delivered: is_taken(&answered),
        status: answered.status.ok(),
        fault: answered.status.err(),
        latency_ms: milliseconds(took),
        wrong_signature: wrong.map(|wrong| TrialBody::of(wrong, is_refused)),
        duplicate: again.map(|again| TrialBody::of(again, is_taken)),
    }))
}

/// The wrong one goes first: who remembers an event before it verifies it does not know this one yet.
async fn attempt(service: &Service, target: &Arc<Target>, parcel: Parcel) -> Attempts {
    let post = |parcel: Parcel| service.sender.post(Arc::clone(target), parcel);
    if service.certification.is_none() {
        return Attempts {
            wrong: None,
            right: post(parcel).await,
            again: None,
        };
    }
    let wrong = Parcel {
        signing: Signing::Wrong,
        ..parcel.clone()
    };
    let wrong = post(wrong).await;
    let right = post(parcel.clone()).await;
    let again = if is_taken(&right.0) {
        Some(post(parcel).await)
    } else {
        None
    };
    Attempts {
        wrong: Some(wrong),
        right,
        again,
    }
}

/// For certifications. A fault on this side says nothing of the partner.
fn note(service: &Service, watch: &Watch, target: &Target, event_id: EventId, attempts: &Attempts) {
    let (partner_id, webhook_id, at) = (target.partner_id, target.webhook_id, service.clock.now());
    let status = |(answered, _): &(Answered, Duration)| match answered.status {
        Ok(status) => Some(Some(status)),
        Err(Fault::Internal) => None,
        Err(_) => Some(None),
    };
    let wrong = attempts.wrong.as_ref().and_then(status);
    if let (Some(wrong), Some(right)) = (wrong, status(&attempts.right)) {
        let seen = Seen::WebhookTested {
            webhook_id,
            wrong,
            right,
        };
        watch.saw(partner_id, at, seen);
    }
    if let Some(status) = attempts.again.as_ref().and_then(status) {
        let seen = Seen::EventAgain {
            webhook_id,
            event_id,
            status,
        };
        watch.saw(partner_id, at, seen);
    }
}

fn is_taken(answered: &Answered) -> bool {
    answered.ending() == Ending::Delivered
}

const fn is_refused(answered: &Answered) -> bool {
    matches!(answered.status, Ok(400..=499))
}

fn milliseconds(took: Duration) -> u32 {
    u32::try_from(took.as_millis()).unwrap_or(u32::MAX)
}

impl TrialBody {
    fn of((answered, took): (Answered, Duration), right: impl FnOnce(&Answered) -> bool) -> Self {
        Self {
            passed: right(&answered),
            status: answered.status.ok(),
            fault: answered.status.err(),
            latency_ms: milliseconds(took),
        }
    }
}
