//! Authentication of partner requests, as extractors: credentials, allowlist, rate limit and signature.
//!
//! | Step | Rejected with |
//! |---|---|
//! | check credentials, client address, partner status | 401, 403 |
//! | take one of the permits of the key for requests in flight | 429 |
//! | signed request: check the rate limit of its class before reading the body | 429 |
//! | signed request: check path, body, signature | 400, 408, 413, 415, 401 |
//! | record the first use of a rotated credential | 401 if it was revoked meanwhile, 503 |
//! | count the request against the rate limit | 429 |
//! | check the scope that the route requires | 403 |
//!
//! The signature is verified once, over the raw bytes, before anything parses them. Only fully authenticated
//! requests count against the rate limit of their credential's family; requests that end as 401, or with
//! right credentials from a foreign address, count against their client address.

mod errors;

use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest, web};
use bytes::Bytes;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_security::client_address::ClientAddress;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::SignedRequest;
use vouchsafe_security::headers::{
    AuthHeaders, IDEMPOTENCY_KEY, X_API_KEY, X_API_SECRET, X_SIGNATURE, X_TIMESTAMP,
};
use vouchsafe_security::rate_limiter::RateLimitKeys;
use vouchsafe_security::registry::{self, AccessError, PartnerAccess};
use vouchsafe_security::security_event::{SecurityEvent, SecurityEventReason};
use vouchsafe_security::signature;
use vouchsafe_security::sliding_window::{Exhausted, RateLimitStatus};
use vouchsafe_store::AuditActor;
use vouchsafe_wire::error_code::Code;

pub(crate) use self::errors::partner_suspended;
use self::errors::{access_error, signature_error, signed_message_details};
use super::listener_peers::client_address;
use super::{api_scope, rate_limit_headers, refusals, response_delivery, security_events};
use crate::api::body;
use crate::api::error::ApiError;
use crate::api::request_outcome::{self, RequestOutcome};
use crate::service::Service;
use vouchsafe_telemetry::trace;

/// Extractor: the caller of a request with valid credentials from an allowed address.
#[derive(Debug)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) partner: Arc<PartnerAccess>,
    pub(crate) credential_id: CredentialId,
    /// The first credential from which this one came by rotation.
    pub(crate) family_id: CredentialId,
    pub(crate) address: IpAddr,
}

impl AuthenticatedCaller {
    pub(crate) fn partner_id(&self) -> PartnerId {
        self.partner.partner_id
    }

    /// The author of the caller's changes in the audit log.
    pub(crate) fn audit_actor(&self) -> AuditActor {
        AuditActor::partner(self.partner_id(), trace::current_trace_id())
    }
}

impl From<registry::Caller> for AuthenticatedCaller {
    fn from(caller: registry::Caller) -> Self {
        Self {
            partner: caller.partner,
            credential_id: caller.credential_id,
            family_id: caller.family_id,
            address: caller.address,
        }
    }
}

/// Rate-limit class of a signed request: the handler names it as the parameter of [`VerifiedRequest`].
pub(crate) trait RateLimited: 'static {
    const CLASS: RequestClass;
}

macro_rules! rate_limit_classes {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) enum $name {}

            impl RateLimited for $name {
                const CLASS: RequestClass = RequestClass::$name;
            }
        )+
    };
}

rate_limit_classes! {
    /// Counted as [`RequestClass::Orders`].
    Orders
    /// Counted as [`RequestClass::General`].
    General
    /// Counted as [`RequestClass::Auth`].
    Auth
    /// Counted as [`RequestClass::Vouchers`].
    Vouchers
}

/// Extractor: a request with a valid signature, with its caller and the signed bytes.
#[derive(Debug)]
pub(crate) struct VerifiedRequest<C = General> {
    pub(crate) caller: AuthenticatedCaller,
    pub(crate) body: Bytes,
    class: PhantomData<C>,
}

impl FromRequest for AuthenticatedCaller {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let incoming = IncomingRequest::new(&request, RequestClass::General)?;
            let caller = incoming.authenticate()?;
            response_delivery::take_permit(&request, incoming.service, caller.family_id)?;
            incoming.admit(caller, AuthenticationMethod::Credentials).await
        })
    }
}

impl<C: RateLimited> FromRequest for VerifiedRequest<C> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let incoming = IncomingRequest::new(&request, C::CLASS)?;
            let caller = incoming.authenticate()?;
            response_delivery::take_permit(&request, incoming.service, caller.family_id)?;
            if let Err(error) = incoming.peek_rate_limit(&caller) {
                // actix closes a connection with an unread body: a client that waits would connect again.
                body::discard(payload).await;
                return Err(error);
            }
            check_request_target(&request)?;
            let headers = request.headers();
            body::check_not_compressed(headers)?;
            // Clients may send any Content-Type with an empty body.
            if !body::is_absent(headers) {
                body::check_json_content_type(headers)?;
            }
            let body = body::read(headers, payload).await?;
            incoming.verify_signature(&caller, &body)?;
            Ok(Self {
                caller: incoming.admit(caller, AuthenticationMethod::Signature).await?,
                body,
                class: PhantomData,
            })
        })
    }
}

/// What a request has authenticated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthenticationMethod {
    Credentials,
    /// Credentials and a signature.
    Signature,
}

/// A request during authentication.
struct IncomingRequest<'a> {
    request: &'a HttpRequest,
    service: &'a Service,
    address: ClientAddress,
    class: RequestClass,
}

impl<'a> IncomingRequest<'a> {
    fn new(request: &'a HttpRequest, class: RequestClass) -> Result<Self, ApiError> {
        let service: &web::Data<Service> = request.app_data().ok_or_else(ApiError::unavailable)?;
        Ok(Self {
            request,
            service,
            address: client_address(request)?,
            class,
        })
    }

    fn authenticate(&self) -> Result<registry::Caller, ApiError> {
        let (presented, now) = (auth_headers(self.request), self.service.clock.now());
        let registry = &self.service.registry;
        let result = registry.authenticate(&presented, self.address, self.class, now);
        let partner_id = match &result {
            Ok(caller) => Some(caller.partner.partner_id),
            Err(AccessError::IpNotAllowed { credential, .. }) => Some(credential.partner_id),
            Err(AccessError::PartnerSuspended { partner_id }) => Some(*partner_id),
            Err(AccessError::InvalidCredentials) => None,
        };
        refusals::attach(self.request, self.class, partner_id);
        result.map_err(|error| match &error {
            AccessError::IpNotAllowed { credential, .. } => {
                let event = SecurityEvent {
                    reason: SecurityEventReason::ForeignAddress,
                    credential: Some(*credential),
                    address: self.address.accountable_ip(),
                };
                let recorded = security_events::record(self.service, &event);
                self.limit_failures(access_error(error), recorded)
            }
            _ => self.reject(access_error(error)),
        })
    }

    /// Rejects before the body is read if the rate limit is exhausted. Takes nothing from the quota.
    fn peek_rate_limit(&self, caller: &registry::Caller) -> Result<(), ApiError> {
        let keys = self.rate_limit_keys(caller);
        let result = self.service.shared_limits.peek(keys);
        self.apply_rate_limit(caller, keys, result)
    }

    fn verify_signature(&self, caller: &registry::Caller, body: &[u8]) -> Result<(), ApiError> {
        let signed = SignedRequest {
            method: self.request.method().as_str(),
            path: self.request.uri().path(),
            body,
        };
        let now = self.service.clock.now();
        let verified = signature::verify(&caller.secret, &auth_headers(self.request), signed, now);
        verified.map_err(|error| {
            let mut error = signature_error(error);
            if error.code == Code::InvalidSignature {
                let partner_id = caller.partner.partner_id;
                request_outcome::report(self.request, partner_id, || RequestOutcome::SignatureRefused {
                    request: self.request,
                    body,
                });
                if self.service.environment == Environment::Sandbox {
                    error.details = signed_message_details(&auth_headers(self.request), signed);
                }
            }
            self.reject(error)
        })
    }

    /// Last steps: records the credential's first use, takes one request from the quota, checks the scope.
    async fn admit(
        &self,
        caller: registry::Caller,
        method: AuthenticationMethod,
    ) -> Result<AuthenticatedCaller, ApiError> {
        if caller.is_awaiting_first_use {
            self.record_first_use(&caller).await?;
        }
        let keys = self.rate_limit_keys(&caller);
        let result = self.service.shared_limits.acquire(keys).await;
        self.apply_rate_limit(&caller, keys, result)?;
        api_scope::check(self.request, &caller)?;
        let partner_id = caller.partner.partner_id;
        request_outcome::report(self.request, partner_id, || RequestOutcome::Authenticated {
            credential_id: caller.credential_id,
            class: self.class,
            signed: method == AuthenticationMethod::Signature,
        });
        Ok(caller.into())
    }

    /// Committed before the first response: from then on a repeated rotation does not revoke it.
    async fn record_first_use(&self, caller: &registry::Caller) -> Result<(), ApiError> {
        let recorded = self
            .service
            .node
            .credentials()
            .record_first_use(caller.credential_id)
            .await?;
        let Some(at) = recorded else {
            return Err(self.reject(access_error(AccessError::InvalidCredentials)));
        };
        self.service.registry.record_first_use(caller.key_hash, at);
        Ok(())
    }

    fn rate_limit_keys(&self, caller: &registry::Caller) -> RateLimitKeys {
        let Service {
            rate_limits,
            registry,
            clock,
            ..
        } = self.service;
        let families = || registry.count_families(caller.partner.partner_id, clock.now());
        rate_limits.keys_of(caller, self.class, families)
    }

    /// Stores the rate-limit status for the response headers, and rejects if the quota is exhausted.
    fn apply_rate_limit(
        &self,
        caller: &registry::Caller,
        keys: RateLimitKeys,
        result: Result<RateLimitStatus, Exhausted>,
    ) -> Result<(), ApiError> {
        match result {
            Ok(reading) => {
                rate_limit_headers::record(self.request, self.class, reading);
                Ok(())
            }
            Err(exhausted) => {
                rate_limit_headers::record(self.request, self.class, exhausted.0);
                self.service.metrics.record_rate_limited(self.class);
                let error = rate_limit_headers::rate_limited_error(self.class, exhausted, keys.own.limit);
                let partner_id = caller.partner.partner_id;
                request_outcome::report(self.request, partner_id, || RequestOutcome::RateLimited {
                    credential_id: caller.credential_id,
                    class: self.class,
                    retry_after_s: error.retry_after_s.unwrap_or_default(),
                });
                Err(error)
            }
        }
    }

    /// Counts a 401 against the client address; past the limit the response is a 429 without the reason.
    fn reject(&self, error: ApiError) -> ApiError {
        if error.code.status() != 401 {
            return error;
        }
        rate_limit_headers::discard(self.request);
        let Service {
            metrics,
            rate_limits,
            clock,
            ..
        } = self.service;
        metrics.record_authentication_failure(error.code);
        let recorded = rate_limits.record_auth_failure(self.address.accountable_ip(), clock.monotonic());
        self.limit_failures(error, recorded.map(drop))
    }

    /// The error, or the one without a reason if too many requests of the client address have failed.
    fn limit_failures(&self, error: ApiError, recorded: Result<(), Exhausted>) -> ApiError {
        // The credentials are right: the sandbox shows which message the service has signed, also to a client
        // with too many failures.
        let is_explained =
            error.code == Code::InvalidSignature && self.service.environment == Environment::Sandbox;
        let Err(exhausted) = recorded else {
            return error;
        };
        if is_explained {
            return error;
        }
        self.service.metrics.record_rate_limited(RequestClass::Auth);
        let causes = "key, secret, clock, signature and address";
        rate_limit_headers::too_many_failures_error(exhausted, causes)
    }
}

/// The signature covers the path only, so a query string or an authority would be unsigned.
fn check_request_target(request: &HttpRequest) -> Result<(), ApiError> {
    if request.uri().query().is_some() {
        let message = "a signed request must not have a query string, because the signature does not cover it; remove it";
        return Err(ApiError::new(Code::UnexpectedQuery, message));
    }
    if request.uri().authority().is_some() {
        return Err(ApiError::new(
            Code::MalformedRequest,
            "the request target must be a path such as /api/v1/orders, without scheme and host",
        ));
    }
    Ok(())
}

/// Header names, parsed once and not per request.
static CREDENTIAL_HEADERS: [HeaderName; 5] = [
    HeaderName::from_static(X_API_KEY),
    HeaderName::from_static(X_API_SECRET),
    HeaderName::from_static(X_TIMESTAMP),
    HeaderName::from_static(X_SIGNATURE),
    HeaderName::from_static(IDEMPOTENCY_KEY),
];

/// Collects the authentication headers of a request and how often each occurs.
pub(crate) fn auth_headers(request: &HttpRequest) -> AuthHeaders<'_> {
    let headers = request.headers();
    AuthHeaders::collect(|name| {
        let values = match CREDENTIAL_HEADERS.iter().find(|header| header.as_str() == name) {
            Some(header) => headers.get_all(header),
            None => headers.get_all(name),
        };
        values.map(|value| value.as_bytes())
    })
}
