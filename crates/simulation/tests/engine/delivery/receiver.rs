//! Simulated webhook receiver with scripted responses and a log of attempts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::delivery::{DeliveryFault, SendResult, WebhookEvent, WebhookTarget};

/// Response of the receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReceiverBehavior {
    /// This status after this delay.
    Respond(u16, Duration),
    /// 429 with `Retry-After`.
    RetryAfter(Duration),
    Hang,
    RefuseConnection,
}

pub(crate) const ACCEPT: ReceiverBehavior = ReceiverBehavior::Respond(204, Duration::ZERO);
pub(crate) const FAIL: ReceiverBehavior = ReceiverBehavior::Respond(500, Duration::ZERO);

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedAttempt {
    pub(crate) number: i64,
    pub(crate) started_at: Instant,
    /// Time of a 2xx response.
    pub(crate) delivered_at: Option<Instant>,
}

#[derive(Debug)]
struct ReceiverState {
    started_at: Instant,
    behavior: ReceiverBehavior,
    /// Overrides by event number.
    behavior_by_number: HashMap<i64, ReceiverBehavior>,
    attempts: Vec<ReceivedAttempt>,
    in_flight: usize,
    max_in_flight: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Receiver(Arc<Mutex<ReceiverState>>);

impl Receiver {
    pub(crate) fn new(behavior: ReceiverBehavior) -> Self {
        Self(Arc::new(Mutex::new(ReceiverState {
            started_at: Instant::now(),
            behavior,
            behavior_by_number: HashMap::new(),
            attempts: Vec::new(),
            in_flight: 0,
            max_in_flight: 0,
        })))
    }

    pub(crate) fn set_behavior(&self, behavior: ReceiverBehavior) {
        self.0.lock().unwrap().behavior = behavior;
    }

    pub(crate) fn set_behavior_for(&self, number: i64, behavior: ReceiverBehavior) {
        self.0.lock().unwrap().behavior_by_number.insert(number, behavior);
    }

    /// Event number and arrival second of each attempt.
    pub(crate) fn numbers_and_seconds(&self) -> Vec<(i64, u64)> {
        let state = self.0.lock().unwrap();
        let second = |attempt: &ReceivedAttempt| (attempt.started_at - state.started_at).as_secs();
        state
            .attempts
            .iter()
            .map(|attempt| (attempt.number, second(attempt)))
            .collect()
    }

    pub(crate) fn attempts(&self) -> Vec<ReceivedAttempt> {
        self.0.lock().unwrap().attempts.clone()
    }

    pub(crate) fn numbers(&self) -> Vec<i64> {
        self.numbers_and_seconds()
            .into_iter()
            .map(|(number, _)| number)
            .collect()
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.0.lock().unwrap().max_in_flight
    }

    fn begin(&self, number: i64) -> (ReceiverBehavior, InFlightAttempt) {
        let mut state = self.0.lock().unwrap();
        state.attempts.push(ReceivedAttempt {
            number,
            started_at: Instant::now(),
            delivered_at: None,
        });
        state.in_flight += 1;
        state.max_in_flight = state.max_in_flight.max(state.in_flight);
        let behavior = state
            .behavior_by_number
            .get(&number)
            .copied()
            .unwrap_or(state.behavior);
        let attempt = InFlightAttempt {
            receiver: self.clone(),
            index: state.attempts.len() - 1,
        };
        (behavior, attempt)
    }
}

/// Counts an attempt as in flight until dropped, which includes cancelled attempts.
struct InFlightAttempt {
    receiver: Receiver,
    index: usize,
}

impl InFlightAttempt {
    fn mark_delivered(&self) {
        self.receiver.0.lock().unwrap().attempts[self.index].delivered_at = Some(Instant::now());
    }
}

impl Drop for InFlightAttempt {
    fn drop(&mut self) {
        self.receiver.0.lock().unwrap().in_flight -= 1;
    }
}

impl Sender for Receiver {
    fn send(&self, _: Arc<WebhookTarget>, event: WebhookEvent) -> StoreFuture<'static, SendResult> {
        let (behavior, attempt) = self.begin(event.number);
        let result = |status, retry_after| SendResult {
            status: Ok(status),
            retry_after,
            body: "é".repeat(1_000),
        };
        Box::pin(async move {
            match behavior {
                ReceiverBehavior::Respond(status, after) => {
                    sleep(after).await;
                    if (200..300).contains(&status) {
                        attempt.mark_delivered();
                    }
                    result(status, None)
                }
                ReceiverBehavior::RetryAfter(after) => result(429, Some(after)),
                ReceiverBehavior::Hang => std::future::pending().await,
                ReceiverBehavior::RefuseConnection => SendResult::failed(DeliveryFault::Connection),
            }
        })
    }
}
