//! Replies per idempotency key, checked against the rules of idempotency.
//!
//! It uses only what a partner can observe: once a response is stored, every later reply under that key is
//! the same until the key expires.

use std::collections::{BTreeMap, BTreeSet};

use vouchsafe_actors::flows::FlowError;
use vouchsafe_domain::idempotency::{KeyHash, Response};

use super::order::{OrderReply, OrderRequest};

#[derive(Default)]
struct KeyHistory {
    /// The first request with a stored response.
    stored: Option<(OrderRequest, Response)>,
    executions: u32,
    /// Requests rejected because the key belongs to another request.
    rejected_as_reused: Vec<OrderRequest>,
    /// Distinct requests under the key.
    requests: Vec<OrderRequest>,
}

/// Replies under unexpired keys, and violations found.
#[derive(Default)]
pub struct ResponseHistory {
    keys: BTreeMap<KeyHash, KeyHistory>,
    acknowledged: BTreeSet<(KeyHash, Vec<u8>)>,
    violations: Vec<String>,
}

impl ResponseHistory {
    pub fn record(&mut self, request: &OrderRequest, reply: &OrderReply) {
        let history = self.keys.entry(request.key_hash()).or_default();
        if !history.requests.contains(request) {
            history.requests.push(request.clone());
        }
        // Two nodes that reject the same order concurrently may both report the stored rejection as new, if
        // one of them lost its response: the bodies are identical, and nothing was executed.
        if let OrderReply::New(response) = reply
            && response.status < 300
        {
            history.executions += 1;
        }
        if reply.error() == Some(&FlowError::KeyReused) {
            history.rejected_as_reused.push(request.clone());
        }
        if let Some(response) = reply.response() {
            self.acknowledged
                .insert((request.key_hash(), response.body.to_vec()));
            let (first_request, first) = history
                .stored
                .get_or_insert_with(|| (request.clone(), response.clone()));
            if (&*first_request, &*first) != (request, response) {
                self.violations.push(format!(
                    "{first_request:?} got {:?} first and then {}",
                    first.body,
                    reply.describe()
                ));
            }
        }
    }

    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        let twice = self.keys.values().filter(|history| history.executions > 1);
        let twice =
            twice.map(|history| format!("executed {} times: {:?}", history.executions, history.requests));
        let is_own = |history: &&KeyHistory| {
            history
                .stored
                .as_ref()
                .is_some_and(|(request, _)| history.rejected_as_reused.contains(request))
        };
        let own = self.keys.values().filter(is_own);
        let own = own.map(|history| {
            format!(
                "rejected as another request's key, but it is the same request: {:?}",
                history.requests
            )
        });
        self.violations.iter().cloned().chain(twice).chain(own).collect()
    }

    /// Requests of each key without a response.
    #[must_use]
    pub fn unanswered_requests(&self) -> Vec<Vec<OrderRequest>> {
        let open = self.keys.values().filter(|history| history.stored.is_none());
        open.map(|history| history.requests.clone()).collect()
    }

    /// First request of each key.
    #[must_use]
    pub fn first_requests(&self) -> Vec<&OrderRequest> {
        self.keys
            .values()
            .filter_map(|history| history.requests.first())
            .collect()
    }

    /// Requests with stored responses, one per key.
    pub fn stored(&self) -> impl Iterator<Item = &(OrderRequest, Response)> {
        self.keys.values().filter_map(|history| history.stored.as_ref())
    }

    /// Forgets all keys, after their expiry.
    pub fn clear(&mut self) {
        self.keys.clear();
    }
}
