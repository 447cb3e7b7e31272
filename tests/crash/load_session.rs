//! Shared state of all load clients: the recorded history and the unresolved orders. A request is recorded
//! before it is sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::history::History;
use crate::history::recorder::{Intent, Recorder};
use bytes::Bytes;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::{ApiResponse, RequestFailure};
use vouchsafe_test_harness::{WAIT_TIMEOUT, eventually};

use crate::fixtures::Buyer;
use crate::rng::Rng;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderRequest {
    /// Index into [`LoadSession::buyers`].
    pub(crate) buyer: usize,
    pub(crate) key: String,
    pub(crate) body: Bytes,
}

#[derive(Debug, Clone)]
pub(crate) struct AcknowledgedOrder {
    pub(crate) buyer: usize,
    pub(crate) order_id: String,
    pub(crate) delivered: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Request {
    Order(OrderRequest),
    GetOrder(AcknowledgedOrder),
    GetCodes(AcknowledgedOrder),
}

impl Request {
    pub(crate) const fn buyer(&self) -> usize {
        match self {
            Self::Order(order) => order.buyer,
            Self::GetOrder(order) | Self::GetCodes(order) => order.buyer,
        }
    }
}

pub(crate) struct LoadSession {
    pub(crate) buyers: Vec<Buyer>,
    recorder: Recorder,
    stopped: AtomicBool,
    sent_orders: Mutex<Vec<OrderRequest>>,
    acknowledged: Mutex<BTreeMap<String, AcknowledgedOrder>>,
    unresolved: Mutex<Vec<OrderRequest>>,
}

impl LoadSession {
    /// Also writes the history to a new file.
    pub(crate) fn new(buyers: Vec<Buyer>, history: &Path) -> Self {
        Self {
            buyers,
            recorder: Recorder::create(history).unwrap(),
            stopped: AtomicBool::new(true),
            sent_orders: Mutex::default(),
            acknowledged: Mutex::default(),
            unresolved: Mutex::default(),
        }
    }

    /// Starts or stops the clients.
    pub(crate) fn set_running(&self, open: bool) {
        self.stopped.store(!open, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Sends a request and records request and response. With a timeout the client disconnects after that
    /// time.
    pub(crate) async fn send_recorded(
        &self,
        proc: u32,
        client: &mut PartnerClient,
        request: &Request,
        timeout: Option<Duration>,
    ) -> Result<ApiResponse, RequestFailure> {
        let partner = &self.buyers[request.buyer()].partner_id;
        let intent = match request {
            Request::Order(order) => Intent::order(proc, partner, &order.key, &order.body),
            Request::GetOrder(order) => Intent::get_order(proc, partner, &order.order_id),
            Request::GetCodes(order) => Intent::codes(proc, partner, &order.order_id),
        };
        let pending = self.recorder.invoke(intent).unwrap();
        let limit = timeout.unwrap_or(Duration::MAX);
        let outcome = match tokio::time::timeout(limit, send(client, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RequestFailure::Unknown("disconnected".to_owned())),
        };
        self.recorder.complete(pending, &outcome).unwrap();
        if let Request::Order(order) = request {
            self.record_outcome(order, &outcome);
        }
        outcome
    }

    fn record_outcome(&self, order: &OrderRequest, outcome: &Result<ApiResponse, RequestFailure>) {
        match outcome {
            Ok(response) if response.status.is_success() => {
                let order_id = order_id_of(response);
                let delivered = response.status.as_u16() == 201;
                let acknowledged = AcknowledgedOrder {
                    buyer: order.buyer,
                    order_id: order_id.clone(),
                    delivered,
                };
                lock(&self.acknowledged).insert(order_id, acknowledged);
            }
            Ok(response) if response.status.is_server_error() => lock(&self.unresolved).push(order.clone()),
            Err(RequestFailure::Unknown(_)) => lock(&self.unresolved).push(order.clone()),
            Ok(_) | Err(RequestFailure::NotSent(_)) => {}
        }
    }

    /// Shares the order, so that other clients can repeat it.
    pub(crate) fn remember_order(&self, order: &OrderRequest) {
        lock(&self.sent_orders).push(order.clone());
    }

    pub(crate) fn with_sent_orders<T>(&self, read: impl FnOnce(&[OrderRequest]) -> T) -> T {
        read(&lock(&self.sent_orders))
    }

    /// Returns one of the partner's last acknowledged orders.
    pub(crate) fn random_acknowledged(&self, buyer: usize, rng: &mut Rng) -> Option<AcknowledgedOrder> {
        let acknowledged = lock(&self.acknowledged);
        let recent: Vec<_> = acknowledged
            .values()
            .rev()
            .filter(|order| order.buyer == buyer)
            .take(50)
            .collect();
        rng.pick(&recent).map(|&order| order.clone())
    }

    /// Returns the acknowledged orders by id, which is by time.
    pub(crate) fn acknowledged_orders(&self) -> Vec<AcknowledgedOrder> {
        lock(&self.acknowledged).values().cloned().collect()
    }

    /// Waits until the partners have this many more acknowledged orders.
    pub(crate) async fn wait_for_orders(&self, more: usize) {
        let count = || lock(&self.acknowledged).len();
        let target = count() + more;
        eventually("orders to be acknowledged", WAIT_TIMEOUT, async || {
            (count() >= target).then_some(())
        })
        .await;
    }

    /// Takes the orders with unknown outcome, each once. The caller must resolve them.
    pub(crate) fn take_unresolved(&self) -> Vec<OrderRequest> {
        let mut open = std::mem::take(&mut *lock(&self.unresolved));
        open.sort();
        open.dedup();
        open
    }

    pub(crate) fn next_operation(&self) -> u64 {
        self.recorder
            .history()
            .ops()
            .map(|op| op.invoke.op_id + 1)
            .max()
            .unwrap_or_default()
    }

    pub(crate) fn history(&self) -> History {
        self.recorder.history()
    }
}

async fn send(client: &mut PartnerClient, request: &Request) -> Result<ApiResponse, RequestFailure> {
    match request {
        Request::Order(order) => client.order(&order.key, order.body.clone()).await,
        Request::GetOrder(order) => client.get(&format!("/orders/{}", order.order_id)).await,
        Request::GetCodes(order) => client.get_codes(&order.order_id).await,
    }
}

fn order_id_of(response: &ApiResponse) -> String {
    let body: serde_json::Value = response.json().unwrap();
    body["order_id"].as_str().unwrap().to_owned()
}

/// No code panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
