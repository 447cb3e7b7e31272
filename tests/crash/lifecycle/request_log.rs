//! Log of lifecycle requests and acknowledgements. A response that contradicts an earlier acknowledgement
//! fails the test.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::Value;
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use crate::fixtures::Buyer;
use crate::resolution::is_temporary;
use crate::rng::Rng;

/// Clients pick orders and payouts among the last this many.
const RECENT: usize = 60;

/// A repeatable request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LifecycleRequest {
    Order { buyer: usize, key: String, body: Bytes },
    Payout { buyer: usize, key: String, body: Bytes },
    Cancel(String),
    GetCodes(String),
    GetOrder(String),
    DecideOrder { order_id: String, verb: &'static str },
    CancelByOperator(String),
    EndPayout { payout_id: String, verb: &'static str },
}

impl LifecycleRequest {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Order { .. } => "order",
            Self::Payout { .. } => "payout",
            Self::Cancel(_) => "cancel",
            Self::GetCodes(_) => "codes",
            Self::GetOrder(_) => "read",
            Self::DecideOrder { verb, .. } => verb,
            Self::CancelByOperator(_) => "revoke",
            Self::EndPayout { verb, .. } => verb,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct OrderFacts {
    pub(super) buyer: usize,
    pub(super) awaits_approval: bool,
    pub(super) cancel_response: Option<Bytes>,
    pub(super) code_reads: i64,
    /// `approve` or `reject`.
    pub(super) decision: Option<&'static str>,
    pub(super) revoked: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PayoutFacts {
    pub(super) buyer: usize,
    pub(super) final_status: Option<String>,
}

/// Acknowledged, rejected and unresolved requests by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(pub(super) BTreeMap<&'static str, [u64; 3]>);

pub(super) struct RequestLog {
    pub(super) buyers: Vec<Buyer>,
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    stored_responses: BTreeMap<(usize, String), ApiResponse>,
    orders: BTreeMap<String, OrderFacts>,
    payouts: BTreeMap<String, PayoutFacts>,
    /// Order id by code. Never printed.
    code_owners: BTreeMap<String, String>,
    newly_cancelled: Vec<(String, Bytes)>,
    sent: Vec<LifecycleRequest>,
    unresolved: Vec<LifecycleRequest>,
    counts: Counts,
}

impl RequestLog {
    pub(super) fn new(buyers: Vec<Buyer>) -> Self {
        Self {
            buyers,
            state: Mutex::default(),
        }
    }

    /// Records a keyed request before it is sent for the first time.
    pub(super) fn remember(&self, request: &LifecycleRequest) {
        self.lock().sent.push(request.clone());
    }

    /// Returns a recent keyed request of any client, which may still be in flight.
    pub(super) fn random_sent(&self, rng: &mut Rng) -> Option<LifecycleRequest> {
        let state = self.lock();
        let recent = state.sent.len().saturating_sub(RECENT);
        rng.pick(&state.sent[recent..]).cloned()
    }

    pub(super) fn random_order(&self, rng: &mut Rng) -> Option<String> {
        let state = self.lock();
        let recent: Vec<_> = state.orders.keys().rev().take(RECENT).collect();
        rng.pick(&recent).map(|id| (*id).clone())
    }

    pub(super) fn random_awaiting_approval(&self, rng: &mut Rng) -> Option<String> {
        let state = self.lock();
        let waited = state
            .orders
            .iter()
            .rev()
            .filter(|(_, facts)| facts.awaits_approval);
        let recent: Vec<_> = waited.take(RECENT / 4).map(|(id, _)| id).collect();
        rng.pick(&recent).map(|id| (*id).clone())
    }

    pub(super) fn random_payout(&self, rng: &mut Rng) -> Option<String> {
        let state = self.lock();
        let recent: Vec<_> = state.payouts.keys().rev().take(RECENT / 4).collect();
        rng.pick(&recent).map(|id| (*id).clone())
    }

    pub(super) fn buyer_of(&self, order_id: &str) -> usize {
        self.lock().orders[order_id].buyer
    }

    pub(super) fn record_outcome(
        &self,
        request: &LifecycleRequest,
        outcome: &Result<ApiResponse, RequestFailure>,
    ) {
        let mut state = self.lock();
        let outcome_index = match outcome {
            Ok(response) if response.status.is_success() => {
                state.record_acknowledged(request, response);
                0
            }
            Ok(response) if is_temporary(response) => 2,
            Ok(response) => {
                state.record_refused(request, response);
                1
            }
            Err(RequestFailure::NotSent(_)) => 1,
            Err(RequestFailure::Unknown(_)) => 2,
        };
        state.counts.0.entry(request.kind()).or_default()[outcome_index] += 1;
        if outcome_index == 2 {
            state.unresolved.push(request.clone());
        }
    }

    /// Takes the requests with unknown outcome, each once.
    pub(super) fn take_unresolved(&self) -> Vec<LifecycleRequest> {
        let mut open = std::mem::take(&mut self.lock().unresolved);
        open.sort();
        open.dedup();
        open
    }

    /// Takes the orders whose cancellation was acknowledged since the last call.
    pub(super) fn take_newly_cancelled(&self) -> Vec<(String, Bytes)> {
        std::mem::take(&mut self.lock().newly_cancelled)
    }

    pub(super) fn orders(&self) -> BTreeMap<String, OrderFacts> {
        self.lock().orders.clone()
    }

    pub(super) fn payouts(&self) -> BTreeMap<String, PayoutFacts> {
        self.lock().payouts.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// A poisoned lock means that another client has already failed the test.
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap()
    }
}

impl LogState {
    fn record_acknowledged(&mut self, request: &LifecycleRequest, response: &ApiResponse) {
        let body: Value = response.json().unwrap();
        let id = |name: &str| body[name].as_str().unwrap().to_owned();
        match request {
            LifecycleRequest::Order { buyer, key, .. } => {
                self.check_stored_response(*buyer, key, response);
                self.orders.entry(id("order_id")).or_insert_with(|| OrderFacts {
                    buyer: *buyer,
                    awaits_approval: body["pending_reason"] == "APPROVAL",
                    ..OrderFacts::default()
                });
            }
            LifecycleRequest::Payout { buyer, key, .. } => {
                self.check_stored_response(*buyer, key, response);
                self.payouts
                    .entry(id("payout_id"))
                    .or_insert_with(|| PayoutFacts {
                        buyer: *buyer,
                        final_status: None,
                    });
            }
            LifecycleRequest::Cancel(order_id) => self.record_cancellation(order_id, response),
            LifecycleRequest::GetCodes(order_id) => self.record_code_read(order_id, &body),
            LifecycleRequest::GetOrder(_) => {}
            LifecycleRequest::DecideOrder { order_id, verb } => {
                let before = self.order_mut(order_id).decision.replace(verb);
                assert_eq!(before, None, "{order_id} was decided twice");
            }
            LifecycleRequest::CancelByOperator(order_id) => self.order_mut(order_id).revoked = true,
            LifecycleRequest::EndPayout { payout_id, .. } => {
                let payout = self.payouts.get_mut(payout_id).unwrap();
                let before = payout.final_status.replace(id("status"));
                assert_eq!(before, None, "{payout_id} was decided twice");
            }
        }
    }

    /// Only these two errors are stored under a key.
    fn record_refused(&mut self, request: &LifecycleRequest, response: &ApiResponse) {
        let code = response.error_code().unwrap_or_default();
        if let LifecycleRequest::Order { buyer, key, .. } | LifecycleRequest::Payout { buyer, key, .. } =
            request
            && ["INSUFFICIENT_FUNDS", "INSUFFICIENT_INVENTORY"].contains(&code.as_str())
        {
            self.check_stored_response(*buyer, key, response);
        }
    }

    fn check_stored_response(&mut self, buyer: usize, key: &str, response: &ApiResponse) {
        let first = self.stored_responses.entry((buyer, key.to_owned()));
        let first = first.or_insert_with(|| response.clone());
        assert_eq!(
            (first.status, &first.body),
            (response.status, &response.body),
            "{key}: the repeated request has another response"
        );
    }

    fn record_cancellation(&mut self, order_id: &str, response: &ApiResponse) {
        let facts = self.order_mut(order_id);
        assert_eq!(
            facts.code_reads, 0,
            "{order_id} was cancelled after its codes were read"
        );
        match &facts.cancel_response {
            Some(first) => assert_eq!(*first, response.body, "{order_id}: repeated cancellations differ"),
            None => {
                facts.cancel_response = Some(response.body.clone());
                self.newly_cancelled
                    .push((order_id.to_owned(), response.body.clone()));
            }
        }
    }

    fn record_code_read(&mut self, order_id: &str, body: &Value) {
        let facts = self.order_mut(order_id);
        facts.code_reads += 1;
        assert!(
            facts.cancel_response.is_none(),
            "codes of {order_id} were read after it was cancelled"
        );
        for voucher in body["data"].as_array().unwrap() {
            let code = voucher["credentials"].to_string();
            let owner = self
                .code_owners
                .entry(code)
                .or_insert_with(|| order_id.to_owned());
            assert_eq!(
                owner, order_id,
                "the code of {} was returned for two orders",
                voucher["voucher_id"]
            );
        }
    }

    fn order_mut(&mut self, order_id: &str) -> &mut OrderFacts {
        self.orders.get_mut(order_id).unwrap()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:10}{:>8}{:>9}{:>7}", "request", "acked", "rejected", "open")?;
        for (name, [acknowledged, refused, open]) in &self.0 {
            writeln!(f, "{name:10}{acknowledged:>8}{refused:>9}{open:>7}")?;
        }
        Ok(())
    }
}
