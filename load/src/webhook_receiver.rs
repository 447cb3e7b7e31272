//! Who takes the webhooks of a run? One listener for all partners, on a thread of its own: it says 200 to whatever comes and
//! counts each event once, however often it is sent. It verifies nothing, since the partners' own tests do.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use hyper::Method;
use hyper::header::HeaderMap;
use serde::Serialize;
use serde_json::json;

use crate::audit::Check;
use crate::partner::PartnerClient;
use crate::signer::Credentials;

/// How long after the load events may arrive; a service whose deliveries lag further has lost them.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether all are there.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The header that names an event, the same on every attempt (contract §6).
const EVENT: &str = "webhook-id";

/// What arrived so far.
#[derive(Default)]
struct ReceivedWebhooks {
    deliveries: u64,
    /// A hash of each event's id: of a million, two that are alike come once in tens of millions of runs.
    events: HashSet<u64>,
    /// When the newest of them came.
    last: Option<Instant>,
}

/// The listener.
pub struct WebhookReceiver {
    url: String,
    heard: Arc<Mutex<ReceivedWebhooks>>,
    server: ServerHandle,
    thread: JoinHandle<io::Result<()>>,
}

/// What became of the events of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebhookSummary {
    /// Different events that arrived.
    pub events: u64,
    /// Deliveries, with those that were sent again.
    pub deliveries: u64,
    /// How long after the load the last one was there, in seconds.
    pub last_after_s: f64,
}

impl std::fmt::Display for WebhookSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "webhooks: {} events arrived in {} deliveries, the last {:.1} s after the load",
            self.events, self.deliveries, self.last_after_s
        )
    }
}

impl WebhookReceiver {
    /// Listens on any free port of this machine.
    ///
    /// # Errors
    /// When there is no port or no thread.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}/", listener.local_addr()?);
        let heard = Arc::<Mutex<ReceivedWebhooks>>::default();
        let shared = web::Data::from(Arc::clone(&heard));
        let app = move || App::new().app_data(shared.clone()).default_service(web::to(take));
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
            heard,
            server: handle,
            thread,
        })
    }

    /// Makes it the endpoint of each of these partners.
    ///
    /// # Errors
    /// What the service said instead.
    pub async fn register_endpoints(&self, base_url: &str, partners: &[Credentials]) -> Result<(), String> {
        for credentials in partners {
            let client = PartnerClient::new(base_url, credentials.clone());
            let mut client = client.map_err(|error| error.to_string())?;
            let body = json!({ "url": self.url }).to_string();
            let put = client.send_signed(Method::POST, "/webhooks", body, HeaderMap::new());
            let answer = put.await.map_err(|failure| failure.to_string())?;
            if !answer.status.is_success() {
                return Err(String::from_utf8_lossy(&answer.body).into_owned());
            }
        }
        Ok(())
    }

    /// Waits until so many events have arrived, or for as long as they may take, and ends the listener. `loaded` is when the
    /// load was over.
    ///
    /// # Errors
    /// When the listener did not serve to its end.
    pub fn wait_and_stop(self, events: u64, loaded: Instant) -> io::Result<(WebhookSummary, Check)> {
        while self.arrived() < events && loaded.elapsed() < PATIENCE {
            thread::sleep(LOOK_EVERY);
        }
        // The server acts on the call; the future only tells when it has done so.
        drop(self.server.stop(false));
        let ended = self.thread.join();
        ended.map_err(|_| io::Error::other("the receiver of webhooks panicked"))??;
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let delivered = WebhookSummary {
            events: heard.events.len() as u64,
            deliveries: heard.deliveries,
            last_after_s: heard
                .last
                .map_or(0.0, |last| last.saturating_duration_since(loaded).as_secs_f64()),
        };
        let check = Check::new("every event arrived", all(events, delivered.events));
        Ok((delivered, check))
    }

    fn arrived(&self) -> u64 {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.events.len() as u64
    }
}

fn all(due: u64, arrived: u64) -> Result<String, String> {
    if arrived == due {
        Ok(format!("{arrived} events"))
    } else {
        Err(format!("{due} events were due, {arrived} arrived"))
    }
}

async fn take(heard: web::Data<Mutex<ReceivedWebhooks>>, request: HttpRequest, _body: web::Bytes) -> HttpResponse {
    let Some(event) = request.headers().get(EVENT) else {
        return HttpResponse::BadRequest().finish();
    };
    let event = BuildHasherDefault::<DefaultHasher>::default().hash_one(event.as_bytes());
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    heard.deliveries += 1;
    if heard.events.insert(event) {
        heard.last = Some(Instant::now());
    }
    HttpResponse::Ok().finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::client::Client;
    use crate::origin::Origin;

    #[tokio::test]
    async fn an_event_counts_once_however_often_it_comes() {
        let receiver = WebhookReceiver::start().unwrap();
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
                headers.insert(EVENT, event.parse().unwrap());
            }
            let answer = client.call(Method::POST, "/", headers, Bytes::from_static(b"{}"));
            assert_eq!(answer.await.unwrap().status.as_u16(), status);
        }
        let (delivered, check) = receiver.wait_and_stop(2, Instant::now()).unwrap();
        assert_eq!((delivered.events, delivered.deliveries), (2, 3));
        assert!(check.passed, "{check:?}");
    }

    #[test]
    fn an_event_that_is_missing_or_too_many_fails() {
        assert!(all(3, 2).is_err() && all(3, 4).is_err() && all(3, 3).is_ok());
    }
}
