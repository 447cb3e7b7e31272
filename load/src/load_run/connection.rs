//! What does one connection do for a whole run? A request, its answer, the next request.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use uuid::Uuid;

use super::ThreadState;
use super::request_queue::{QueuedRequest, sign_order};
use crate::client::{ApiResponse, RequestFailure};
use crate::pacing::SendSlot;
use crate::partner::{PartnerClient, SignedRequest};
use crate::tally::{Phase, OrderAttempt};
use crate::traffic::{RequestSpec, RequestKind};
use crate::wire::{EventView, ListView};

/// Pause after a request that could not be sent: a service that is down is not hammered with connects.
const UNSENT_PAUSE: Duration = Duration::from_millis(50);

/// Events of one page of the feed: the most that the contract gives (§3).
const FEED_PAGE: usize = 100;

type Outcome = Result<ApiResponse, RequestFailure>;

/// Sends until there is no turn left.
pub(super) async fn run_connection(client: PartnerClient, thread: Rc<ThreadState>) {
    let mut connection = Connection {
        client,
        partner: 0,
        thread,
    };
    while let Some(turn) = connection.thread.turns.next(Instant::now()) {
        if let Some(due) = turn.due {
            tokio::time::sleep_until(due.into()).await;
            if turn.phase == Phase::Measured {
                let late = Instant::now().saturating_duration_since(due);
                connection.thread.tally.borrow_mut().record_lateness(late);
            }
        }
        let was_sent = connection.send(turn).await;
        connection.thread.progress.request_completed();
        if !was_sent {
            tokio::time::sleep(UNSENT_PAUSE).await;
        }
    }
}

struct Connection {
    client: PartnerClient,
    /// Who speaks on it now.
    partner: usize,
    thread: Rc<ThreadState>,
}

impl Connection {
    /// Sends one request and enters what became of it; says whether it left.
    async fn send(&mut self, turn: SendSlot) -> bool {
        let QueuedRequest { spec: ask, signed } = self.thread.deck.borrow_mut().next(&self.thread.drive);
        let outcome = match ask {
            RequestSpec::Order { partner, form, body } => self.order(turn, (partner, form), body, signed).await,
            RequestSpec::PastOrder { kind, at } => self.earlier(turn, kind, at).await,
            RequestSpec::PartnerRead { kind, partner } => self.of(turn, kind, partner).await,
        };
        !matches!(outcome, Err(RequestFailure::NotSent(_)))
    }

    fn speak_for(&mut self, partner: usize) {
        if self.partner != partner {
            self.client.set_credentials(self.thread.drive.partners[partner].clone());
            self.partner = partner;
        }
    }

    async fn order(
        &mut self,
        turn: SendSlot,
        (partner, form): (usize, usize),
        body: Bytes,
        signed: Option<(Uuid, SignedRequest)>,
    ) -> Outcome {
        self.speak_for(partner);
        // Random keys, as partners make them: sorted ones would flatter the service's index.
        let (key, request) = match signed {
            Some((key, request)) => (key, Ok(request)),
            None => {
                let key = Uuid::new_v4();
                (key, sign_order(&self.client, key, body.clone()))
            }
        };
        let remembered = self.thread.drive.has_to_remember_orders().then(|| {
            let mut sent = self.thread.sent.borrow_mut();
            sent.record_sent(partner, key, body.clone())
        });
        let at = turn.due.unwrap_or_else(Instant::now);
        let outcome = match request {
            Ok(request) => self.client.send(request).await,
            Err(failure) => Err(failure),
        };
        let end = Instant::now();
        let mut tally = self.thread.tally.borrow_mut();
        let mut text = Uuid::encode_buffer();
        let key: &str = key.hyphenated().encode_lower(&mut text);
        let sent = OrderAttempt {
            phase: turn.phase,
            partner,
            at,
            form,
            key,
            body: &body,
        };
        tally.record(sent, end, &outcome);
        if outcome.as_ref().is_ok_and(|answer| answer.status.is_success()) {
            self.thread.progress.order_acknowledged();
        }
        if let (Some(index), Ok(answer)) = (remembered, &outcome) {
            let mut sent = self.thread.sent.borrow_mut();
            sent.answered(index, answer, &mut tally.mismatches);
        }
        outcome
    }

    async fn earlier(&mut self, turn: SendSlot, kind: RequestKind, at: f64) -> Outcome {
        if kind == RequestKind::Duplicate {
            let drawn = self.thread.sent.borrow().pick_any(at);
            if let Some((index, order)) = drawn {
                self.speak_for(order.partner);
                let request = sign_order(&self.client, order.key, order.body)?;
                let at = turn.due.unwrap_or_else(Instant::now);
                let outcome = self.client.send(request).await;
                self.enter(turn, kind, at, &outcome);
                if let Ok(answer) = &outcome {
                    let mut tally = self.thread.tally.borrow_mut();
                    let mut sent = self.thread.sent.borrow_mut();
                    sent.answered(index, answer, &mut tally.mismatches);
                }
                return outcome;
            }
        } else {
            let drawn = self.thread.sent.borrow().delivered(at);
            if let Some((index, partner, order_id)) = drawn {
                self.speak_for(partner);
                let at = turn.due.unwrap_or_else(Instant::now);
                let outcome = match kind {
                    RequestKind::Codes => self.client.get_codes(&order_id).await,
                    _ => self.client.get(&format!("/orders/{order_id}")).await,
                };
                self.enter(turn, kind, at, &outcome);
                if let (RequestKind::Read, Ok(answer)) = (kind, &outcome) {
                    let mut tally = self.thread.tally.borrow_mut();
                    self.thread.sent.borrow().read(index, answer, &mut tally.mismatches);
                }
                return outcome;
            }
        }
        // Nothing lies behind us yet: at the beginning there is something to read all the same.
        self.of(turn, RequestKind::Wallets, self.partner).await
    }

    async fn of(&mut self, turn: SendSlot, kind: RequestKind, partner: usize) -> Outcome {
        self.speak_for(partner);
        let path = match kind {
            RequestKind::Feed => self.feed_path(partner),
            _ => "/wallets".to_owned(),
        };
        let at = turn.due.unwrap_or_else(Instant::now);
        let outcome = self.client.get(&path).await;
        self.enter(turn, kind, at, &outcome);
        if let (RequestKind::Feed, Ok(answer)) = (kind, &outcome)
            && let Ok(page) = answer.json::<ListView<EventView>>()
            && let Some(last) = page.data.into_iter().next_back()
        {
            self.thread.feeds.borrow_mut()[partner] = Some(last.event_id);
        }
        outcome
    }

    fn feed_path(&self, partner: usize) -> String {
        match &self.thread.feeds.borrow()[partner] {
            Some(event_id) => format!("/events?limit={FEED_PAGE}&after={event_id}"),
            None => format!("/events?limit={FEED_PAGE}"),
        }
    }

    fn enter(&self, turn: SendSlot, kind: RequestKind, at: Instant, outcome: &Outcome) {
        if turn.phase == Phase::Measured {
            let latency = Instant::now().saturating_duration_since(at);
            self.thread
                .tally
                .borrow_mut()
                .record_background(kind, latency, outcome);
        }
    }
}
