//! Webhook receiver of a run: one listener for all partners on a separate thread. Responds 200 and counts
//! each event once, however often it is delivered. Does not verify signatures; the tests of the partner API
//! do.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::ensure;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_api_client::wire::{ListView, order_of_webhook};

use crate::audit::Check;
use crate::run::event_arrivals::EventArrivals;
use crate::tally::acknowledgements::Acknowledgements;

/// Deadline for deliveries after the load; later events count as lost.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between checks for completeness.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Header with the event id, the same for every attempt (contract §6).
const EVENT_ID_HEADER: &str = "webhook-id";

#[derive(Default)]
struct ReceivedWebhooks {
    deliveries: u64,
    /// Hashes of the event ids. Among a million events a collision occurs once in tens of millions of runs.
    events: HashSet<u64>,
    /// Arrival of the latest new event.
    last: Option<Instant>,
}

#[derive(Deserialize)]
struct EndpointView {
    webhook_id: String,
}

pub(crate) struct WebhookReceiver {
    url: String,
    webhooks: Arc<Mutex<ReceivedWebhooks>>,
    server: ServerHandle,
    thread: JoinHandle<io::Result<()>>,
}

/// Deliveries of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebhookSummary {
    /// Distinct events.
    pub events: u64,
    /// Deliveries, including repeated ones.
    pub deliveries: u64,
    /// Seconds from the end of the load to the last event.
    pub last_after_s: f64,
}

impl std::fmt::Display for WebhookSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "webhooks: {} events in {} deliveries, the last {:.1} s after the load",
            self.events, self.deliveries, self.last_after_s
        )
    }
}

impl WebhookReceiver {
    /// Listens on a free loopback port. Lives of orders wait for `arrivals`.
    pub(crate) fn start(arrivals: Option<Arc<EventArrivals>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}/", listener.local_addr()?);
        let webhooks = Arc::<Mutex<ReceivedWebhooks>>::default();
        let shared = web::Data::from(Arc::clone(&webhooks));
        let app = move || {
            App::new()
                .app_data(shared.clone())
                .app_data(web::Data::new(arrivals.clone()))
                .default_service(web::to(receive))
        };
        let server = HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)?
            .run();
        let handle = server.handle();
        let serve = || actix_web::rt::System::new().block_on(server);
        let thread = thread::Builder::new().name("receiver".to_owned()).spawn(serve)?;
        Ok(Self {
            url,
            webhooks,
            server: handle,
            thread,
        })
    }

    /// Registers the receiver as the webhook endpoint of each partner.
    pub(crate) async fn register_endpoints(
        &self,
        base_url: &str,
        partners: &[Credentials],
    ) -> anyhow::Result<()> {
        for credentials in partners {
            let mut client = PartnerClient::new(base_url, credentials.clone())?;
            let body = json!({ "url": self.url }).to_string();
            let registration = client.send_signed(Method::POST, "/webhooks", body, HeaderMap::new());
            let response = registration.await?;
            let text = String::from_utf8_lossy(&response.body);
            ensure!(
                response.status.is_success(),
                "cannot register a webhook endpoint: {text}"
            );
        }
        Ok(())
    }

    /// Waits for `events` distinct events or the deadline, then stops the listener. `loaded` is the end of
    /// the load.
    pub(crate) fn wait_and_stop(self, events: u64, loaded: Instant) -> io::Result<(WebhookSummary, Check)> {
        while self.received() < events && loaded.elapsed() < DELIVERY_TIMEOUT {
            thread::sleep(POLL_INTERVAL);
        }
        // The call stops the server; the future only reports completion.
        drop(self.server.stop(false));
        let thread_result = self.thread.join();
        thread_result.map_err(|_| io::Error::other("the receiver of webhooks panicked"))??;
        let webhooks = self.webhooks.lock();
        let summary = WebhookSummary {
            events: webhooks.events.len() as u64,
            deliveries: webhooks.deliveries,
            last_after_s: webhooks
                .last
                .map_or(0.0, |last| last.saturating_duration_since(loaded).as_secs_f64()),
        };
        let check = Check::new(
            "webhook events delivered",
            check_event_count(events, summary.events),
        );
        Ok((summary, check))
    }

    fn received(&self) -> u64 {
        let webhooks = self.webhooks.lock();
        webhooks.events.len() as u64
    }
}

/// Removes the endpoints of a partner, so that no later event is sent to a receiver that has stopped.
pub(crate) async fn remove_endpoints(base_url: &str, partner: &Credentials) -> anyhow::Result<()> {
    let mut client = PartnerClient::new(base_url, partner.clone())?;
    let response = client.get("/webhooks").await?;
    for endpoint in response.json::<ListView<EndpointView>>()?.data {
        let path = format!("/webhooks/{}", endpoint.webhook_id);
        let removal = client.send_signed(Method::DELETE, &path, Bytes::new(), HeaderMap::new());
        let response = removal.await?;
        ensure!(
            response.status.is_success(),
            "cannot remove a webhook endpoint: {}",
            response.status
        );
    }
    Ok(())
}

/// Expected events of orders delivered at once: created, one per issued voucher, delivered.
pub(crate) fn expected_events(acknowledgements: &Acknowledgements) -> u64 {
    2 * acknowledgements.orders + acknowledgements.vouchers.len() as u64
}

fn check_event_count(expected: u64, received: u64) -> Result<String, String> {
    if received == expected {
        Ok(format!("{received} events"))
    } else {
        Err(format!("{expected} events expected, {received} received"))
    }
}

async fn receive(
    webhooks: web::Data<Mutex<ReceivedWebhooks>>,
    arrivals: web::Data<Option<Arc<EventArrivals>>>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let Some(event) = request.headers().get(EVENT_ID_HEADER) else {
        return HttpResponse::BadRequest().finish();
    };
    let event = BuildHasherDefault::<DefaultHasher>::default().hash_one(event.as_bytes());
    let mut webhooks = webhooks.lock();
    webhooks.deliveries += 1;
    if webhooks.events.insert(event) {
        webhooks.last = Some(Instant::now());
        if let Some(arrivals) = &**arrivals
            && let Some(order_number) = order_of_webhook(&body)
        {
            arrivals.record(order_number);
        }
    }
    HttpResponse::Ok().finish()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use vouchsafe_api_client::Client;
    use vouchsafe_api_client::origin::Origin;

    use super::*;

    #[tokio::test]
    async fn repeated_event_counts_once() {
        let arrivals = Arc::<EventArrivals>::default();
        let receiver = WebhookReceiver::start(Some(Arc::clone(&arrivals))).unwrap();
        let url = receiver.url.trim_end_matches('/').to_owned();
        let mut client = Client::new(Origin::parse(&url).unwrap());
        for (event, status) in [
            (Some("evt_1"), 200),
            (Some("evt_1"), 200),
            (Some("evt_2"), 200),
            (None, 400),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(event) = event {
                headers.insert(EVENT_ID_HEADER, event.parse().unwrap());
            }
            let body = br#"{"data":{"order_id":"ord_000000000000000000000000000000ff"}}"#;
            let response = client.call(Method::POST, "/", headers, Bytes::from_static(body));
            assert_eq!(response.await.unwrap().status.as_u16(), status);
        }
        let (summary, check) = receiver.wait_and_stop(2, Instant::now()).unwrap();
        assert_eq!((summary.events, summary.deliveries), (2, 3));
        assert_eq!(arrivals.wait_for(255, 2).now_or_never(), Some(()));
        assert_eq!(
            arrivals.wait_for(255, 1).now_or_never(),
            None,
            "the wait ended the life"
        );
        assert!(check.passed, "{check:?}");
    }

    #[test]
    fn wrong_event_count_fails() {
        assert!(
            check_event_count(3, 2).is_err()
                && check_event_count(3, 4).is_err()
                && check_event_count(3, 3).is_ok()
        );
    }
}
