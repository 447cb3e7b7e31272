//! Who calls: every request proves it with its headers, a signed one with its bytes.
//!
//! Rule: the signature is checked over the bytes as they came, once, before anything reads them; and nothing is read
//! that is larger, slower or more wrapped than it may be.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};

use crate::access::framing::{FramingError, SignedRequest};
use crate::access::headers::Presented;
use crate::access::register::{self, AccessError, PartnerAccess};
use crate::access::signature::{self, SignatureError};
use crate::errors::{ApiError, Code};
use crate::service::Service;

/// Largest body (contract §2). Bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// How long a whole body may take (contract §2).
const BODY_DEADLINE: Duration = Duration::from_secs(10);

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

/// A request that is signed: its sender, and the bytes that were signed.
#[derive(Debug)]
pub struct Signed {
    /// Who.
    pub caller: Caller,
    /// What.
    pub body: Bytes,
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(authenticate(request).map(|(caller, _)| caller))
    }
}

impl FromRequest for Signed {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let (caller, secret) = authenticate(&request)?;
            plain(&request)?;
            let body = read(&request, payload).await?;
            verify(&request, &secret, &body)?;
            Ok(Self { caller, body })
        })
    }
}

type Secret = crate::access::credential::ApiSecret;

fn authenticate(request: &HttpRequest) -> Result<(Caller, Secret), ApiError> {
    let service = service(request)?;
    let address = request.peer_addr().ok_or_else(ApiError::unavailable)?.ip();
    let authenticated = service
        .register
        .authenticate(&presented(request), address, service.clock.now());
    let register::Caller {
        partner,
        credential_id,
        secret,
        ..
    } = authenticated.map_err(refused)?;
    Ok((
        Caller {
            partner,
            credential_id,
            address,
        },
        secret,
    ))
}

fn service(request: &HttpRequest) -> Result<&web::Data<Service>, ApiError> {
    request.app_data().ok_or_else(ApiError::unavailable)
}

/// The headers that prove who calls, each with how often it came.
pub fn presented(request: &HttpRequest) -> Presented<'_> {
    Presented::collect(|name| request.headers().get_all(name).map(|value| value.as_bytes()))
}

fn refused(error: AccessError) -> ApiError {
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

/// What a signed request must be before its body is read.
fn plain(request: &HttpRequest) -> Result<(), ApiError> {
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
    if request.headers().contains_key(CONTENT_ENCODING) {
        let message = "Content-Encoding is not supported; send the plain bytes that are signed";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    json_or_nothing(request)
}

fn json_or_nothing(request: &HttpRequest) -> Result<(), ApiError> {
    let Some(content_type) = request.headers().get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = content_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        "send Content-Type: application/json",
    ))
}

async fn read(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    let length = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_DEADLINE, collect(payload, length.unwrap_or(0))).await {
        Ok(body) => body,
        Err(_) => Err(ApiError::new(
            Code::RequestTimeout,
            "the body did not arrive within 10 seconds",
        )),
    }
}

/// Most bodies come in one part, which is then not copied.
async fn collect(mut payload: Payload, expected: usize) -> Result<Bytes, ApiError> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(part) = payload.next().await {
        let part = part.map_err(|_| ApiError::new(Code::MalformedRequest, "the body broke off"))?;
        if whole.len() + joined.len() + part.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if whole.is_empty() && joined.is_empty() {
            whole = part;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(expected);
            joined.extend_from_slice(&std::mem::take(&mut whole));
        }
        joined.extend_from_slice(&part);
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

fn too_large() -> ApiError {
    ApiError::new(Code::PayloadTooLarge, "a body has at most 262144 bytes")
}

fn verify(request: &HttpRequest, secret: &Secret, body: &[u8]) -> Result<(), ApiError> {
    let signed = SignedRequest {
        method: request.method().as_str(),
        path: request.uri().path(),
        body,
    };
    let now = service(request)?.clock.now();
    signature::verify(secret, &presented(request), signed, now).map_err(unsigned)
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
