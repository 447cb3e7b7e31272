//! How does a letter get to its receiver? Spelled out, signed, posted, and heard as far as an answer is kept.
//!
//! Rules: what is sent is made for each attempt and kept nowhere. No redirect is followed, no proxy stands between, and an
//! address that is not public is not connected to. The status decides; of the body the first bytes are kept, and a receiver
//! that goes on sending is cut off.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use vouchsafe_actors::delivery::ATTEMPT_TIMEOUT;
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::delivery::queue::MAX_CONCURRENCY;
use vouchsafe_actors::domain::clock::Clock;
use vouchsafe_actors::domain::delivery::{SendResult, DeliveryFault, WebhookEvent, MAX_STORED_RESPONSE_BYTES, SealedSecret, WebhookTarget};
use vouchsafe_actors::store::StoreFuture;

use super::resolver::{Resolver, system_lookup};
use super::signature::{SignatureHeaders, sign};
use super::url_policy::{UrlPolicy, UrlRejection, literal_address};
use crate::keyring::Keyring;
use crate::http_client;
use crate::vault::seal::WebhookSecret;

/// How long a connection that nobody uses is kept: an address is looked up again after it.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// How much of an answer is read, so that the connection can be used again. Bytes.
const MAX_READ_BYTES: usize = 16 * 1_024;

/// How long the rest of an answer is waited for, once its status is known.
const BODY_TIMEOUT: Duration = Duration::from_millis(500);

/// What is left of the time for an attempt when its answer is handed over.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(20);

/// The header of what is a test, in no feed.
const TEST_HEADER: &str = "X-Vouchsafe-Test";

/// What a sender is made of.
pub(crate) struct SenderConfig {
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: UrlPolicy,
    pub(crate) runtime: Handle,
}

/// What carries letters over HTTP. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpSender(Arc<SenderInner>);

struct SenderInner {
    keyring: Arc<Keyring>,
    clock: Arc<dyn Clock>,
    policy: UrlPolicy,
    resolver: Resolver,
    http_client: Client,
    /// Absent on a machine without certificates, where no https can be trusted.
    https_client: Option<Client>,
    runtime: Handle,
}

/// How a parcel is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SigningMode {
    /// With the endpoint's secrets.
    Valid,
    /// With a key that nobody has: for a test alone.
    Invalid,
}

/// What is sent in one attempt.
#[derive(Clone)]
pub(crate) struct WebhookRequest {
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
    /// Whether it is a test.
    pub(crate) test: bool,
    /// How it is signed.
    pub(crate) signing: SigningMode,
}

impl HttpSender {
    /// A sender that looks addresses up as the machine does.
    ///
    /// # Errors
    /// When no client can be made.
    pub(crate) fn new(parts: SenderConfig) -> anyhow::Result<Self> {
        let resolver = Resolver::new(parts.policy.clone(), system_lookup());
        let client = |scheme: &str| -> anyhow::Result<Client> {
            let builder = http_client::client_builder(scheme)?
                .dns_resolver(Arc::new(resolver.clone()))
                .http1_only()
                .referer(false)
                .tcp_nodelay(true)
                .connect_timeout(ATTEMPT_TIMEOUT)
                .pool_idle_timeout(IDLE_CONNECTION)
                .pool_max_idle_per_host(MAX_CONCURRENCY)
                .user_agent(concat!("Vouchsafe-Webhooks/", env!("CARGO_PKG_VERSION")));
            Ok(builder.build()?)
        };
        let secure = client("https:");
        if let Err(error) = &secure {
            tracing::warn!(%error, "no webhook can be delivered over https: this machine trusts nobody");
        }
        Ok(Self(Arc::new(SenderInner {
            http_client: client("http:")?,
            https_client: secure.ok(),
            resolver,
            keyring: parts.keyring,
            clock: parts.clock,
            policy: parts.policy,
            runtime: parts.runtime,
        })))
    }

    /// Checks a URL that is about to be registered, with every address that its host has. One without an address may get
    /// one: it is looked up again at each connection.
    pub(crate) async fn check(&self, text: &str) -> Result<(), UrlRejection> {
        let url = self.0.policy.parse(text)?;
        let found = tokio::time::timeout(ATTEMPT_TIMEOUT, self.0.resolve_url(&url)).await;
        match found {
            Ok(Err(refused)) if refused != UrlRejection::Unresolved => Err(refused),
            _ => Ok(()),
        }
    }

    /// Sends a parcel, at most for the time of an attempt; says how long it took.
    pub(crate) async fn post(&self, target: Arc<WebhookTarget>, parcel: WebhookRequest) -> (SendResult, Duration) {
        let parts = Arc::clone(&self.0);
        let began = Instant::now();
        let attempt = self.spawn(async move { parts.post(&target, parcel).await });
        let answered = tokio::time::timeout(ATTEMPT_TIMEOUT, attempt).await;
        let answered = answered.unwrap_or_else(|_| SendResult::failed(DeliveryFault::Timeout));
        (answered, began.elapsed())
    }

    /// Runs an attempt where connections live; it is broken off when nobody waits for it.
    #[allow(clippy::disallowed_methods)] // the one place that starts tasks on the runtime of connections
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
    fn send(&self, target: Arc<WebhookTarget>, letter: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let parts = Arc::clone(&self.0);
        self.spawn(async move {
            match webhook_request(&letter) {
                Some(parcel) => parts.post(&target, parcel).await,
                None => {
                    tracing::error!(partner.id = %letter.events.partner_id, event.number = letter.number, "an event does not read");
                    SendResult::failed(DeliveryFault::Internal)
                }
            }
        })
    }
}

fn webhook_request(letter: &WebhookEvent) -> Option<WebhookRequest> {
    let envelope = letter.events.envelope(letter.number)?;
    Some(WebhookRequest {
        id: envelope.event_id.to_string(),
        body: serde_json::to_vec(&envelope).ok()?,
        test: false,
        signing: SigningMode::Valid,
    })
}

impl SenderInner {
    async fn post(&self, target: &WebhookTarget, parcel: WebhookRequest) -> SendResult {
        let began = Instant::now();
        let Ok(url) = self.policy.parse(&target.url) else {
            return SendResult::failed(DeliveryFault::Forbidden);
        };
        // Connections are checked by host; that a port is not one of ours, here.
        if self.policy.is_own_port(&url)
            && let Err(error) = self.resolve_url(&url).await
        {
            return SendResult::failed(fault_of_rejection(error));
        }
        let client = if url.scheme() == "https" {
            self.https_client.as_ref()
        } else {
            Some(&self.http_client)
        };
        let (Some(client), Some(signed)) = (client, self.sign(target, &parcel).await) else {
            return SendResult::failed(DeliveryFault::Internal);
        };
        let mut request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", parcel.id)
            .header("webhook-timestamp", signed.timestamp)
            .header("webhook-signature", signed.webhook_signature)
            .header("X-Signature", signed.x_signature)
            .body(parcel.body);
        if parcel.test {
            request = request.header(TEST_HEADER, "true");
        }
        match request.send().await {
            Ok(response) => {
                let left = ATTEMPT_TIMEOUT.saturating_sub(began.elapsed() + TIMEOUT_MARGIN);
                self.read_response(response, left.min(BODY_TIMEOUT)).await
            }
            Err(error) => SendResult::failed(fault_of_error(&error)),
        }
    }

    async fn sign(&self, target: &WebhookTarget, parcel: &WebhookRequest) -> Option<SignatureHeaders> {
        let now = self.clock.now();
        let secrets = match parcel.signing {
            SigningMode::Valid => self.secrets_of(target, now).await?,
            SigningMode::Invalid => vec![WebhookSecret::generate().ok()?],
        };
        let keys: Vec<&[u8]> = secrets.iter().map(WebhookSecret::key).collect();
        Some(sign(&parcel.id, now.unix_timestamp(), &parcel.body, &keys))
    }

    /// What signs now, the newest first.
    async fn secrets_of(&self, target: &WebhookTarget, now: OffsetDateTime) -> Option<Vec<WebhookSecret>> {
        let mut secrets = vec![self.open(target, &target.secret).await?];
        if let Some((sealed, until)) = &target.previous_secret
            && *until > now
        {
            secrets.extend(self.open(target, sealed).await);
        }
        Some(secrets)
    }

    /// Another node may have sealed it under a key that is not loaded here yet.
    async fn open(&self, target: &WebhookTarget, sealed: &SealedSecret) -> Option<WebhookSecret> {
        let webhook_id = target.webhook_id.as_uuid();
        if let Ok(secret) = self.keyring.vault().open_webhook_secret(webhook_id, &sealed.0) {
            return Some(secret);
        }
        let complain = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, webhook.id = %target.webhook_id, "a delivery cannot be signed");
        };
        let vault = self.keyring.reload().await;
        let vault = vault.inspect_err(|error| complain(error)).ok()?;
        let opened = vault.open_webhook_secret(webhook_id, &sealed.0);
        opened.inspect_err(|error| complain(error)).ok()
    }

    /// Finds the host of a URL, all of whose addresses may be delivered to.
    async fn resolve_url(&self, url: &Url) -> Result<(), UrlRejection> {
        match (literal_address(url), url.host_str()) {
            (Some(_), _) => Ok(()),
            (None, Some(host)) => self
                .resolver
                .resolve_host(host, url.port_or_known_default())
                .await
                .map(drop),
            (None, None) => Err(UrlRejection::NotAUrl),
        }
    }

    async fn read_response(&self, mut response: Response, patience: Duration) -> SendResult {
        let retry_after = retry_after(response.headers(), self.clock.now());
        let status = response.status().as_u16();
        let mut heard = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                append_bounded(&mut heard, &chunk);
                if heard.len() >= MAX_READ_BYTES {
                    break;
                }
            }
        };
        // What comes later is not waited for: the status is known.
        let _ = tokio::time::timeout(patience, read).await;
        heard.truncate(MAX_STORED_RESPONSE_BYTES);
        SendResult {
            status: Ok(status),
            retry_after,
            body: printable(&heard),
        }
    }
}

fn append_bounded(heard: &mut Vec<u8>, chunk: &Bytes) {
    let room = MAX_READ_BYTES.saturating_sub(heard.len());
    heard.extend_from_slice(&chunk[..chunk.len().min(room)]);
}

/// As a text that a database takes and a terminal shows.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

/// How long the receiver asks to wait: in seconds, or up to a moment.
fn retry_after(headers: &HeaderMap, now: OffsetDateTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let form = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let at = time::PrimitiveDateTime::parse(text, form).ok()?.assume_utc();
    Duration::try_from(at - now).ok()
}

const fn fault_of_rejection(error: UrlRejection) -> DeliveryFault {
    match error {
        UrlRejection::Unresolved => DeliveryFault::Unresolved,
        _ => DeliveryFault::Forbidden,
    }
}

/// Why there was no answer: the causes of the client's error say so.
fn fault_of_error(error: &reqwest::Error) -> DeliveryFault {
    if error.is_timeout() {
        return DeliveryFault::Timeout;
    }
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(one) = cause {
        if let Some(refused) = one.downcast_ref::<UrlRejection>() {
            return fault_of_rejection(*refused);
        }
        if one.is::<rustls::Error>() {
            return DeliveryFault::Tls;
        }
        if let Some(io) = one.downcast_ref::<std::io::Error>()
            && io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
        {
            return DeliveryFault::Tls;
        }
        cause = one.source();
    }
    if error.is_connect() || error.is_request() {
        DeliveryFault::Connection
    } else {
        DeliveryFault::Unreadable
    }
}

#[cfg(test)]
mod tests;
