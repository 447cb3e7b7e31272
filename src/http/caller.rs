//! Who calls: every request proves it with its headers, a signed one with its bytes, and there is room for it.
//!
//! | Step | Refused as |
//! |---|---|
//! | credentials, address, standing | 401, 403 |
//! | a signed request: room in its class, before anything is read | 429 |
//! | a signed request: path, body as it came, signature | 400, 408, 413, 415, 401 |
//! | the first use of a credential from a rotation is written down | 401 if it was taken back, 503 |
//! | it is counted | 429 |
//!
//! Rules: the signature is checked over the bytes as they came, once, before anything reads them; only what got through
//! all of this is counted by its key, and what ends as 401 is counted by its address.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest, web};
use bytes::Bytes;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};

use super::limits;
use crate::access::client_address::{ClientAddress, X_FORWARDED_FOR};
use crate::access::framing::{FramingError, SignedRequest};
use crate::access::headers::{IDEMPOTENCY_KEY, Presented, X_API_KEY, X_API_SECRET, X_SIGNATURE, X_TIMESTAMP};
use crate::access::limits::Class;
use crate::access::rate_limits::Drawer;
use crate::access::register::{self, AccessError, PartnerAccess};
use crate::access::signature::{self, SignatureError};
use crate::access::window::{Exhausted, Reading};
use crate::body;
use crate::certification::{RequestHash, Seen};
use crate::errors::{ApiError, Code};
use crate::service::Service;

/// A request whose credentials and address are right.
#[derive(Debug)]
pub struct Caller {
    /// Who.
    pub partner: Arc<PartnerAccess>,
    /// With which credential.
    pub credential_id: CredentialId,
    /// From where.
    pub address: IpAddr,
}

impl Caller {
    /// Who.
    #[must_use]
    pub fn partner_id(&self) -> PartnerId {
        self.partner.partner_id
    }
}

impl From<register::Caller> for Caller {
    fn from(known: register::Caller) -> Self {
        Self {
            partner: known.partner,
            credential_id: known.credential_id,
            address: known.address,
        }
    }
}

/// What a signed request is counted as stands in the type that its handler takes.
pub trait Draws: 'static {
    /// The class.
    const CLASS: Class;
}

macro_rules! draws {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $name {}

            impl Draws for $name {
                const CLASS: Class = Class::$name;
            }
        )+
    };
}

draws! {
    /// Counted as [`Class::Orders`].
    Orders
    /// Counted as [`Class::General`].
    General
    /// Counted as [`Class::Auth`].
    Auth
    /// Counted as [`Class::Vouchers`].
    Vouchers
}

/// A request that is signed: its sender, and the bytes that were signed.
#[derive(Debug)]
pub struct Signed<C = General> {
    /// Who.
    pub caller: Caller,
    /// What.
    pub body: Bytes,
    class: PhantomData<C>,
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let arrival = Arrival::of(&request, Class::General)?;
            let known = arrival.identify()?;
            arrival.admit(known, Proof::Credentials).await
        })
    }
}

impl<C: Draws> FromRequest for Signed<C> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let arrival = Arrival::of(&request, C::CLASS)?;
            let known = arrival.identify()?;
            arrival.look(&known)?;
            check_target(&request)?;
            let headers = request.headers();
            body::check_plain(headers)?;
            // The type of what is not there does not matter.
            if !body::is_absent(headers) {
                body::check_json(headers)?;
            }
            let body = body::read(headers, payload).await?;
            arrival.verify(&known, &body)?;
            Ok(Self {
                caller: arrival.admit(known, Proof::Signed).await?,
                body,
                class: PhantomData,
            })
        })
    }
}

/// What a request has proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Its credentials.
    Credentials,
    /// These, and its signature.
    Signed,
}

/// A request on its way in.
struct Arrival<'a> {
    request: &'a HttpRequest,
    service: &'a Service,
    address: ClientAddress,
    class: Class,
}

impl<'a> Arrival<'a> {
    fn of(request: &'a HttpRequest, class: Class) -> Result<Self, ApiError> {
        let service: &web::Data<Service> = request.app_data().ok_or_else(ApiError::unavailable)?;
        let peer = request.peer_addr().ok_or_else(ApiError::unavailable)?.ip();
        let forwarded = request.headers().get_all(X_FORWARDED_FOR);
        let address = service
            .trusted_proxies
            .client(peer, forwarded.map(|value| value.as_bytes()));
        Ok(Self {
            request,
            service,
            address,
            class,
        })
    }

    fn identify(&self) -> Result<register::Caller, ApiError> {
        let (presented, now) = (presented(self.request), self.service.clock.now());
        let register = &self.service.register;
        register
            .authenticate(&presented, self.address, now)
            .map_err(|error| self.refuse(denied(error)))
    }

    /// Where there is no room, nothing more is read.
    fn look(&self, known: &register::Caller) -> Result<(), ApiError> {
        let rate_limits = &self.service.rate_limits;
        let looked = rate_limits.look(self.drawer(known), self.service.clock.monotonic());
        self.settle(known, looked)
    }

    fn verify(&self, known: &register::Caller, body: &[u8]) -> Result<(), ApiError> {
        let signed = SignedRequest {
            method: self.request.method().as_str(),
            path: self.request.uri().path(),
            body,
        };
        let now = self.service.clock.now();
        let verified = signature::verify(&known.secret, &presented(self.request), signed, now);
        verified.map_err(|error| {
            let error = unsigned(error);
            if error.code == Code::InvalidSignature {
                self.saw_wrong_signature(known, body);
            }
            self.refuse(error)
        })
    }

    /// For certifications: the same must not come again.
    fn saw_wrong_signature(&self, known: &register::Caller, body: &[u8]) {
        if let Some(watch) = &self.service.certification {
            let signatures = self.request.headers().get_all(X_SIGNATURE);
            let request = RequestHash::of_signed(signatures.map(|value| value.as_bytes()), body);
            let seen = Seen::SignatureRefused { request };
            watch.saw(known.partner.partner_id, self.service.clock.now(), seen);
        }
    }

    /// What is left to do for a request that has proven all it must.
    async fn admit(&self, known: register::Caller, proof: Proof) -> Result<Caller, ApiError> {
        if known.awaits_first_use {
            self.record_first_use(&known).await?;
        }
        let rate_limits = &self.service.rate_limits;
        let drawn = rate_limits.draw(self.drawer(&known), self.service.clock.monotonic());
        self.settle(&known, drawn)?;
        if let Some(watch) = &self.service.certification {
            let (partner_id, now) = (known.partner.partner_id, self.service.clock.now());
            let signed = proof == Proof::Signed;
            watch.saw_request(partner_id, known.credential_id, self.class, signed, now);
        }
        Ok(known.into())
    }

    /// Durable before the first answer: from then on the credential is not taken back when its predecessor asks again.
    async fn record_first_use(&self, known: &register::Caller) -> Result<(), ApiError> {
        let recorded = self.service.store.record_first_use(known.credential_id).await?;
        let Some(at) = recorded else {
            return Err(self.refuse(denied(AccessError::InvalidCredentials)));
        };
        self.service.register.note_first_use(known.key_hash, at);
        Ok(())
    }

    fn drawer<'b>(&self, known: &'b register::Caller) -> Drawer<'b> {
        Drawer {
            key_hash: known.key_hash,
            class: self.class,
            limits: &known.partner.limits,
        }
    }

    /// Notes how the window stands, for the answer, and refuses where there is no room.
    fn settle(&self, known: &register::Caller, drawn: Result<Reading, Exhausted>) -> Result<(), ApiError> {
        match drawn {
            Ok(reading) => {
                limits::note(self.request, self.class, reading);
                Ok(())
            }
            Err(exhausted) => {
                limits::note(self.request, self.class, exhausted.0);
                self.service.metrics.rate_limited(self.class);
                let error = limits::exhausted(self.class, exhausted);
                self.saw_limit(known, error.retry_after_s.unwrap_or_default());
                Err(error)
            }
        }
    }

    /// For certifications: a pause must follow.
    fn saw_limit(&self, known: &register::Caller, pause_s: u32) {
        if let Some(watch) = &self.service.certification {
            let (partner_id, now) = (known.partner.partner_id, self.service.clock.now());
            watch.saw_limit(partner_id, known.credential_id, self.class, pause_s, now);
        }
    }

    /// Counts what fails to authenticate; past the limit the answer no longer says what was wrong.
    fn refuse(&self, error: ApiError) -> ApiError {
        if error.code.status() != 401 {
            return error;
        }
        limits::forget(self.request);
        let Service {
            metrics,
            rate_limits,
            clock,
            ..
        } = self.service;
        metrics.unauthenticated(error.code);
        match rate_limits.fail(self.address.answerable(), clock.monotonic()) {
            Ok(_) => error,
            Err(exhausted) => {
                metrics.rate_limited(Class::Auth);
                limits::too_many_failures(exhausted)
            }
        }
    }
}

/// A signature covers a path alone.
fn check_target(request: &HttpRequest) -> Result<(), ApiError> {
    if request.uri().query().is_some() {
        let message = "a signed request carries no query string; the signature would not cover it";
        return Err(ApiError::new(Code::UnexpectedQuery, message));
    }
    if request.uri().authority().is_some() {
        return Err(ApiError::new(
            Code::MalformedRequest,
            "the request target must be a path",
        ));
    }
    Ok(())
}

/// The names of those headers, which need not be read from text with each request.
static NAMES: [HeaderName; 5] = [
    HeaderName::from_static(X_API_KEY),
    HeaderName::from_static(X_API_SECRET),
    HeaderName::from_static(X_TIMESTAMP),
    HeaderName::from_static(X_SIGNATURE),
    HeaderName::from_static(IDEMPOTENCY_KEY),
];

/// The headers that prove who calls, each with how often it came.
pub fn presented(request: &HttpRequest) -> Presented<'_> {
    let headers = request.headers();
    Presented::collect(|name| {
        let values = match NAMES.iter().find(|known| known.as_str() == name) {
            Some(known) => headers.get_all(known),
            None => headers.get_all(name),
        };
        values.map(|value| value.as_bytes())
    })
}

fn denied(error: AccessError) -> ApiError {
    match error {
        AccessError::InvalidCredentials => ApiError::new(
            Code::InvalidCredentials,
            "X-API-Key and X-API-Secret must each appear once and belong together",
        ),
        AccessError::IpNotAllowed { address, .. } => ApiError::new(
            Code::IpNotAllowed,
            format!("address {address} is not on the allowlist; ask to have it added"),
        ),
        AccessError::PartnerSuspended { .. } => ApiError::new(
            Code::PartnerSuspended,
            "the partner is suspended; contact the operator",
        ),
    }
}

fn unsigned(error: SignatureError) -> ApiError {
    match error {
        SignatureError::Timestamp(error) => ApiError::new(Code::TimestampOutOfRange, error.to_string()),
        SignatureError::Framing(FramingError::Body) => ApiError::new(
            Code::MalformedRequest,
            "a body is empty or a JSON object that begins with {",
        ),
        other => ApiError::new(Code::InvalidSignature, other.to_string()),
    }
}
