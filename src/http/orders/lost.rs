//! The answer that is lost: in the sandbox an order of `sbx-lost-answer` commits, and its connection is dropped (contract
//! §11). So a partner sees whether its client sends the same key again; that is answered as always.

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream;
use vouchsafe_actors::domain::catalogue::RequestedOrder;
use vouchsafe_actors::domain::ids::PartnerId;

use crate::access::environment::Environment;
use crate::certification::Seen;
use crate::service::Service;

/// The product whose first answer is lost.
const LOST_ANSWER: &str = "sbx-lost-answer";

/// A body that breaks before its first byte.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox loses this answer, as it was asked to")]
struct Lost;

/// Whether the first answer to this order is lost.
pub(super) fn is_lost(environment: Environment, wanted: &RequestedOrder) -> bool {
    environment == Environment::Sandbox
        && wanted
            .lines
            .iter()
            .any(|line| line.product_id.as_str() == LOST_ANSWER)
}

/// For certifications: the answer was lost, or the same order came again.
pub(super) fn saw(service: &Service, partner_id: PartnerId, seen: Seen) {
    if let Some(watch) = &service.certification {
        watch.saw(partner_id, service.clock.now(), seen);
    }
}

/// No answer: the connection ends before anything of one is sent.
pub(super) fn drop_connection() -> HttpResponse {
    let broken = stream::once(std::future::ready(Err::<Bytes, _>(Lost)));
    HttpResponse::Created().streaming(broken)
}
