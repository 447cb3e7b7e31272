//! HTTP sender of webhooks.
//!
//! Bodies are serialized and signed per attempt and stored nowhere. The client follows no redirects, uses no
//! proxy, and connects to allowed addresses only ([`UrlPolicy`]). The status decides the outcome; the first
//! bytes of the response body are kept, and a receiver that keeps sending is cut off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use vouchsafe_actors::delivery::ATTEMPT_TIMEOUT;
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::delivery::queue::MAX_CONCURRENCY;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::delivery::{
    DeliveryFault, MAX_STORED_RESPONSE_BYTES, SealedSecret, SendResult, WebhookEvent, WebhookTarget,
};
use vouchsafe_security::vault::seal::{WebhookSecret, sealed_key_id};
use vouchsafe_security::webhook_signature::{SignatureHeaders, sign};
use vouchsafe_store::keyring::Keyring;

use vouchsafe_http_client::causes;
use vouchsafe_http_client::resolver::{Resolver, system_lookup};
use vouchsafe_http_client::url_policy::{UrlPolicy, UrlRejection};

use super::connections::{Connections, IDLE_CONNECTION};

/// Endpoints of many partners may have one host, each with [`MAX_CONCURRENCY`] requests at once: with fewer
/// kept connections most requests would open a new one. Idle ones are closed after [`IDLE_CONNECTION`].
const MAX_IDLE_PER_HOST: usize = 8 * MAX_CONCURRENCY;

/// How much of a response is read, so that the connection can be reused. Bytes.
const MAX_READ_BYTES: usize = 16 * 1_024;

/// How long to wait for the body once the status is known.
const BODY_TIMEOUT: Duration = Duration::from_millis(500);

/// Part of the attempt's timeout that is reserved for handing over the response.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(20);

/// Stored instead of a response that repeats the request: no request body and no signature is stored.
const ECHO_OMITTED: &str = "(omitted: repeats the request)";

/// How many characters of a signature show that a response repeats it.
const ECHOED_SIGNATURE: usize = 20;

/// How many characters of the body show that a response repeats it: more than type and id of the event, which
/// a response may name.
const ECHOED_BODY: usize = 90;

/// Marks test deliveries, which are in no feed.
const TEST_HEADER: &str = "X-Vouchsafe-Test";

pub struct SenderConfig {
    pub keyring: Arc<Keyring>,
    pub clock: Arc<dyn Clock>,
    pub policy: UrlPolicy,
    pub runtime: Handle,
}

/// Sends webhooks over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct HttpSender(Arc<SenderInner>);

struct SenderInner {
    keyring: Arc<Keyring>,
    clock: Arc<dyn Clock>,
    policy: UrlPolicy,
    resolver: Resolver,
    http: Connections,
    /// Absent on a machine without root certificates.
    https: Option<Connections>,
    runtime: Handle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningMode {
    /// Signed with the endpoint's secrets.
    Valid,
    /// Signed with a random key, for endpoint tests.
    Invalid,
}

/// The request of one attempt.
#[derive(Clone)]
pub struct WebhookRequest {
    pub id: String,
    pub body: Vec<u8>,
    pub test: bool,
    pub signing: SigningMode,
}

impl HttpSender {
    /// # Errors
    /// If no HTTP client can be created.
    pub fn new(parts: SenderConfig) -> anyhow::Result<Self> {
        let resolver = Resolver::new(parts.policy.clone(), system_lookup());
        let client = |scheme: &str, max_idle: usize| -> anyhow::Result<Client> {
            let builder = vouchsafe_http_client::client_builder(scheme)?
                .dns_resolver(Arc::new(resolver.clone()))
                .http1_only()
                .referer(false)
                .tcp_nodelay(true)
                .connect_timeout(ATTEMPT_TIMEOUT)
                .pool_idle_timeout(IDLE_CONNECTION)
                .pool_max_idle_per_host(max_idle)
                .user_agent(concat!("Vouchsafe-Webhooks/", env!("CARGO_PKG_VERSION")));
            Ok(builder.build()?)
        };
        let connections = |scheme: &str| -> anyhow::Result<Connections> {
            Ok(Connections::new(
                client(scheme, MAX_IDLE_PER_HOST)?,
                client(scheme, 0)?,
            ))
        };
        let secure = connections("https:");
        if let Err(error) = &secure {
            tracing::warn!(error.message = %error, "webhooks over https are disabled: no root certificates found");
        }
        Ok(Self(Arc::new(SenderInner {
            http: connections("http:")?,
            https: secure.ok(),
            resolver,
            keyring: parts.keyring,
            clock: parts.clock,
            policy: parts.policy,
            runtime: parts.runtime,
        })))
    }

    /// Checks a URL before its registration, with every address of its host. A host that does not resolve is
    /// accepted: it is resolved again at each connection.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub async fn check(&self, text: &str) -> Result<String, UrlRejection> {
        let url = self.0.resolver.check(text, ATTEMPT_TIMEOUT).await;
        url.map(Into::into)
    }

    /// Sends a request within the timeout of an attempt; returns the result and the duration.
    pub async fn post(&self, target: Arc<WebhookTarget>, request: WebhookRequest) -> (SendResult, Duration) {
        let parts = Arc::clone(&self.0);
        let started = Instant::now();
        let attempt = self.spawn(async move { parts.post(&target, request).await });
        let result = tokio::time::timeout(ATTEMPT_TIMEOUT, attempt).await;
        let result = result.unwrap_or_else(|_| SendResult::failed(DeliveryFault::Timeout));
        (result, started.elapsed())
    }

    /// Runs an attempt on the runtime of the connections; dropping the future aborts it.
    #[allow(clippy::disallowed_methods)] // the only place that spawns on the runtime of the connections
    fn spawn(
        &self,
        attempt: impl Future<Output = SendResult> + Send + 'static,
    ) -> StoreFuture<'static, SendResult> {
        let task = AbortOnDrop(self.0.runtime.spawn(attempt));
        Box::pin(async move {
            let mut task = task;
            (&mut task.0)
                .await
                .unwrap_or_else(|_| SendResult::failed(DeliveryFault::Internal))
        })
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<SendResult>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Sender for HttpSender {
    fn send(&self, target: Arc<WebhookTarget>, event: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let parts = Arc::clone(&self.0);
        self.spawn(async move {
            match webhook_request(&event) {
                Some(request) => parts.post(&target, request).await,
                None => {
                    tracing::error!(partner.id = %event.events.partner_id, event.number = event.number, "cannot decode webhook event");
                    SendResult::failed(DeliveryFault::Internal)
                }
            }
        })
    }
}

fn webhook_request(event: &WebhookEvent) -> Option<WebhookRequest> {
    let envelope = event.events.envelope(event.number)?;
    Some(WebhookRequest {
        id: envelope.event_id.to_string(),
        body: serde_json::to_vec(&envelope).ok()?,
        test: false,
        signing: SigningMode::Valid,
    })
}

impl SenderInner {
    async fn post(&self, target: &WebhookTarget, request: WebhookRequest) -> SendResult {
        let started = Instant::now();
        let Ok(url) = self.policy.parse(&target.url) else {
            return SendResult::failed(DeliveryFault::Forbidden);
        };
        // The resolver checks hosts only; the program's own ports are checked here.
        if self.policy.is_own_port(&url)
            && let Err(error) = self.resolver.resolve_url(&url).await
        {
            return SendResult::failed(fault_of_rejection(error));
        }
        let connections = if url.scheme() == "https" {
            self.https.as_ref()
        } else {
            Some(&self.http)
        };
        let (Some(connections), Some(signed)) = (connections, self.sign(target, &request).await) else {
            return SendResult::failed(DeliveryFault::Internal);
        };
        let body = Bytes::from(request.body);
        let signatures = [signed.webhook_signature.clone(), signed.x_signature.clone()];
        let mut builder = connections
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", request.id)
            .header("webhook-timestamp", signed.timestamp)
            .header("webhook-signature", signed.webhook_signature)
            .header("X-Signature", signed.x_signature)
            .body(body.clone());
        if request.test {
            builder = builder.header(TEST_HEADER, "true");
        }
        let sent = match builder.build() {
            Ok(request) => connections.send(request).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(response) => {
                let remaining = ATTEMPT_TIMEOUT.saturating_sub(started.elapsed() + TIMEOUT_MARGIN);
                let mut result = self.read_response(response, remaining.min(BODY_TIMEOUT)).await;
                if is_echo(&result.body, &body, &signatures) {
                    ECHO_OMITTED.clone_into(&mut result.body);
                }
                result
            }
            Err(error) => SendResult::failed(fault_of_error(&error)),
        }
    }

    async fn sign(&self, target: &WebhookTarget, request: &WebhookRequest) -> Option<SignatureHeaders> {
        let now = self.clock.now();
        let secrets = match request.signing {
            SigningMode::Valid => self.secrets_of(target, now).await?,
            SigningMode::Invalid => vec![WebhookSecret::generate().ok()?],
        };
        let keys: Vec<&[u8]> = secrets.iter().map(WebhookSecret::key).collect();
        Some(sign(&request.id, now.unix_timestamp(), &request.body, &keys))
    }

    /// The valid secrets, newest first.
    async fn secrets_of(&self, target: &WebhookTarget, now: OffsetDateTime) -> Option<Vec<WebhookSecret>> {
        let mut secrets = vec![self.open(target, &target.secret).await?];
        if let Some((sealed, until)) = &target.previous_secret
            && *until > now
        {
            secrets.extend(self.open(target, sealed).await);
        }
        Some(secrets)
    }

    /// Decrypts a secret.
    async fn open(&self, target: &WebhookTarget, sealed: &SealedSecret) -> Option<WebhookSecret> {
        let webhook_id = target.webhook_id.as_uuid();
        let log_error = |error: &dyn std::fmt::Display| {
            tracing::error!(error.message = %error, webhook.id = %target.webhook_id, "cannot decrypt webhook secret");
        };
        let vault = self.keyring.vault_with(sealed_key_id(&sealed.0)).await;
        let vault = vault.inspect_err(|error| log_error(error)).ok()?;
        let opened = vault.open_webhook_secret(webhook_id, &sealed.0);
        opened.inspect_err(|error| log_error(error)).ok()
    }

    async fn read_response(&self, mut response: Response, timeout: Duration) -> SendResult {
        let retry_after = retry_after(response.headers(), self.clock.now());
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                append_bounded(&mut body, &chunk);
                if body.len() >= MAX_READ_BYTES {
                    break;
                }
            }
        };
        // The status is known: a slow body is cut off.
        let _ = tokio::time::timeout(timeout, read).await;
        body.truncate(MAX_STORED_RESPONSE_BYTES);
        SendResult {
            status: Ok(status),
            retry_after,
            body: printable(&body),
        }
    }
}

fn append_bounded(body: &mut Vec<u8>, chunk: &Bytes) {
    let remaining = MAX_READ_BYTES.saturating_sub(body.len());
    body.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
}

/// Whether the response repeats the request's signature or the beginning of its body, also as a string in
/// JSON.
fn is_echo(response: &str, body: &[u8], signatures: &[String]) -> bool {
    if response.is_empty() {
        return false;
    }
    let normalized = |text: &str| -> String {
        let is_kept = |c: &char| !matches!(c, '\\' | '"') && !c.is_whitespace();
        text.chars().filter(is_kept).collect()
    };
    let mut prefixes = signatures
        .iter()
        .flat_map(|values| values.split([' ', ',', '=']))
        .filter_map(|value| value.get(..ECHOED_SIGNATURE));
    let body = normalized(&String::from_utf8_lossy(
        &body[..body.len().min(MAX_STORED_RESPONSE_BYTES)],
    ));
    prefixes.any(|prefix| response.contains(prefix))
        || body
            .get(..ECHOED_BODY)
            .is_some_and(|prefix| normalized(response).contains(prefix))
}

/// Replaces characters that Postgres cannot store or a terminal would interpret.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

/// Retry-After in seconds, or as an HTTP date.
fn retry_after(headers: &HeaderMap, now: OffsetDateTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let format = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let at = time::PrimitiveDateTime::parse(text, format).ok()?.assume_utc();
    Duration::try_from(at - now).ok()
}

const fn fault_of_rejection(error: UrlRejection) -> DeliveryFault {
    match error {
        UrlRejection::Unresolved => DeliveryFault::Unresolved,
        _ => DeliveryFault::Forbidden,
    }
}

/// Classifies a client error by its chain of causes.
fn fault_of_error(error: &reqwest::Error) -> DeliveryFault {
    if error.is_timeout() {
        return DeliveryFault::Timeout;
    }
    for error in causes(error) {
        if let Some(rejection) = error.downcast_ref::<UrlRejection>() {
            return fault_of_rejection(*rejection);
        }
        if error.is::<rustls::Error>() {
            return DeliveryFault::Tls;
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
        {
            return DeliveryFault::Tls;
        }
    }
    if error.is_connect() || error.is_request() {
        DeliveryFault::Connection
    } else {
        DeliveryFault::Unreadable
    }
}

#[cfg(test)]
mod tests;
