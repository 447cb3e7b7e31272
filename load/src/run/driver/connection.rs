//! Send loop of one connection: request, response, next request.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use uuid::Uuid;
use vouchsafe_api_client::partner::{PartnerClient, SignedRequest};
use vouchsafe_api_client::wire::{EventView, ListView, OrderView, order_number};
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use super::ThreadState;
use crate::run::send_schedule::SendSlot;
use crate::tally::OrderAttempt;
use crate::traffic::pace::Phase;
use crate::traffic::request::{RequestKind, RequestSpec};

/// Delay after a request that could not be sent, so that the generator does not flood a stopped service with
/// connects.
const UNSENT_PAUSE: Duration = Duration::from_millis(50);

/// Page size of the event feed: the maximum of the contract (§3).
const FEED_PAGE: usize = 100;

/// Status of an order whose vouchers were in stock.
const DELIVERED: &str = "DELIVERED";

type Outcome = Result<ApiResponse, RequestFailure>;

/// Sends requests until the schedule ends.
pub(super) async fn run_connection(client: PartnerClient, state: Rc<ThreadState>) {
    let mut connection = Connection {
        client,
        partner: 0,
        state,
    };
    while let Some(slot) = connection.state.schedule.next(Instant::now()) {
        if let Some(due) = slot.due {
            tokio::time::sleep_until(due.into()).await;
        }
        let sent_at = Instant::now();
        let outcome = connection.send(slot).await;
        connection.count(slot, sent_at, outcome.as_ref());
        if matches!(outcome, Some(Err(RequestFailure::NotSent(_)))) {
            tokio::time::sleep(UNSENT_PAUSE).await;
        }
    }
}

/// A sent order with its outcome.
struct PlacedOrder {
    outcome: Outcome,
    /// Position in the log of sent orders, if the run keeps one.
    log_index: Option<usize>,
}

struct Connection {
    client: PartnerClient,
    /// Partner whose credentials the client uses.
    partner: usize,
    state: Rc<ThreadState>,
}

impl Connection {
    /// Sends one request and records the outcome. `None` if there is none at the drain deadline.
    async fn send(&mut self, slot: SendSlot) -> Option<Outcome> {
        let spec = self.state.plan.traffic.draw(&mut self.state.rng.borrow_mut());
        match spec {
            RequestSpec::Order {
                partner,
                form,
                body,
                is_life: false,
            } => Some(self.place_order(slot, (partner, form), body).await?.outcome),
            RequestSpec::Order {
                partner, form, body, ..
            } => self.live(slot, (partner, form), body).await,
            RequestSpec::PastOrder { kind, at } => self.request_past_order(slot, kind, at).await,
            RequestSpec::PartnerRead { kind, partner } => self.read_for_partner(slot, kind, partner).await,
        }
    }

    /// Counts a measured request of an open loop.
    fn count(&self, slot: SendSlot, sent_at: Instant, outcome: Option<&Outcome>) {
        let Some(load_end) = self.state.schedule.load_end() else {
            return;
        };
        if slot.phase == Phase::Measured {
            let counts = &mut self.state.tally.borrow_mut().open_loop;
            match outcome {
                Some(outcome) => counts.record(load_end.at, (sent_at, Instant::now()), outcome),
                None => counts.record_dropped(load_end.at, sent_at),
            }
        }
    }

    fn use_partner(&mut self, partner: usize) {
        if self.partner != partner {
            self.client
                .set_credentials(self.state.plan.partners[partner].clone());
            self.partner = partner;
        }
    }

    async fn place_order(
        &mut self,
        slot: SendSlot,
        (partner, form): (usize, usize),
        body: Bytes,
    ) -> Option<PlacedOrder> {
        self.use_partner(partner);
        // Random keys, as partners use them: sorted keys would favour the service's index.
        let key = Uuid::new_v4();
        let request = sign_order(&self.client, key, body.clone());
        let log_index = self.state.plan.has_to_remember_orders().then(|| {
            let mut sent = self.state.sent.borrow_mut();
            sent.record_sent(partner, key, body.clone())
        });
        let now = Instant::now();
        let at = slot.due.unwrap_or(now);
        let deadline = self.state.schedule.drain_deadline();
        let outcome = match request {
            Ok(request) => before(deadline, self.client.send(request)).await,
            Err(failure) => Some(Err(failure)),
        };
        let end = Instant::now();
        let mut tally = self.state.tally.borrow_mut();
        let mut text = Uuid::encode_buffer();
        let key: &str = key.hyphenated().encode_lower(&mut text);
        let sent = OrderAttempt {
            phase: slot.phase,
            partner,
            at,
            send_delay: slot.delay(now),
            form,
            key,
            body: &body,
        };
        let Some(outcome) = outcome else {
            tally.record_dropped(&sent);
            return None;
        };
        tally.record(sent, end, &outcome);
        if outcome
            .as_ref()
            .is_ok_and(|response| response.status.is_success())
        {
            self.state.progress.order_acknowledged();
        }
        if let (Some(index), Ok(response)) = (log_index, &outcome) {
            let mut sent = self.state.sent.borrow_mut();
            sent.compare_or_store(index, response, &mut tally.mismatches);
        }
        Some(PlacedOrder { outcome, log_index })
    }

    /// Places an order; if it is delivered at once, reads its codes and then itself, and waits for its
    /// events.
    async fn live(
        &mut self,
        slot: SendSlot,
        (partner, form): (usize, usize),
        body: Bytes,
    ) -> Option<Outcome> {
        let at = slot.due.unwrap_or_else(Instant::now);
        let PlacedOrder { outcome, log_index } = self.place_order(slot, (partner, form), body).await?;
        let (Ok(response), Some(index)) = (&outcome, log_index) else {
            return Some(outcome);
        };
        let order = OrderView::parse(&response.body)
            .ok()
            .filter(|order| order.status == DELIVERED);
        let Some((number, order)) = order.and_then(|order| Some((order_number(order.order_id)?, order)))
        else {
            return Some(outcome);
        };
        for kind in [RequestKind::Codes, RequestKind::Read] {
            // A read that failed is in the tally, and fails the audit.
            if self
                .read_order(slot, kind, (index, order.order_id))
                .await?
                .is_err()
            {
                return Some(outcome);
            }
        }
        let deadline = self.state.schedule.drain_deadline();
        let ended = before(deadline, self.wait_for_events(number, order.vouchers.len())).await?;
        self.record_background(slot, RequestKind::Life, at, &ended.map(|()| response.clone()));
        Some(outcome)
    }

    /// Waits until the events of a delivered order have arrived: created, one for each issued voucher,
    /// delivered.
    async fn wait_for_events(&self, order_number: u128, vouchers: usize) -> Result<(), RequestFailure> {
        let missing = |reason: &str| RequestFailure::Unknown(format!("events of the order: {reason}"));
        let Some(events) = &self.state.plan.events else {
            return Err(missing("the run has no receiver"));
        };
        let arrived = events.wait_for(order_number, 2 + vouchers);
        tokio::time::timeout(self.state.plan.timeout, arrived)
            .await
            .map_err(|_| missing("some have not arrived in time"))
    }

    async fn request_past_order(&mut self, slot: SendSlot, kind: RequestKind, at: f64) -> Option<Outcome> {
        let deadline = self.state.schedule.drain_deadline();
        if kind == RequestKind::Duplicate {
            let drawn = self.state.sent.borrow().pick_any(at);
            if let Some((index, order)) = drawn {
                self.use_partner(order.partner);
                let request = match sign_order(&self.client, order.key, order.body) {
                    Ok(request) => request,
                    Err(failure) => return Some(Err(failure)),
                };
                let at = slot.due.unwrap_or_else(Instant::now);
                let outcome = before(deadline, self.client.send(request)).await?;
                self.record_background(slot, kind, at, &outcome);
                if let Ok(response) = &outcome {
                    let mut tally = self.state.tally.borrow_mut();
                    let mut sent = self.state.sent.borrow_mut();
                    sent.compare_or_store(index, response, &mut tally.mismatches);
                }
                return Some(outcome);
            }
        } else {
            let drawn = self.state.sent.borrow().pick_delivered(at);
            if let Some((index, partner, order_id)) = drawn {
                self.use_partner(partner);
                return self.read_order(slot, kind, (index, &order_id)).await;
            }
        }
        // No order has completed yet; read the wallets instead.
        self.read_for_partner(slot, RequestKind::Wallets, self.partner)
            .await
    }

    /// Reads an order or its codes with the credentials of the client.
    async fn read_order(
        &mut self,
        slot: SendSlot,
        kind: RequestKind,
        (index, order_id): (usize, &str),
    ) -> Option<Outcome> {
        let deadline = self.state.schedule.drain_deadline();
        let at = slot.due.unwrap_or_else(Instant::now);
        let outcome = match kind {
            RequestKind::Codes => before(deadline, self.client.get_codes(order_id)).await?,
            _ => before(deadline, self.client.get(&format!("/orders/{order_id}"))).await?,
        };
        self.record_background(slot, kind, at, &outcome);
        if let (RequestKind::Read, Ok(response)) = (kind, &outcome) {
            let mut tally = self.state.tally.borrow_mut();
            self.state
                .sent
                .borrow()
                .compare_read(index, response, &mut tally.mismatches);
        }
        Some(outcome)
    }

    async fn read_for_partner(
        &mut self,
        slot: SendSlot,
        kind: RequestKind,
        partner: usize,
    ) -> Option<Outcome> {
        self.use_partner(partner);
        let path = match kind {
            RequestKind::Feed => self.feed_path(partner),
            _ => "/wallets".to_owned(),
        };
        let at = slot.due.unwrap_or_else(Instant::now);
        let outcome = before(self.state.schedule.drain_deadline(), self.client.get(&path)).await?;
        self.record_background(slot, kind, at, &outcome);
        if let (RequestKind::Feed, Ok(response)) = (kind, &outcome)
            && let Ok(page) = response.json::<ListView<EventView>>()
            && let Some(last) = page.data.into_iter().next_back()
        {
            self.state.feed_positions.borrow_mut()[partner] = Some(last.event_id);
        }
        Some(outcome)
    }

    fn feed_path(&self, partner: usize) -> String {
        match &self.state.feed_positions.borrow()[partner] {
            Some(event_id) => format!("/events?limit={FEED_PAGE}&after={event_id}"),
            None => format!("/events?limit={FEED_PAGE}"),
        }
    }

    fn record_background(&self, slot: SendSlot, kind: RequestKind, at: Instant, outcome: &Outcome) {
        if slot.phase == Phase::Measured {
            let latency = Instant::now().saturating_duration_since(at);
            self.state
                .tally
                .borrow_mut()
                .record_background(kind, latency, outcome);
        }
    }
}

/// Waits for the response until the drain deadline of an open loop; `None` after it.
async fn before<T>(deadline: Option<Instant>, exchange: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(exchange.await),
        Some(deadline) => tokio::time::timeout_at(deadline.into(), exchange).await.ok(),
    }
}

/// Signs an order under a UUID key.
fn sign_order(signer: &PartnerClient, key: Uuid, body: Bytes) -> Result<SignedRequest, RequestFailure> {
    let mut text = Uuid::encode_buffer();
    signer.sign_order(key.hyphenated().encode_lower(&mut text), body)
}
