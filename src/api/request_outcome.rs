//! Outcomes of a partner's request, reported to the listener that a middleware has registered.
//!
//! An outcome is reported when it occurs, not with the response: a long poll responds up to 30 s after its authentication, and
//! the handler of a client that disconnects never responds. Without a listener no outcome is built or stored.

use std::rc::Rc;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};
use vouchsafe_domain::delivery::SendResult;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash};
use vouchsafe_domain::ids::{CredentialId, EventId, OrderId, PartnerId, WebhookId};
use vouchsafe_domain::limits::RequestClass;

/// What authentication or a handler has decided about a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestOutcome<'a> {
    /// The request is authenticated and within its rate limit.
    Authenticated {
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: RequestClass,
        /// Whether it has a valid signature, or only valid credentials.
        signed: bool,
    },
    /// The credentials are valid, and the signature is not.
    SignatureRefused {
        partner_id: PartnerId,
        headers: &'a HeaderMap,
        body: &'a [u8],
    },
    /// The quota of the API key is exhausted.
    RateLimited {
        partner_id: PartnerId,
        credential_id: CredentialId,
        class: RequestClass,
        retry_after_s: u32,
    },
    /// The response to an order is stored under its key.
    OrderAnswered {
        partner_id: PartnerId,
        key: KeyHash,
        fingerprint: Fingerprint,
        /// Product of each line.
        products: &'a [String],
        status: u16,
        /// Whether an earlier request stored the response.
        replayed: bool,
    },
    /// The response contains the codes of an order.
    CodesFetched {
        partner_id: PartnerId,
        order_id: OrderId,
        vouchers: usize,
    },
    /// Test deliveries were sent to a webhook endpoint.
    WebhookTested {
        partner_id: PartnerId,
        webhook_id: WebhookId,
        event_id: EventId,
        wrong_signature: Option<&'a SendResult>,
        valid: &'a SendResult,
        duplicate: Option<&'a SendResult>,
    },
}

/// Receives the outcomes of one request.
pub(super) trait OutcomeListener {
    fn notify(&self, outcome: RequestOutcome<'_>);
}

/// The listener of a request, in its extensions.
struct RegisteredListener(Rc<dyn OutcomeListener>);

/// Registers the listener of a request.
pub(super) fn register(request: &impl HttpMessage, listener: Rc<dyn OutcomeListener>) {
    request.extensions_mut().insert(RegisteredListener(listener));
}

/// Whether the request has a listener.
pub(super) fn has_listener(request: &HttpRequest) -> bool {
    request.extensions().contains::<RegisteredListener>()
}

/// Reports an outcome to the listener, if there is one.
pub(super) fn report<'a>(request: &HttpRequest, outcome: impl FnOnce() -> RequestOutcome<'a>) {
    // Cloned, so that the extensions are not borrowed while the listener runs.
    let listener = request
        .extensions()
        .get::<RegisteredListener>()
        .map(|registered| Rc::clone(&registered.0));
    if let Some(listener) = listener {
        listener.notify(outcome());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use actix_web::test::TestRequest;

    use super::*;

    #[derive(Default)]
    struct OutcomeCounter(Cell<u32>);

    impl OutcomeListener for OutcomeCounter {
        fn notify(&self, _: RequestOutcome<'_>) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn codes_fetched() -> RequestOutcome<'static> {
        RequestOutcome::CodesFetched {
            partner_id: PartnerId::generate(),
            order_id: OrderId::generate_at(time::OffsetDateTime::UNIX_EPOCH),
            vouchers: 1,
        }
    }

    #[test]
    fn outcome_is_built_for_a_listener_only() {
        let request = TestRequest::default().to_http_request();
        report(&request, || panic!("nobody listens"));
        assert!(!has_listener(&request));
        let counter = Rc::new(OutcomeCounter::default());
        register(&request, counter.clone());
        assert!(has_listener(&request));
        report(&request, codes_fetched);
        report(&request, codes_fetched);
        assert_eq!(counter.0.get(), 2);
    }
}
