//! Outcomes of a partner's request, reported to the listener that a middleware has registered.
//!
//! An outcome is reported when it occurs, not with the response: a long poll responds up to 30 s after its
//! authentication, and the handler of a client that disconnects never responds. Without a listener no outcome
//! is built or stored.

use std::rc::Rc;

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
        credential_id: CredentialId,
        class: RequestClass,
        /// Whether it has a valid signature, or only valid credentials.
        signed: bool,
    },
    /// The credentials are valid, and the signature is not.
    SignatureRefused {
        request: &'a HttpRequest,
        body: &'a [u8],
    },
    /// The quota of the API key is exhausted.
    RateLimited {
        credential_id: CredentialId,
        class: RequestClass,
        retry_after_s: u32,
    },
    OrderAnswered(OrderAnswer<'a>),
    /// The response contains the codes of an order.
    CodesFetched {
        order_id: OrderId,
        vouchers: usize,
    },
    WebhookTested(WebhookTest<'a>),
}

/// The response to an order, which is stored under its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderAnswer<'a> {
    pub(super) key: KeyHash,
    pub(super) fingerprint: Fingerprint,
    /// Product of each line.
    pub(super) products: &'a [String],
    pub(super) status: u16,
    /// Whether an earlier request stored the response.
    pub(super) replayed: bool,
}

/// Test deliveries that were sent to a webhook endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebhookTest<'a> {
    pub(super) webhook_id: WebhookId,
    pub(super) event_id: EventId,
    pub(super) wrong_signature: Option<&'a SendResult>,
    pub(super) valid: &'a SendResult,
    pub(super) duplicate: Option<&'a SendResult>,
}

/// Receives the outcomes of one request.
pub(super) trait OutcomeListener {
    fn notify(&self, partner_id: PartnerId, outcome: RequestOutcome<'_>);
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
pub(super) fn report<'a>(
    request: &HttpRequest,
    partner_id: PartnerId,
    outcome: impl FnOnce() -> RequestOutcome<'a>,
) {
    // Cloned, so that the extensions are not borrowed while the listener runs.
    let listener = request
        .extensions()
        .get::<RegisteredListener>()
        .map(|registered| Rc::clone(&registered.0));
    if let Some(listener) = listener {
        listener.notify(partner_id, outcome());
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
        fn notify(&self, _: PartnerId, _: RequestOutcome<'_>) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn codes_fetched() -> RequestOutcome<'static> {
        RequestOutcome::CodesFetched {
            order_id: OrderId::generate_at(time::OffsetDateTime::UNIX_EPOCH),
            vouchers: 1,
        }
    }

    #[test]
    fn outcome_is_built_for_a_listener_only() {
        let request = TestRequest::default().to_http_request();
        let partner_id = PartnerId::generate();
        report(&request, partner_id, || panic!("nobody listens"));
        assert!(!has_listener(&request));
        let counter = Rc::new(OutcomeCounter::default());
        register(&request, counter.clone());
        assert!(has_listener(&request));
        report(&request, partner_id, codes_fetched);
        report(&request, partner_id, codes_fetched);
        assert_eq!(counter.0.get(), 2);
    }
}
