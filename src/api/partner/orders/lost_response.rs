//! Sandbox fault: an order of product `sbx-lost-answer` commits, and the server drops the connection without a response
//! (contract §11). It lets a partner test that its client retries with the same key; the retry gets the stored response.

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream;
use vouchsafe_domain::catalogue::RequestedOrder;
use vouchsafe_domain::ids::PartnerId;

use vouchsafe_security::environment::Environment;
use crate::certification::ObservationKind;
use crate::service::Service;

const LOST_RESPONSE_PRODUCT: &str = "sbx-lost-answer";

/// The error of a body stream that breaks before its first byte.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox dropped the response to an order of sbx-lost-answer")]
struct LostResponse;

/// Whether the sandbox drops the first response to this order.
pub(super) fn is_response_lost(environment: Environment, order: &RequestedOrder) -> bool {
    environment == Environment::Sandbox
        && order
            .lines
            .iter()
            .any(|line| line.product_id.as_str() == LOST_RESPONSE_PRODUCT)
}

/// Records for certification that a response was dropped or requested again.
pub(super) fn observe(service: &Service, partner_id: PartnerId, observation: ObservationKind) {
    if let Some(observer) = &service.certification {
        observer.record(partner_id, service.clock.now(), observation);
    }
}

/// Closes the connection before any byte of the response is sent.
pub(super) fn drop_connection() -> HttpResponse {
    let aborted = stream::once(std::future::ready(Err::<Bytes, _>(LostResponse)));
    HttpResponse::Created().streaming(aborted)
}
