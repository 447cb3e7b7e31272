//! How does the service speak the vendor protocol? One call, one word of the vendor; asking again is the caller's.
//!
//! | Step | File | What may go wrong |
//! |---|---|---|
//! | the breaker lets the call pass | [`breaker`](super::breaker) | [`Why::Paused`] |
//! | the call is made, its answer read up to a limit | here | it does not arrive, or does not end |
//! | the status says what is known | `status` | the table of the protocol |
//! | the answer is read and checked | `sale`, `records` | [`Nonsense`] |
//!
//! Rule: what an answer holds is taken whole or not at all, and none of its text goes into an error or a log line.

mod records;
mod sale;
mod status;
mod url;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use secrecy::SecretString;
use serde::Serialize;
use time::Date;
use vouchsafe_actors::domain::clock::Clock;
use vouchsafe_actors::domain::money::{Currency, Money};
use zeroize::Zeroizing;

pub use self::records::{MAX_RECORD_PAGES, MAX_RECORDS_PAGE, RecordStream};
use self::status::CallKind;
pub use self::url::{InvalidVendorUrl, VendorUrl};
use super::circuit_breaker::{CircuitBreaker, CircuitOpen, CallPermit};
use super::{PurchaseResult, BuyRequest, VendorFailure, InvalidResponse, PurchaseKey, AdapterConfig, FailureReason};
use crate::http_client;
use crate::secrets::expose;

/// Longest answer that is read, in bytes: 1,000 vouchers, each with parts of the greatest length, and some air.
pub const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Longest answer of an error that is read for its code, in bytes. A longer one says nothing.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Longest pause that a vendor may ask for: an hour is an outage, and an operator's affair.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// How long a vendor is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the last byte of the answer.
    pub total: Duration,
}

impl Default for Timeouts {
    /// Vendors issue at their own suppliers while we wait, so the answer may take a while; a connection does not.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(30),
        }
    }
}

/// Why nobody can speak to a vendor.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// TLS cannot be had.
    #[error("TLS cannot be had: {0}")]
    Tls(#[from] rustls::Error),
    /// No client can be made, such as where a machine has no certificates.
    #[error("no HTTP client can be made: {0}")]
    Client(#[from] reqwest::Error),
    /// There is no URL, or no credential.
    #[error("a vendor of the http adapter needs a url and credentials; put both")]
    Incomplete,
    /// The credential is none that a header can carry.
    #[error("the vendor's credential holds characters that cannot be sent; put another one")]
    Credential,
}

/// A vendor who speaks the vendor protocol.
pub struct HttpVendor {
    client: Client,
    url: VendorUrl,
    clock: Arc<dyn Clock>,
    breaker: Mutex<CircuitBreaker>,
}

/// What is asked for, as the protocol says it.
#[derive(Serialize)]
struct PurchaseBody<'a> {
    purchase_id: PurchaseKey,
    product_id: &'a str,
    denomination: Money,
    currency: Currency,
    quantity: u32,
}

/// An answer with a 2xx, whole. It may hold codes.
type ResponseBody = Zeroizing<Vec<u8>>;

impl HttpVendor {
    /// A vendor with these terms. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`NoClient`].
    pub fn new(terms: &AdapterConfig, timeouts: Timeouts, clock: Arc<dyn Clock>) -> Result<Self, AdapterError> {
        let (Some(url), Some(credential)) = (terms.url.clone(), &terms.credential) else {
            return Err(AdapterError::Incomplete);
        };
        let client = http_client::client_builder(url.as_str())?
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
        let wish = PurchaseBody {
            purchase_id: request.key,
            product_id: request.product_id.as_str(),
            denomination: request.denomination,
            currency: request.denomination.currency,
            quantity: request.quantity,
        };
        let call = self.client.post(self.url.join("/v1/purchases"));
        let call = call
            .header("Idempotency-Key", request.key.to_string())
            .json(&wish);
        let answer = self.send(CallKind::Buy, call).await?;
        sale::parse_sale(&answer, request, self.today())
    }

    pub(super) async fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        let call = self
            .client
            .get(self.url.join(&format!("/v1/purchases/{}", request.key)));
        let answer = self.send(CallKind::Poll, call).await?;
        sale::parse_sale(&answer, request, self.today())
    }

    pub(super) fn records(&self, day: Date) -> RecordStream<'_> {
        RecordStream::new(self, day)
    }

    fn today(&self) -> Date {
        self.clock.now().date()
    }

    /// Makes a call, if the breaker lets it pass, and tells the breaker how it ended.
    async fn send(&self, call: CallKind, request: reqwest::RequestBuilder) -> Result<ResponseBody, VendorFailure> {
        let pass = self.breaker().try_acquire(self.clock.monotonic());
        let pass = pass.map_err(|CircuitOpen(wait)| call.not_now(FailureReason::CircuitOpen, Some(wait)))?;
        let heard = match request.send().await {
            Ok(response) => read_response(call, response).await,
            Err(error) => Err(send_failure(call, &error)),
        };
        self.record_outcome(pass, &heard);
        heard
    }

    fn record_outcome(&self, pass: CallPermit, heard: &Result<ResponseBody, VendorFailure>) {
        let Some(why) = heard.as_ref().err().and_then(status::outage_reason) else {
            self.breaker().record_success(pass);
            return;
        };
        let opened = self.breaker().record_failure(pass, self.clock.monotonic());
        if let Some(pause) = opened {
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(vendor.url = %self.url, %why, pause_ms, "a vendor keeps failing and is left alone for a while");
        }
    }

    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn default_headers(credential: &SecretString) -> Result<HeaderMap, AdapterError> {
    let bearer = Zeroizing::new(format!("Bearer {}", expose(credential)));
    let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| AdapterError::Credential)?;
    bearer.set_sensitive(true);
    let json = HeaderValue::from_static("application/json");
    Ok(HeaderMap::from_iter([(AUTHORIZATION, bearer), (ACCEPT, json)]))
}

/// A request that got no answer: where no connection stood, nothing was asked for.
fn send_failure(call: CallKind, error: &reqwest::Error) -> VendorFailure {
    if error.is_connect() {
        return call.not_now(FailureReason::Unreachable, None);
    }
    let why = if error.is_timeout() {
        FailureReason::TimedOut
    } else {
        FailureReason::ConnectionLost
    };
    VendorFailure::Unknown { reason: why, retry_after: None }
}

async fn read_response(call: CallKind, response: Response) -> Result<ResponseBody, VendorFailure> {
    let status = response.status();
    if status.is_success() {
        return match read_body(response, MAX_RESPONSE_BYTES).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(InvalidResponse::TooLarge.into()),
            // The answer had begun: the request was read.
            Err(error) if error.is_timeout() => Err(unknown_outcome(FailureReason::TimedOut)),
            Err(_) => Err(unknown_outcome(FailureReason::ConnectionLost)),
        };
    }
    let after = retry_after(response.headers());
    // What cannot be read is no word of the vendor's, and its status is all there is.
    let word = match read_body(response, MAX_ERROR_BYTES).await {
        Ok(Some(answer)) => status::parse_error_code(&answer),
        Ok(None) | Err(_) => None,
    };
    Err(status::failure_for_status(call, status.as_u16(), word, after))
}

const fn unknown_outcome(why: FailureReason) -> VendorFailure {
    VendorFailure::Unknown { reason: why, retry_after: None }
}

/// The body, or nothing if it has more than so many bytes; then the rest of it is not read.
async fn read_body(mut response: Response, most: usize) -> Result<Option<ResponseBody>, reqwest::Error> {
    let said = response
        .content_length()
        .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if said > most {
        return Ok(None);
    }
    // Full size from the start where it is known: growing leaves copies behind that nobody wipes.
    let mut body = Zeroizing::new(Vec::with_capacity(said));
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The pause that an answer asks for, in whole seconds. A date is not understood, and says nothing.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_asked_for_in_seconds_and_bounded() {
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
    fn a_credential_is_sent_and_never_shown() {
        let headers = default_headers(&"a-secret".to_owned().into()).unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer a-secret");
        assert!(!format!("{headers:?}").contains("a-secret"));
        let refused = default_headers(&"a\nb".to_owned().into());
        assert!(matches!(refused, Err(AdapterError::Credential)));
    }
}
