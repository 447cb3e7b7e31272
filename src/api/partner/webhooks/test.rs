//! `POST /webhooks/{webhook_id}/test`: test delivery to a webhook endpoint.
//!
//! | Environment | Deliveries, in this order |
//! |---|---|
//! | production | a sample event |
//! | sandbox | the sample with an invalid signature; the sample; if it was accepted, the sample again |
//!
//! Each delivery is attempted once. Production never sends an invalid signature.

use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::delivery::{AttemptOutcome, DeliveryFault, SendResult, WebhookTarget};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::EventId;

use super::{not_found, parse_id, request};
use crate::api::error::ApiError;
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::request_outcome::{self, RequestOutcome};
use vouchsafe_webhooks::{SigningMode, WebhookRequest, sample_event};
use crate::service::Service;
use vouchsafe_security::environment::Environment;
use vouchsafe_wire::error_code::Code;

/// Result of a test delivery.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub struct TestResultBody {
    /// Id of the sample event. It is not in the event feed.
    event_id: EventId,
    /// Type of the sample event.
    event: EventKind,
    /// Whether the endpoint accepted it with a 2xx within five seconds.
    delivered: bool,
    /// HTTP status of the response. Null without a response.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response. Null if there was one.
    #[schema(required)]
    fault: Option<DeliveryFault>,
    /// Duration of the attempt in milliseconds.
    latency_ms: u32,
    /// Result of the delivery with an invalid signature, sent first; a 4xx passes. Null in production.
    #[schema(required)]
    wrong_signature: Option<TestAttemptBody>,
    /// Result of the repeated delivery; a 2xx passes. Null in production, and if the first delivery was not accepted.
    #[schema(required)]
    duplicate: Option<TestAttemptBody>,
}

/// Result of a delivery that checks signature verification or deduplication.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTrial)]
pub struct TestAttemptBody {
    /// Whether the endpoint responded as required.
    passed: bool,
    /// HTTP status of the response. Null without a response.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response. Null if there was one.
    #[schema(required)]
    fault: Option<DeliveryFault>,
    /// Duration of the attempt in milliseconds.
    latency_ms: u32,
}

struct TestAttempts {
    wrong_signature: Option<(SendResult, Duration)>,
    valid: (SendResult, Duration),
    duplicate: Option<(SendResult, Duration)>,
}

/// `POST /webhooks/{webhook_id}/test`: delivers a sample event now and returns the result. The body is optional.
///
/// # Errors
/// `VALIDATION_FAILED`, `WEBHOOK_NOT_FOUND`.
pub async fn test(
    service: web::Data<Service>,
    webhook_id: web::Path<String>,
    request: HttpRequest,
    signed: VerifiedRequest<General>,
) -> Result<HttpResponse, ApiError> {
    let webhook_id = parse_id(&webhook_id)?;
    let partner_id = signed.caller.partner_id();
    let event = request::parse_test_event(&signed.body)?;
    let target = service.store.webhooks.find_target(partner_id, webhook_id).await?;
    let target = Arc::new(target.ok_or_else(not_found)?);
    let serialization_error = || {
        ApiError::new(
            Code::InternalError,
            "the sample event could not be serialized; contact the operator",
        )
    };
    let envelope = sample_event(partner_id, event, service.clock.now()).ok_or_else(serialization_error)?;
    let event_id = envelope.event_id;
    let delivery = WebhookRequest {
        id: event_id.to_string(),
        body: serde_json::to_vec(&envelope).map_err(|_| serialization_error())?,
        test: true,
        signing: SigningMode::Valid,
    };
    let attempts = send_test_deliveries(&service, &target, delivery).await;
    request_outcome::report(&request, || attempts.outcome(&target, event_id));
    let TestAttempts {
        wrong_signature,
        valid: (result, elapsed),
        duplicate,
    } = attempts;
    Ok(HttpResponse::Ok().json(TestResultBody {
        event_id,
        event,
        delivered: is_accepted(&result),
        status: result.status.ok(),
        fault: result.status.err(),
        latency_ms: milliseconds(elapsed),
        wrong_signature: wrong_signature.map(|attempt| TestAttemptBody::of(attempt, is_rejected)),
        duplicate: duplicate.map(|attempt| TestAttemptBody::of(attempt, is_accepted)),
    }))
}

async fn send_test_deliveries(
    service: &Service,
    target: &Arc<WebhookTarget>,
    delivery: WebhookRequest,
) -> TestAttempts {
    let post = |delivery: WebhookRequest| service.sender.post(Arc::clone(target), delivery);
    if service.environment != Environment::Sandbox {
        return TestAttempts {
            wrong_signature: None,
            valid: post(delivery).await,
            duplicate: None,
        };
    }
    // The invalid signature goes first, while the endpoint does not know the event id: an endpoint that deduplicates before it
    // verifies would otherwise accept it as a duplicate.
    let invalid = WebhookRequest {
        signing: SigningMode::Invalid,
        ..delivery.clone()
    };
    let wrong_signature = post(invalid).await;
    let valid = post(delivery.clone()).await;
    let duplicate = if is_accepted(&valid.0) {
        Some(post(delivery).await)
    } else {
        None
    };
    TestAttempts {
        wrong_signature: Some(wrong_signature),
        valid,
        duplicate,
    }
}

impl TestAttempts {
    fn outcome(&self, target: &WebhookTarget, event_id: EventId) -> RequestOutcome<'_> {
        RequestOutcome::WebhookTested {
            partner_id: target.partner_id,
            webhook_id: target.webhook_id,
            event_id,
            wrong_signature: self.wrong_signature.as_ref().map(|(result, _)| result),
            valid: &self.valid.0,
            duplicate: self.duplicate.as_ref().map(|(result, _)| result),
        }
    }
}

fn is_accepted(result: &SendResult) -> bool {
    result.outcome() == AttemptOutcome::Delivered
}

const fn is_rejected(result: &SendResult) -> bool {
    matches!(result.status, Ok(400..=499))
}

fn milliseconds(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX)
}

impl TestAttemptBody {
    fn of((result, elapsed): (SendResult, Duration), is_expected: impl FnOnce(&SendResult) -> bool) -> Self {
        Self {
            passed: is_expected(&result),
            status: result.status.ok(),
            fault: result.status.err(),
            latency_ms: milliseconds(elapsed),
        }
    }
}
