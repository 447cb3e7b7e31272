//! What do all clients of a run share? The record of what was asked and answered, and what is still open.
//!
//! Rule: whatever is asked is written down before it is sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use vouchsafe_load::client::{ApiResponse, RequestFailure};
use vouchsafe_load::history::History;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::recorder::{SyncPolicy, Intent, Recorder};

use crate::rng::Rng;
use crate::fixtures::Buyer;

/// An order under its key, as it is sent and sent again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderRequest {
    /// Whose, as a number.
    pub(crate) buyer: usize,
    pub(crate) key: String,
    pub(crate) body: Bytes,
}

/// An order that was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct AcknowledgedOrder {
    pub(crate) buyer: usize,
    pub(crate) order_id: String,
    /// Whether its codes can be read.
    pub(crate) delivered: bool,
}

/// What a client asks.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Order(OrderRequest),
    /// How an order stands.
    GetOrder(AcknowledgedOrder),
    /// For an order's codes.
    GetCodes(AcknowledgedOrder),
}

impl Request {
    /// Whose it is.
    pub(crate) const fn buyer(&self) -> usize {
        match self {
            Self::Order(wish) => wish.buyer,
            Self::GetOrder(taken) | Self::GetCodes(taken) => taken.buyer,
        }
    }
}

/// What is shared.
pub(crate) struct LoadSession {
    pub(crate) buyers: Vec<Buyer>,
    recorder: Recorder,
    stopped: AtomicBool,
    sent_orders: Mutex<Vec<OrderRequest>>,
    acknowledged: Mutex<BTreeMap<String, AcknowledgedOrder>>,
    unresolved: Mutex<Vec<OrderRequest>>,
}

impl LoadSession {
    /// Writes the history into a new file, too.
    pub(crate) fn new(buyers: Vec<Buyer>, history: &Path) -> Self {
        Self {
            buyers,
            recorder: Recorder::create(history, SyncPolicy::Written).unwrap(),
            stopped: AtomicBool::new(true),
            sent_orders: Mutex::default(),
            acknowledged: Mutex::default(),
            unresolved: Mutex::default(),
        }
    }

    /// Lets clients begin, or tells them to come to an end.
    pub(crate) fn set_running(&self, open: bool) {
        self.stopped.store(!open, Ordering::Relaxed);
    }

    /// Whether clients shall come to an end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Asks, and writes down question and answer. With `gives_up`, goes away after that time, whatever is on its way.
    pub(crate) async fn send_recorded(
        &self,
        proc: u32,
        client: &mut PartnerClient,
        question: &Request,
        gives_up: Option<Duration>,
    ) -> Result<ApiResponse, RequestFailure> {
        let partner = &self.buyers[question.buyer()].partner_id;
        let intent = match question {
            Request::Order(wish) => Intent::order(proc, partner, &wish.key, &wish.body),
            Request::GetOrder(taken) => Intent::get_order(proc, partner, &taken.order_id),
            Request::GetCodes(taken) => Intent::codes(proc, partner, &taken.order_id),
        };
        let pending = self.recorder.invoke(intent).unwrap();
        let patience = gives_up.unwrap_or(Duration::MAX);
        let outcome = match tokio::time::timeout(patience, send(client, question)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RequestFailure::Unknown("went away".to_owned())),
        };
        self.recorder.complete(pending, &outcome).unwrap();
        if let Request::Order(wish) = question {
            self.record_outcome(wish, &outcome);
        }
        outcome
    }

    fn record_outcome(&self, wish: &OrderRequest, outcome: &Result<ApiResponse, RequestFailure>) {
        match outcome {
            Ok(answer) if answer.status.is_success() => {
                let order_id = order_id_of(answer);
                let delivered = answer.status.as_u16() == 201;
                let taken = AcknowledgedOrder {
                    buyer: wish.buyer,
                    order_id: order_id.clone(),
                    delivered,
                };
                lock(&self.acknowledged).insert(order_id, taken);
            }
            Ok(answer) if answer.status.is_server_error() => lock(&self.unresolved).push(wish.clone()),
            Err(RequestFailure::Unknown(_)) => lock(&self.unresolved).push(wish.clone()),
            Ok(_) | Err(RequestFailure::NotSent(_)) => {}
        }
    }

    /// Everybody may order this again.
    pub(crate) fn remember_order(&self, wish: &OrderRequest) {
        lock(&self.sent_orders).push(wish.clone());
    }

    /// Looks at what was ordered so far.
    pub(crate) fn with_sent_orders<T>(&self, look: impl FnOnce(&[OrderRequest]) -> T) -> T {
        look(&lock(&self.sent_orders))
    }

    /// One of the last orders that a partner was acknowledged.
    pub(crate) fn random_acknowledged(&self, buyer: usize, chance: &mut Rng) -> Option<AcknowledgedOrder> {
        let taken = lock(&self.acknowledged);
        let lately: Vec<_> = taken
            .values()
            .rev()
            .filter(|taken| taken.buyer == buyer)
            .take(50)
            .collect();
        chance.pick(&lately).map(|&taken| taken.clone())
    }

    /// What was acknowledged so far, in the order of its ids, so of its time.
    pub(crate) fn acknowledged_orders(&self) -> Vec<AcknowledgedOrder> {
        lock(&self.acknowledged).values().cloned().collect()
    }

    /// What nobody knows the outcome of; each once. From now on the caller has to see to it.
    pub(crate) fn take_unresolved(&self) -> Vec<OrderRequest> {
        let mut open = std::mem::take(&mut *lock(&self.unresolved));
        open.sort();
        open.dedup();
        open
    }

    /// The number of the next operation.
    pub(crate) fn next_operation(&self) -> u64 {
        self.recorder
            .history()
            .ops()
            .map(|op| op.invoke.op_id + 1)
            .max()
            .unwrap_or_default()
    }

    /// What was recorded so far.
    pub(crate) fn history(&self) -> History {
        self.recorder.history()
    }
}

async fn send(client: &mut PartnerClient, question: &Request) -> Result<ApiResponse, RequestFailure> {
    match question {
        Request::Order(wish) => client.order(&wish.key, wish.body.clone()).await,
        Request::GetOrder(taken) => client.get(&format!("/orders/{}", taken.order_id)).await,
        Request::GetCodes(taken) => client.get_codes(&taken.order_id).await,
    }
}

fn order_id_of(answer: &ApiResponse) -> String {
    let body: serde_json::Value = answer.json().unwrap();
    body["order_id"].as_str().unwrap().to_owned()
}

/// Nothing here can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
