//! What would a service answer? A small one over real sockets, honest but for the one lie it is started with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use vouchsafe_load::partner::unix_seconds;
use vouchsafe_load::signer::Credentials;

use crate::signature::{self, KEY, SECRET};

/// What this service does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// Order 7 gets the voucher of order 3.
    SellsVoucherTwice,
    /// Order 7 gets the code of order 3.
    SellsCodeTwice,
    /// Order 7 is gone.
    LosesOrder,
    /// Order 7 is in no list.
    OmitsFromList,
    /// Order 7 takes [`STALL`], and all stand still meanwhile. No lie: services stall.
    Stall,
    /// Order 7 reads with another total.
    ChangesOrder,
    /// Replays are answered with other bytes.
    ChangesReplay,
    /// Replays do not say that they are.
    HidesReplay,
    /// Order 7 costs a cent more than it says.
    Overcharges,
    /// Order 7 is answered with something else than an order.
    MalformedOrder,
    /// Every fifth order is executed and not answered, once. No lie: connections break.
    HangsUp,
    /// The same, and its key is forgotten.
    HangsUpAndForgets,
    /// Every order is refused as overload, for good.
    Overloaded,
}

/// A running service; ends when dropped.
pub(crate) struct FakeService {
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeService {
    pub(crate) fn start(lie: Defect) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || serve(listener, lie, stopped));
        Self {
            url,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn credentials() -> Credentials {
        Credentials::new(KEY, SECRET).unwrap()
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(listener: std::net::TcpListener, lie: Defect, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ledger = Arc::new(Mutex::new(Ledger::new(lie)));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let mut connections = JoinSet::new();
        let mut stopped = std::pin::pin!(stopped);
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted.unwrap(),
                _ = &mut stopped => return,
            };
            let ledger = Arc::clone(&ledger);
            connections.spawn(async move {
                let handler = service_fn(|request| handle(Arc::clone(&ledger), request));
                // An error here is a connection that the ledger hung up.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), handler)
                    .await;
            });
        }
    });
}

async fn handle(
    ledger: Arc<Mutex<Ledger>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, HangUp> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| HangUp)?.to_bytes();
    let path = head.uri.path().to_owned();
    let signed = head.method != Method::GET || path.ends_with("/vouchers");
    let admitted = signature::authenticate(&head.headers).and_then(|()| {
        if !signed {
            return Ok(());
        }
        signature::verify(head.method.as_str(), &path, &head.headers, &body, unix_seconds())
    });
    if let Err(code) = admitted {
        return Ok(refusal(401, code));
    }
    let mut ledger = ledger.lock().unwrap();
    let route: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    match (head.method.as_str(), route.as_slice()) {
        ("POST", ["orders"]) => match head.headers.get("idempotency-key") {
            Some(key) => ledger.order(key.to_str().unwrap(), &body),
            None => Ok(refusal(400, "MISSING_IDEMPOTENCY_KEY")),
        },
        ("GET", ["orders"]) => Ok(ledger.list(head.uri.query().unwrap_or_default())),
        ("GET", ["orders", order_id]) => Ok(ledger.get(order_id)),
        ("GET", ["orders", order_id, "vouchers"]) => Ok(ledger.codes(order_id)),
        ("GET", ["events"]) => Ok(ledger.events()),
        ("GET", ["wallets"]) => Ok(ledger.wallets()),
        _ => Ok(refusal(404, "ROUTE_NOT_FOUND")),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("hung up")]
struct HangUp;

/// One voucher of 25.00 USD an order; an order's number is its voucher's.
struct Ledger {
    lie: Defect,
    orders: u64,
    cents: u64,
    keys: HashMap<String, (Bytes, Bytes)>,
}

/// How long the service stands still.
pub(crate) const STALL_DURATION: Duration = Duration::from_millis(300);

/// The wallet at the start, in cents.
const OPENING_CENTS: u64 = 100_000_000;
/// The order that a lie is told about, and the one it takes from.
const VICTIM: u64 = 7;
const SOURCE: u64 = 3;

impl Ledger {
    fn new(lie: Defect) -> Self {
        Self {
            lie,
            orders: 0,
            cents: OPENING_CENTS,
            keys: HashMap::new(),
        }
    }

    fn order(&mut self, key: &str, request: &Bytes) -> Result<Response<Full<Bytes>>, HangUp> {
        if self.lie == Defect::Overloaded {
            return Ok(refusal(503, "SERVICE_UNAVAILABLE"));
        }
        if let Some((first, answer)) = self.keys.get(key) {
            if first != request {
                return Ok(refusal(422, "IDEMPOTENCY_KEY_REUSED"));
            }
            let replayed = if self.lie == Defect::HidesReplay {
                "false"
            } else {
                "true"
            };
            let mut response = json(201, answer.clone());
            response
                .headers_mut()
                .insert("idempotent-replayed", replayed.parse().unwrap());
            if self.lie == Defect::ChangesReplay {
                *response.body_mut() = Full::new([answer.as_ref(), b" "].concat().into());
            }
            return Ok(response);
        }
        self.orders += 1;
        let lied = self.orders == VICTIM;
        if lied && self.lie == Defect::Stall {
            std::thread::sleep(STALL_DURATION);
        }
        self.cents -= 2_500 + u64::from(lied && self.lie == Defect::Overcharges);
        let answer = self.body(self.orders, false);
        let hangs_up =
            matches!(self.lie, Defect::HangsUp | Defect::HangsUpAndForgets) && self.orders.is_multiple_of(5);
        if !(hangs_up && self.lie == Defect::HangsUpAndForgets) {
            self.keys
                .insert(key.to_owned(), (request.clone(), answer.clone()));
        }
        match (hangs_up, lied && self.lie == Defect::MalformedOrder) {
            (true, _) => Err(HangUp),
            (_, true) => Ok(json(201, Bytes::from_static(b"{\"hello\":1}"))),
            _ => Ok(json(201, answer)),
        }
    }

    fn body(&self, number: u64, read: bool) -> Bytes {
        let lied = number == VICTIM;
        let voucher = if lied && self.lie == Defect::SellsVoucherTwice {
            SOURCE
        } else {
            number
        };
        let total = if lied && read && self.lie == Defect::ChangesOrder {
            "26.00"
        } else {
            "25.00"
        };
        format!(
            r#"{{"order_id":"ord_{number:032x}","status":"DELIVERED","total_amount":{total},"currency":"USD","reference":null,"vouchers":[{{"voucher_id":"vch_{voucher:032x}","product_id":"sbx-instant","denomination":25.00,"expiry":"2027-01-31"}}],"closed":true}}"#
        )
        .into()
    }

    fn number(&self, order_id: &str) -> Option<u64> {
        let number = u64::from_str_radix(order_id.strip_prefix("ord_")?, 16).ok()?;
        let lost = self.lie == Defect::LosesOrder && number == VICTIM;
        (number <= self.orders && !lost).then_some(number)
    }

    fn get(&self, order_id: &str) -> Response<Full<Bytes>> {
        match self.number(order_id) {
            Some(number) => json(200, self.body(number, true)),
            None => refusal(404, "ORDER_NOT_FOUND"),
        }
    }

    /// Newest first; the cursor is the number of the last order of the page before.
    fn list(&self, query: &str) -> Response<Full<Bytes>> {
        let value = |name| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        let before = value("cursor").unwrap_or(self.orders + 1);
        let page: Vec<u64> = (1..before)
            .rev()
            .take(value("limit").unwrap_or(25).try_into().unwrap())
            .collect();
        let forgotten = |number: &&u64| !(self.lie == Defect::OmitsFromList && **number == VICTIM);
        let data: Vec<_> = page
            .iter()
            .filter(forgotten)
            .map(|number| String::from_utf8(self.body(*number, true).to_vec()).unwrap())
            .collect();
        let next = page
            .last()
            .filter(|last| **last > 1)
            .map_or("null".to_owned(), |last| format!("\"{last}\""));
        json(
            200,
            format!(r#"{{"data":[{}],"next_cursor":{next}}}"#, data.join(",")).into(),
        )
    }

    fn events(&self) -> Response<Full<Bytes>> {
        json(
            200,
            format!(
                r#"{{"data":[{{"event_id":"evt_{:032x}"}}],"next_cursor":null}}"#,
                self.orders
            )
            .into(),
        )
    }

    fn codes(&self, order_id: &str) -> Response<Full<Bytes>> {
        let Some(number) = self.number(order_id) else {
            return refusal(404, "ORDER_NOT_FOUND");
        };
        let code = if number == VICTIM && self.lie == Defect::SellsCodeTwice {
            SOURCE
        } else {
            number
        };
        let body = format!(
            r#"{{"order_id":"{order_id}","data":[{{"voucher_id":"vch_{number:032x}","credentials":[{{"type":"code","value":"FAKE-{code}"}}]}}]}}"#
        );
        json(200, body.into())
    }

    fn wallets(&self) -> Response<Full<Bytes>> {
        let (whole, cents) = (self.cents / 100, self.cents % 100);
        let body = format!(
            r#"{{"data":[{{"currency":"USD","balance":{whole}.{cents:02},"pending_orders":0.00}},{{"currency":"JPY","balance":5000}}],"has_more":false,"next_cursor":null}}"#
        );
        json(200, body.into())
    }
}

fn json(status: u16, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status.try_into().unwrap();
    response
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    response
}

fn refusal(status: u16, code: &str) -> Response<Full<Bytes>> {
    json(
        status,
        format!(r#"{{"error":{{"name":"X","code":"{code}","message":"no"}}}}"#).into(),
    )
}
