//! Records observations for certifications, and drops or delays responses to orders.
//!
//! An order of product `sbx-lost-response` commits, and the server drops the connection without a response
//! (contract §11). It lets a partner test that its client retries with the same key; the retry gets the
//! stored response. A partner may request the same for its next orders.

use std::cell::Cell;
use std::future;
use std::rc::Rc;
use std::time::Duration;

use actix_web::body::{BodyStream, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::web;
use bytes::Bytes;
use futures_util::stream;
use time::OffsetDateTime;
use vouchsafe_domain::certification::observation::{ObservationKind, RequestHash};
use vouchsafe_domain::delivery::{DeliveryFault, SendResult};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::sandbox_fault::FaultKind;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::headers::X_SIGNATURE;

use crate::api::error::ApiError;
use crate::api::request_outcome::{self, OrderAnswer, OutcomeListener, RequestOutcome, WebhookTest};
use crate::sandbox::LOST_RESPONSE_PRODUCTS;
use crate::service::Service;
use vouchsafe_certification::Observer;

/// The error of a body stream that breaks before its first byte.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox dropped the response to an order")]
struct LostResponse;

/// Observes one request.
struct RequestObserver {
    service: web::Data<Service>,
    is_response_lost: Cell<bool>,
    response_delay: Cell<Option<Duration>>,
}

/// A step of the partner listener. Production skips it.
pub(super) async fn observe_request<B: MessageBody>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let service: &web::Data<Service> = request.app_data().ok_or_else(ApiError::unavailable)?;
    if service.environment == Environment::Production {
        return next(request).await.map(ServiceResponse::map_into_left_body);
    }
    let observer = Rc::new(RequestObserver {
        service: service.clone(),
        is_response_lost: Cell::new(false),
        response_delay: Cell::new(None),
    });
    request_outcome::register(&request, observer.clone());
    let response = next(request).await?;
    if let Some(delay) = observer.response_delay.get() {
        tokio::time::sleep(delay).await;
    }
    Ok(if observer.is_response_lost.get() {
        drop_connection(response)
    } else {
        response.map_into_left_body()
    })
}

/// Rejects an order of a partner that has requested it in the sandbox.
pub(crate) fn check_available(service: &Service, partner_id: PartnerId) -> Result<(), ApiError> {
    if service.environment == Environment::Production {
        return Ok(());
    }
    let (kind, now) = (FaultKind::ServiceUnavailable, service.clock.now());
    let fault = service.sandbox_faults.take(partner_id, kind, now);
    fault.map_or(Ok(()), |_| Err(ApiError::unavailable()))
}

/// Closes the connection before any byte of the response is sent. Status and headers stay for the outer
/// middleware.
fn drop_connection<B>(response: ServiceResponse<B>) -> ServiceResponse<EitherBody<B>> {
    let aborted = stream::once(future::ready(Err::<Bytes, _>(LostResponse)));
    response.map_body(|_, _| EitherBody::right(BoxBody::new(BodyStream::new(aborted))))
}

impl OutcomeListener for RequestObserver {
    fn notify(&self, partner_id: PartnerId, outcome: RequestOutcome<'_>) {
        if let RequestOutcome::OrderAnswered(answer) = outcome {
            let take = |kind| {
                let now = self.service.clock.now();
                self.service.sandbox_faults.take(partner_id, kind, now)
            };
            let is_placed = answer.status < 300 && !answer.replayed;
            let is_lost = is_response_lost(answer) || (is_placed && take(FaultKind::LostResponse).is_some());
            self.is_response_lost.set(is_lost);
            self.response_delay
                .set(take(FaultKind::SlowResponse).and_then(|fault| fault.delay));
        }
        if let Some(observer) = &self.service.certification {
            record(observer, partner_id, self.service.clock.now(), outcome);
        }
    }
}

fn record(observer: &Observer, partner_id: PartnerId, now: OffsetDateTime, outcome: RequestOutcome<'_>) {
    match outcome {
        RequestOutcome::Authenticated {
            credential_id,
            class,
            signed,
        } => observer.record_request(partner_id, credential_id, class, signed, now),
        RequestOutcome::SignatureRefused { request, body } => {
            let signatures = request
                .headers()
                .get_all(X_SIGNATURE)
                .map(|value| value.as_bytes());
            let (method, path) = (request.method().as_str(), request.path());
            let request = RequestHash::from_signed_request(method, path, signatures, body);
            if let Some(request) = request {
                observer.record(partner_id, now, ObservationKind::SignatureRefused { request });
            }
        }
        RequestOutcome::RateLimited {
            credential_id,
            class,
            retry_after_s,
        } => observer.record_rate_limited(partner_id, credential_id, class, retry_after_s, now),
        RequestOutcome::OrderAnswered(answer) => {
            if let Some(observation) = order_observation(answer) {
                observer.record(partner_id, now, observation);
            }
        }
        RequestOutcome::CodesFetched { order_id, vouchers } => {
            observer.record_codes_fetched(partner_id, now, order_id, vouchers)
        }
        RequestOutcome::WebhookTested(test) => {
            for observation in webhook_observations(test).into_iter().flatten() {
                observer.record(partner_id, now, observation);
            }
        }
    }
}

/// Whether the sandbox drops the response: only if this request has placed the order.
fn is_response_lost(answer: OrderAnswer<'_>) -> bool {
    matches!(
        order_observation(answer),
        Some(ObservationKind::ResponseDropped { .. })
    )
}

/// The observation that the response to an order causes, if any.
fn order_observation(answer: OrderAnswer<'_>) -> Option<ObservationKind> {
    if !answer
        .products
        .iter()
        .any(|product| LOST_RESPONSE_PRODUCTS.contains(&product.as_str()))
    {
        return None;
    }
    if answer.replayed {
        return Some(ObservationKind::ResponseReplayed { key: answer.key.0 });
    }
    (answer.status < 300).then(|| ObservationKind::response_lost(answer.key, answer.fingerprint))
}

/// The observations that test deliveries cause. An internal fault says nothing about the partner.
fn webhook_observations(test: WebhookTest<'_>) -> [Option<ObservationKind>; 2] {
    let (webhook_id, event_id) = (test.webhook_id, test.event_id);
    let status = |result: &SendResult| match result.status {
        Ok(status) => Some(Some(status)),
        Err(DeliveryFault::Internal) => None,
        Err(_) => Some(None),
    };
    let tested = test.wrong_signature.and_then(status).zip(status(test.valid));
    let repeated = test.duplicate.and_then(status);
    [
        tested.map(|(wrong, right)| ObservationKind::WebhookTested {
            webhook_id,
            wrong,
            right,
        }),
        repeated.map(|status| ObservationKind::EventRedelivered {
            webhook_id,
            event_id,
            status,
        }),
    ]
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::idempotency::{Fingerprint, KeyHash};

    use super::*;

    #[test]
    fn only_fresh_committed_order_of_the_product_is_dropped() {
        for (product, status, replayed, is_lost, is_observed) in [
            ("sbx-lost-response", 201, false, true, true),
            ("sbx-lost-answer", 201, false, true, true),
            ("sbx-lost-response", 202, false, true, true),
            ("sbx-lost-response", 402, false, false, false),
            ("sbx-lost-response", 409, false, false, false),
            ("sbx-lost-response", 201, true, false, true),
            ("sbx-lost-response", 402, true, false, true),
            ("sbx-instant", 201, false, false, false),
            ("sbx-instant", 201, true, false, false),
        ] {
            let products = ["sbx-pending".to_owned(), product.to_owned()];
            let answer = OrderAnswer {
                key: KeyHash(uuid::Uuid::nil()),
                fingerprint: Fingerprint([0; 32]),
                products: &products,
                status,
                replayed,
            };
            let found = (is_response_lost(answer), order_observation(answer).is_some());
            assert_eq!(found, (is_lost, is_observed), "{product} {status} {replayed}");
        }
    }
}
