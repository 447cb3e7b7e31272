//! Fake service over real sockets, correct except for one selectable defect.

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
use vouchsafe_api_client::partner::unix_seconds;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::run::driver::LoadPlan;
use vouchsafe_load::traffic::generator::Traffic;
use vouchsafe_load::traffic::pace::{Pace, RunLength};
use vouchsafe_load::traffic::workload::one_sku;

use crate::signature::{self, KEY, SECRET};

/// The defect of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// Order 7 receives the voucher of order 3.
    SellsVoucherTwice,
    /// Order 7 does not exist.
    LosesOrder,
    /// Lists omit order 7.
    OmitsFromList,
    /// Order 7 blocks all requests for [`STALL_DURATION`]. A correct service may do this.
    Stall,
    /// Reads of order 7 return another total.
    ChangesOrder,
    /// Replays return other bytes.
    ChangesReplay,
    /// Replays are not marked as such.
    HidesReplay,
    /// Order 7 debits one cent more than its total.
    Overcharges,
    /// The response to order 7 is not an order.
    MalformedOrder,
    /// Every fifth order is executed but its connection closes without a response, once. A correct service
    /// may do this.
    HangsUp,
    /// Hangs up as `HangsUp`, and the key is not stored.
    HangsUpAndForgets,
    /// Every order is rejected with 503.
    Overloaded,
}

/// A running service; dropping it stops the service.
pub(crate) struct FakeService {
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeService {
    pub(crate) fn start(defect: Defect) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || serve(listener, defect, stopped));
        Self {
            url,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn credentials() -> Credentials {
        Credentials::new(KEY, SECRET).unwrap()
    }

    /// Orders of one voucher by the only partner.
    pub(crate) fn plan(&self, pace: Pace, length: RunLength) -> LoadPlan {
        let traffic = Traffic::fixed(vec![one_sku("sbx-instant", "25", 1).unwrap()]);
        LoadPlan {
            // Only a hang takes this long.
            timeout: Duration::from_mins(5),
            ..LoadPlan::single_partner(self.url.clone(), Self::credentials(), traffic, pace, length)
        }
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(listener: std::net::TcpListener, defect: Defect, stopped: oneshot::Receiver<()>) {
    let runtime = vouchsafe_load::runtime::new_runtime().unwrap();
    let state = Arc::new(Mutex::new(ServiceState::new(defect)));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let mut connections = JoinSet::new();
        let mut stopped = std::pin::pin!(stopped);
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted.unwrap(),
                _ = &mut stopped => return,
            };
            let state = Arc::clone(&state);
            connections.spawn(async move {
                let handler = service_fn(|request| handle(Arc::clone(&state), request));
                // An error means that the connection was closed on purpose.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), handler)
                    .await;
            });
        }
    });
}

async fn handle(
    state: Arc<Mutex<ServiceState>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, HangUp> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| HangUp)?.to_bytes();
    let path = head.uri.path().to_owned();
    let signed = head.method != Method::GET || path.ends_with("/vouchers");
    let authenticated = signature::authenticate(&head.headers).and_then(|()| {
        if !signed {
            return Ok(());
        }
        signature::verify(head.method.as_str(), &path, &head.headers, &body, unix_seconds())
    });
    if let Err(code) = authenticated {
        return Ok(error_response(401, code));
    }
    let mut state = state.lock().unwrap();
    let route: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    match (head.method.as_str(), route.as_slice()) {
        ("POST", ["orders"]) => match head.headers.get("idempotency-key") {
            Some(key) => state.place_order(key.to_str().unwrap(), &body),
            None => Ok(error_response(400, "MISSING_IDEMPOTENCY_KEY")),
        },
        ("GET", ["orders"]) => Ok(state.list(head.uri.query().unwrap_or_default())),
        ("GET", ["orders", order_id]) => Ok(state.get_order(order_id)),
        ("GET", ["orders", order_id, "vouchers"]) => Ok(state.codes(order_id)),
        ("GET", ["events"]) => Ok(state.events()),
        ("GET", ["wallets"]) => Ok(state.wallets()),
        _ => Ok(error_response(404, "ROUTE_NOT_FOUND")),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("hung up")]
struct HangUp;

/// State of the service: each order has one voucher of 25.00 USD; order and voucher have the same number.
struct ServiceState {
    defect: Defect,
    orders: u64,
    cents: u64,
    keys: HashMap<String, (Bytes, Bytes)>,
}

/// Length of the stall.
pub(crate) const STALL_DURATION: Duration = Duration::from_millis(300);

/// Initial balance, in cents.
const OPENING_CENTS: u64 = 100_000_000;
/// The defective order, and the order that its data comes from.
const DEFECTIVE_ORDER: u64 = 7;
const SOURCE_ORDER: u64 = 3;

impl ServiceState {
    fn new(defect: Defect) -> Self {
        Self {
            defect,
            orders: 0,
            cents: OPENING_CENTS,
            keys: HashMap::new(),
        }
    }

    fn place_order(&mut self, key: &str, request: &Bytes) -> Result<Response<Full<Bytes>>, HangUp> {
        if self.defect == Defect::Overloaded {
            return Ok(error_response(503, "SERVICE_UNAVAILABLE"));
        }
        if let Some((first, stored)) = self.keys.get(key) {
            if first != request {
                return Ok(error_response(422, "IDEMPOTENCY_KEY_REUSED"));
            }
            let replayed = if self.defect == Defect::HidesReplay {
                "false"
            } else {
                "true"
            };
            let mut response = json_response(201, stored.clone());
            response
                .headers_mut()
                .insert("idempotent-replayed", replayed.parse().unwrap());
            if self.defect == Defect::ChangesReplay {
                *response.body_mut() = Full::new([stored.as_ref(), b" "].concat().into());
            }
            return Ok(response);
        }
        self.orders += 1;
        let is_defective = self.orders == DEFECTIVE_ORDER;
        if is_defective && self.defect == Defect::Stall {
            std::thread::sleep(STALL_DURATION);
        }
        self.cents -= 2_500 + u64::from(is_defective && self.defect == Defect::Overcharges);
        let response = self.order_body(self.orders, false);
        let hangs_up = matches!(self.defect, Defect::HangsUp | Defect::HangsUpAndForgets)
            && self.orders.is_multiple_of(5);
        if !(hangs_up && self.defect == Defect::HangsUpAndForgets) {
            self.keys
                .insert(key.to_owned(), (request.clone(), response.clone()));
        }
        match (hangs_up, is_defective && self.defect == Defect::MalformedOrder) {
            (true, _) => Err(HangUp),
            (_, true) => Ok(json_response(201, Bytes::from_static(b"{\"hello\":1}"))),
            _ => Ok(json_response(201, response)),
        }
    }

    fn order_body(&self, number: u64, read: bool) -> Bytes {
        let is_defective = number == DEFECTIVE_ORDER;
        let voucher = if is_defective && self.defect == Defect::SellsVoucherTwice {
            SOURCE_ORDER
        } else {
            number
        };
        let total = if is_defective && read && self.defect == Defect::ChangesOrder {
            "26.00"
        } else {
            "25.00"
        };
        format!(
            r#"{{"order_id":"ord_{number:032x}","status":"DELIVERED","total_amount":{total},"currency":"USD","reference":null,"vouchers":[{{"voucher_id":"vch_{voucher:032x}","product_id":"sbx-instant","denomination":25.00,"expiry":"2027-01-31"}}],"closed":true}}"#
        )
        .into()
    }

    fn find_order(&self, order_id: &str) -> Option<u64> {
        let number = u64::from_str_radix(order_id.strip_prefix("ord_")?, 16).ok()?;
        let is_lost = self.defect == Defect::LosesOrder && number == DEFECTIVE_ORDER;
        (number <= self.orders && !is_lost).then_some(number)
    }

    fn get_order(&self, order_id: &str) -> Response<Full<Bytes>> {
        match self.find_order(order_id) {
            Some(number) => json_response(200, self.order_body(number, true)),
            None => error_response(404, "ORDER_NOT_FOUND"),
        }
    }

    /// Newest first; the cursor is the number of the last order of the previous page.
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
        let is_listed =
            |number: &&u64| !(self.defect == Defect::OmitsFromList && **number == DEFECTIVE_ORDER);
        let data: Vec<_> = page
            .iter()
            .filter(is_listed)
            .map(|number| String::from_utf8(self.order_body(*number, true).to_vec()).unwrap())
            .collect();
        let next = page
            .last()
            .filter(|last| **last > 1)
            .map_or("null".to_owned(), |last| format!("\"{last}\""));
        json_response(
            200,
            format!(r#"{{"data":[{}],"next_cursor":{next}}}"#, data.join(",")).into(),
        )
    }

    fn events(&self) -> Response<Full<Bytes>> {
        json_response(
            200,
            format!(
                r#"{{"data":[{{"event_id":"evt_{:032x}"}}],"next_cursor":null}}"#,
                self.orders
            )
            .into(),
        )
    }

    fn codes(&self, order_id: &str) -> Response<Full<Bytes>> {
        let Some(number) = self.find_order(order_id) else {
            return error_response(404, "ORDER_NOT_FOUND");
        };
        let body = format!(
            r#"{{"order_id":"{order_id}","data":[{{"voucher_id":"vch_{number:032x}","credentials":[{{"type":"code","value":"FAKE-{number}"}}]}}]}}"#
        );
        json_response(200, body.into())
    }

    fn wallets(&self) -> Response<Full<Bytes>> {
        let (dollars, cents) = (self.cents / 100, self.cents % 100);
        let body = format!(
            r#"{{"data":[{{"currency":"USD","balance":{dollars}.{cents:02},"pending_orders":0.00}},{{"currency":"JPY","balance":5000}}],"has_more":false,"next_cursor":null}}"#
        );
        json_response(200, body.into())
    }
}

fn json_response(status: u16, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status.try_into().unwrap();
    response
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    response
}

fn error_response(status: u16, code: &str) -> Response<Full<Bytes>> {
    json_response(
        status,
        format!(r#"{{"error":{{"name":"X","code":"{code}","message":"no"}}}}"#).into(),
    )
}
