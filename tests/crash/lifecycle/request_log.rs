//! What was asked, and what was acknowledged? Written down by everybody; whatever contradicts what was acknowledged before
//! ends the test at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::Value;
use vouchsafe_load::client::{ApiResponse, RequestFailure};

use crate::rng::Rng;
use crate::resolution::is_temporary;
use crate::fixtures::Buyer;

/// Orders and payouts that are moved on are among the last so many: what is old has had its time.
const RECENT: usize = 60;

/// Something that is asked, and may be asked again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LifecycleRequest {
    /// A partner, for an order under a key.
    Order { buyer: usize, key: String, body: Bytes },
    /// A partner, for a payout under a key.
    Payout { buyer: usize, key: String, body: Bytes },
    /// A partner, to cancel.
    Cancel(String),
    /// A partner, for the codes.
    GetCodes(String),
    /// A partner, how an order stands.
    GetOrder(String),
    /// An operator, to let an order go on, or not.
    DecideOrder { order_id: String, verb: &'static str },
    /// An operator, to take back what was not read.
    CancelByOperator(String),
    /// An operator, what became of a payout.
    EndPayout { payout_id: String, verb: &'static str },
}

impl LifecycleRequest {
    /// What is counted.
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

/// What was acknowledged of an order.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderFacts {
    pub(super) buyer: usize,
    /// Whether it waited for approval when it was accepted.
    pub(super) awaits_approval: bool,
    /// The answer to its cancellation.
    pub(super) cancel_response: Option<Bytes>,
    /// How often its codes were handed out.
    pub(super) code_reads: i64,
    /// What an operator said of it: `approve` or `reject`.
    pub(super) decision: Option<&'static str>,
    /// How often an operator's taking back was acknowledged.
    pub(super) revoked: bool,
}

/// What was acknowledged of a payout.
#[derive(Debug, Clone, Default)]
pub(super) struct PayoutFacts {
    pub(super) buyer: usize,
    pub(super) final_status: Option<String>,
}

/// How often each kind of ask was acknowledged, refused, and left open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(pub(super) BTreeMap<&'static str, [u64; 3]>);

/// All of it.
pub(super) struct RequestLog {
    pub(super) buyers: Vec<Buyer>,
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    /// The kept answer of each key.
    stored_responses: BTreeMap<(usize, String), ApiResponse>,
    orders: BTreeMap<String, OrderFacts>,
    payouts: BTreeMap<String, PayoutFacts>,
    /// Whose code it is. Never shown.
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

    /// Something with a key is about to be asked for the first time.
    pub(super) fn remember(&self, ask: &LifecycleRequest) {
        self.lock().sent.push(ask.clone());
    }

    /// What was asked under a key before, by anybody: lately, so perhaps at this moment.
    pub(super) fn random_sent(&self, chance: &mut Rng) -> Option<LifecycleRequest> {
        let pages = self.lock();
        let lately = pages.sent.len().saturating_sub(RECENT);
        chance.pick(&pages.sent[lately..]).cloned()
    }

    /// One of the last orders.
    pub(super) fn random_order(&self, chance: &mut Rng) -> Option<String> {
        let pages = self.lock();
        let lately: Vec<_> = pages.orders.keys().rev().take(RECENT).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// One of the last orders that waited for approval.
    pub(super) fn random_awaiting_approval(&self, chance: &mut Rng) -> Option<String> {
        let pages = self.lock();
        let waited = pages.orders.iter().rev().filter(|(_, facts)| facts.awaits_approval);
        let lately: Vec<_> = waited.take(RECENT / 4).map(|(id, _)| id).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// One of the last payouts.
    pub(super) fn random_payout(&self, chance: &mut Rng) -> Option<String> {
        let pages = self.lock();
        let lately: Vec<_> = pages.payouts.keys().rev().take(RECENT / 4).collect();
        chance.pick(&lately).map(|id| (*id).clone())
    }

    /// Whose order it is.
    pub(super) fn buyer_of(&self, order_id: &str) -> usize {
        self.lock().orders[order_id].buyer
    }

    /// Writes down what came of it.
    pub(super) fn record_outcome(&self, ask: &LifecycleRequest, outcome: &Result<ApiResponse, RequestFailure>) {
        let mut pages = self.lock();
        let place = match outcome {
            Ok(answer) if answer.status.is_success() => {
                pages.record_acknowledged(ask, answer);
                0
            }
            Ok(answer) if is_temporary(answer) => 2,
            Ok(answer) => {
                pages.record_refused(ask, answer);
                1
            }
            Err(RequestFailure::NotSent(_)) => 1,
            Err(RequestFailure::Unknown(_)) => 2,
        };
        pages.counts.0.entry(ask.kind()).or_default()[place] += 1;
        if place == 2 {
            pages.unresolved.push(ask.clone());
        }
    }

    /// What nobody knows the outcome of, each once.
    pub(super) fn take_unresolved(&self) -> Vec<LifecycleRequest> {
        let mut open = std::mem::take(&mut self.lock().unresolved);
        open.sort();
        open.dedup();
        open
    }

    /// The orders whose cancellation was acknowledged since this was asked.
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

    /// A panic of another mover is the test's end anyway; who comes later says nothing of it.
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap()
    }
}

impl LogState {
    fn record_acknowledged(&mut self, ask: &LifecycleRequest, answer: &ApiResponse) {
        let body: Value = answer.json().unwrap();
        let id = |name: &str| body[name].as_str().unwrap().to_owned();
        match ask {
            LifecycleRequest::Order { buyer, key, .. } => {
                self.check_stored_response(*buyer, key, answer);
                self.orders.entry(id("order_id")).or_insert_with(|| OrderFacts {
                    buyer: *buyer,
                    awaits_approval: body["pending_reason"] == "APPROVAL",
                    ..OrderFacts::default()
                });
            }
            LifecycleRequest::Payout { buyer, key, .. } => {
                self.check_stored_response(*buyer, key, answer);
                self.payouts
                    .entry(id("payout_id"))
                    .or_insert_with(|| PayoutFacts {
                        buyer: *buyer,
                        final_status: None,
                    });
            }
            LifecycleRequest::Cancel(order_id) => self.record_cancellation(order_id, answer),
            LifecycleRequest::GetCodes(order_id) => self.record_code_read(order_id, &body),
            LifecycleRequest::GetOrder(_) => {}
            LifecycleRequest::DecideOrder { order_id, verb } => {
                let before = self.order_mut(order_id).decision.replace(verb);
                assert_eq!(before, None, "{order_id} is decided once");
            }
            LifecycleRequest::CancelByOperator(order_id) => self.order_mut(order_id).revoked = true,
            LifecycleRequest::EndPayout { payout_id, .. } => {
                let payout = self.payouts.get_mut(payout_id).unwrap();
                let before = payout.final_status.replace(id("status"));
                assert_eq!(before, None, "{payout_id} is decided once");
            }
        }
    }

    /// Two refusals are kept under a key; no other one is.
    fn record_refused(&mut self, ask: &LifecycleRequest, answer: &ApiResponse) {
        let code = answer.error_code().unwrap_or_default();
        if let LifecycleRequest::Order { buyer, key, .. } | LifecycleRequest::Payout { buyer, key, .. } = ask
            && ["INSUFFICIENT_FUNDS", "INSUFFICIENT_INVENTORY"].contains(&code.as_str())
        {
            self.check_stored_response(*buyer, key, answer);
        }
    }

    fn check_stored_response(&mut self, buyer: usize, key: &str, answer: &ApiResponse) {
        let first = self.stored_responses.entry((buyer, key.to_owned()));
        let first = first.or_insert_with(|| answer.clone());
        assert_eq!(
            (first.status, &first.body),
            (answer.status, &answer.body),
            "{key} is answered as it was"
        );
    }

    fn record_cancellation(&mut self, order_id: &str, answer: &ApiResponse) {
        let facts = self.order_mut(order_id);
        assert_eq!(facts.code_reads, 0, "{order_id} was read before it was cancelled");
        match &facts.cancel_response {
            Some(first) => assert_eq!(*first, answer.body, "{order_id} is cancelled once"),
            None => {
                facts.cancel_response = Some(answer.body.clone());
                self.newly_cancelled
                    .push((order_id.to_owned(), answer.body.clone()));
            }
        }
    }

    fn record_code_read(&mut self, order_id: &str, body: &Value) {
        let facts = self.order_mut(order_id);
        facts.code_reads += 1;
        assert!(
            facts.cancel_response.is_none(),
            "{order_id} was cancelled before it was read"
        );
        for voucher in body["data"].as_array().unwrap() {
            let code = voucher["credentials"].to_string();
            let owner = self.code_owners.entry(code).or_insert_with(|| order_id.to_owned());
            assert_eq!(owner, order_id, "{} was handed to both", voucher["voucher_id"]);
        }
    }

    fn order_mut(&mut self, order_id: &str) -> &mut OrderFacts {
        self.orders.get_mut(order_id).unwrap()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:10}{:>8}{:>9}{:>7}", "asked", "acked", "refused", "open")?;
        for (name, [acknowledged, refused, open]) in &self.0 {
            writeln!(f, "{name:10}{acknowledged:>8}{refused:>9}{open:>7}")?;
        }
        Ok(())
    }
}
