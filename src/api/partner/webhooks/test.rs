//! `POST /webhooks/{webhook_id}/test`: test delivery to a webhook endpoint.
//!
//! | Environment | Deliveries, in this order |
//! |---|---|
//! | production | a sample event |
//! | sandbox | the sample with an invalid signature; the sample; if it was accepted, the sample again |
//!
//! Each delivery is attempted once. Production never sends an invalid signature.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::delivery::WebhookTarget;
use vouchsafe_domain::ids::{EventId, WebhookId};
use vouchsafe_domain::sample_event::sample_event;
use vouchsafe_security::environment::Environment;
use vouchsafe_webhooks::{SigningMode, WebhookRequest};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::webhooks::request;
use vouchsafe_wire::partner::webhooks::test::{TestAttempts, WebhookTestBody, is_accepted};

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::partner::PartnerState;
use crate::api::path_id::{Id, PathId as _};
use crate::api::request_outcome::{self, RequestOutcome, WebhookTest};
use crate::service::Service;

/// Delivers a sample event now and returns the result. The body is optional.
pub(in crate::api::partner) async fn test(
    service: web::Data<PartnerState>,
    webhook_id: Id<WebhookId>,
    request: HttpRequest,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let webhook_id = webhook_id.parse()?;
    let partner_id = signed.caller.partner_id();
    let event = request::parse_test_event(&signed.body)?;
    let target = service.store.webhooks.find_target(partner_id, webhook_id).await?;
    let target = Arc::new(target.ok_or_else(WebhookId::not_found)?);
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
    request_outcome::report(&request, partner_id, || outcome(&attempts, webhook_id, event_id));
    Ok(HttpResponse::Ok().json(WebhookTestBody::of(event_id, event, attempts)))
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
    // The invalid signature goes first, while the endpoint does not know the event id: an endpoint that
    // deduplicates before it verifies would otherwise accept it as a duplicate.
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

fn outcome(attempts: &TestAttempts, webhook_id: WebhookId, event_id: EventId) -> RequestOutcome<'_> {
    RequestOutcome::WebhookTested(WebhookTest {
        webhook_id,
        event_id,
        wrong_signature: attempts.wrong_signature.as_ref().map(|(result, _)| result),
        valid: &attempts.valid.0,
        duplicate: attempts.duplicate.as_ref().map(|(result, _)| result),
    })
}
