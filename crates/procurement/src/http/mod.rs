//! HTTP client of the vendor protocol. Each method makes one call; retries are up to the caller.
//!
//! | Step | File | Failure |
//! |---|---|---|
//! | the circuit breaker admits the call | [`circuit_breaker`](super::circuit_breaker) | [`FailureReason::CircuitOpen`] |
//! | the call is sent and its response read up to a limit | here | timeout, lost connection, too large |
//! | the status is interpreted | `status` | the table of the protocol |
//! | the body is parsed and validated | `sale`, `records` | [`InvalidResponse`] |
//!
//! A response is accepted or rejected as a whole, and none of its text enters an error or a log line.

mod records;
mod sale;
mod status;
mod url;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use secrecy::SecretString;
use serde::Serialize;
use time::Date;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::vendor::VendorNetwork;
use vouchsafe_http_client::resolver::{Resolver, system_lookup};
use vouchsafe_http_client::url_policy::{LoopbackTargets, UrlPolicy, UrlRejection};
use zeroize::Zeroizing;

pub use self::records::RecordStream;
use self::status::CallKind;
pub use self::url::{InvalidVendorUrl, VendorUrl};
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};
use vouchsafe_security::secret::expose;

use super::circuit_breaker::{CallPermit, CircuitBreaker, CircuitOpen, CircuitSnapshot};
use super::{AdapterConfig, FailureReason, InvalidResponse, PurchaseResult, VendorFailure};
use crate::limits::MAX_RESPONSE_BYTES;

/// Longest error body that is parsed for its code. A longer one counts as one without a code.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Longest accepted Retry-After: a longer pause is an outage for an operator to handle.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Maximum time until the connection is established.
    pub connect: Duration,
    /// Maximum time until the last byte of the response.
    pub total: Duration,
}

impl Default for Timeouts {
    /// Vendors may issue vouchers at their own suppliers during the call, so a response may take long;
    /// connecting may not.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(30),
        }
    }
}

/// Why no adapter can be created.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    #[error("TLS is unavailable: {0}")]
    Tls(#[from] rustls::Error),
    /// Happens on a machine without root certificates.
    #[error("cannot create an HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("an http vendor needs a url and credentials; put both")]
    Incomplete,
    #[error("the vendor's url is refused: {0}; put another one, or set VOUCHSAFE_VENDOR_NETWORK=any")]
    Refused(#[from] UrlRejection),
    /// The credential cannot be sent in a header.
    #[error("the vendor's credential contains characters that cannot be sent in a header; put another one")]
    Credential,
}

/// A vendor that implements the vendor protocol.
pub struct HttpVendor {
    client: Client,
    url: VendorUrl,
    clock: Arc<dyn Clock>,
    breaker: Mutex<CircuitBreaker>,
}

/// Body of a purchase request.
#[derive(Serialize)]
struct PurchaseBody<'a> {
    purchase_id: PurchaseKey,
    product_id: &'a str,
    denomination: Money,
    currency: Currency,
    quantity: u32,
}

/// A complete 2xx body, which may contain codes.
type ResponseBody = Zeroizing<Vec<u8>>;

impl HttpVendor {
    /// Creates the client; makes no call.
    ///
    /// # Errors
    /// [`AdapterError`].
    pub fn new(
        config: &AdapterConfig,
        timeouts: Timeouts,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AdapterError> {
        let (Some(url), Some(credential)) = (config.url.clone(), &config.credential) else {
            return Err(AdapterError::Incomplete);
        };
        let mut builder = vouchsafe_http_client::client_builder(url.as_str())?;
        if let Some(guard) = guard(config.network) {
            // A URL that was stored before the setting is refused here, and a host with a private address at
            // each connection.
            guard.policy().parse(url.as_str())?;
            builder = builder.dns_resolver(Arc::new(guard));
        }
        let client = builder
            .default_headers(default_headers(credential)?)
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            .build()?;
        Ok(Self {
            client,
            url,
            clock,
            breaker: Mutex::new(CircuitBreaker::new()),
        })
    }

    pub(super) async fn buy(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        let body = PurchaseBody {
            purchase_id: request.key,
            product_id: request.product_id.as_str(),
            denomination: request.denomination,
            currency: request.denomination.currency,
            quantity: request.quantity,
        };
        let call = self.client.post(self.url.join("/v1/purchases"));
        let call = call
            .header("Idempotency-Key", request.key.to_string())
            .json(&body);
        let body = self.send(CallKind::Buy, call).await?;
        sale::parse_sale(&body, request, self.today())
    }

    pub(super) async fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        let call = self
            .client
            .get(self.url.join(&format!("/v1/purchases/{}", request.key)));
        let body = self.send(CallKind::Poll, call).await?;
        sale::parse_sale(&body, request, self.today())
    }

    pub(super) fn records(&self, day: Date) -> RecordStream<'_> {
        RecordStream::new(self, day)
    }

    fn today(&self) -> Date {
        self.clock.now().date()
    }

    /// Sends a call if the circuit breaker admits it, and records the result.
    async fn send(
        &self,
        call: CallKind,
        request: reqwest::RequestBuilder,
    ) -> Result<ResponseBody, VendorFailure> {
        let permit = self.breaker().try_acquire(self.clock.monotonic());
        let permit =
            permit.map_err(|CircuitOpen(wait)| call.not_now(FailureReason::CircuitOpen, Some(wait)))?;
        let result = match request.send().await {
            Ok(response) => read_response(call, response).await,
            Err(error) => Err(send_failure(call, &error)),
        };
        self.record_outcome(permit, &result);
        result
    }

    fn record_outcome(&self, permit: CallPermit, result: &Result<ResponseBody, VendorFailure>) {
        let Some(reason) = result.as_ref().err().and_then(status::outage_reason) else {
            self.breaker().record_success(permit, self.clock.monotonic());
            return;
        };
        let opened = self.breaker().record_failure(permit, self.clock.monotonic());
        if let Some(pause) = opened {
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(vendor.url = %self.url, error.message = %reason, pause_ms, "vendor circuit opened");
        }
    }

    pub(super) fn is_circuit_open(&self) -> bool {
        self.breaker().is_open()
    }

    pub(super) fn circuit(&self) -> CircuitSnapshot {
        self.breaker().snapshot()
    }

    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock()
    }
}

/// The guard of outgoing connections, if the setting requires public addresses.
#[must_use]
pub fn guard(network: VendorNetwork) -> Option<Resolver> {
    match network {
        VendorNetwork::Any => None,
        VendorNetwork::Public => {
            let policy = UrlPolicy::new(LoopbackTargets::Refused, &[]);
            Some(Resolver::new(policy, system_lookup()))
        }
    }
}

fn default_headers(credential: &SecretString) -> Result<HeaderMap, AdapterError> {
    let bearer = Zeroizing::new(format!("Bearer {}", expose(credential)));
    let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| AdapterError::Credential)?;
    bearer.set_sensitive(true);
    let json = HeaderValue::from_static("application/json");
    Ok(HeaderMap::from_iter([(AUTHORIZATION, bearer), (ACCEPT, json)]))
}

/// Maps a request without a response. Without a connection nothing was requested.
fn send_failure(call: CallKind, error: &reqwest::Error) -> VendorFailure {
    if error.is_connect() {
        return call.not_now(FailureReason::Unreachable, None);
    }
    let reason = if error.is_timeout() {
        FailureReason::TimedOut
    } else {
        FailureReason::ConnectionLost
    };
    VendorFailure::Unknown {
        reason,
        retry_after: None,
    }
}

async fn read_response(call: CallKind, response: Response) -> Result<ResponseBody, VendorFailure> {
    let status = response.status();
    if status.is_success() {
        return match read_body(response, MAX_RESPONSE_BYTES).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(InvalidResponse::TooLarge.into()),
            // The response had begun, so the vendor has received the request.
            Err(error) if error.is_timeout() => Err(unknown_outcome(FailureReason::TimedOut)),
            Err(_) => Err(unknown_outcome(FailureReason::ConnectionLost)),
        };
    }
    let retry_after = retry_after(response.headers());
    // Without a readable error body only the status is known.
    let code = match read_body(response, MAX_ERROR_BYTES).await {
        Ok(Some(body)) => status::parse_error_code(&body),
        Ok(None) | Err(_) => None,
    };
    Err(status::failure_for_status(
        call,
        status.as_u16(),
        code,
        retry_after,
    ))
}

const fn unknown_outcome(reason: FailureReason) -> VendorFailure {
    VendorFailure::Unknown {
        reason,
        retry_after: None,
    }
}

/// The body, or `None` if it has more than `limit` bytes; the rest is not read then.
async fn read_body(mut response: Response, limit: usize) -> Result<Option<ResponseBody>, reqwest::Error> {
    let announced = response
        .content_length()
        .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if announced > limit {
        return Ok(None);
    }
    // Full capacity from the start if known: growing would leave unwiped copies in memory.
    let mut body = Zeroizing::new(Vec::with_capacity(announced));
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The Retry-After header in seconds. A date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod fuzz_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_parsed_in_seconds_and_bounded() {
        for (text, expected) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("3600", Some(3_600)),
            ("3601", Some(3_600)),
            ("18446744073709551615", Some(3_600)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1.5", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn credential_is_sent_and_not_printed() {
        let headers = default_headers(&"a-secret".to_owned().into()).unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer a-secret");
        assert!(!format!("{headers:?}").contains("a-secret"));
        let refused = default_headers(&"a\nb".to_owned().into());
        assert!(matches!(refused, Err(AdapterError::Credential)));
    }
}
