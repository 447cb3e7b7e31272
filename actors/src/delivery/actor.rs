//! Delivery actor of one endpoint: leases it, reads its outbox, sends, and writes the outcomes.
//!
//! | state | holds |
//! |---|---|
//! | idle | nothing; the actor may be evicted |
//! | leasing | a pending lease request |
//! | active | the lease, the queue, and deliveries in flight |
//!
//! One flush is in flight at a time, so each read happens after everything that the queue knew was written.
//! The actor holds nothing durable: after a crash or a lost lease, the next owner continues from the store.

mod active;
pub(super) mod message;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, SpawnHandle, WrapFuture as _};
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};
use vouchsafe_domain::delivery::attempt::{EndedAttempt, MAX_LOGGED_RESPONSE_BYTES};
use vouchsafe_domain::delivery::{
    AttemptOutcome, DeliveryAttempt, DeliveryFault, MAX_STORED_RESPONSE_BYTES, QueuedDelivery, SendResult,
    WebhookEvent,
};
use vouchsafe_domain::ids::WebhookId;

use self::active::{ActiveEndpoint, NextAction};
use self::message::{ReleaseLease, Wake};
use super::DeliveryContext;
use super::outbox::{DeliveryPage, FlushRequest, LeasedEndpoint};
use crate::supervisor::{ActorState, Lineage};
use vouchsafe_domain::store_error::Unavailable;

/// Timeout of one attempt, from connecting to the head of the response (contract §6).
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before a failed flush is repeated.
const FLUSH_RETRY_DELAY: Duration = Duration::from_secs(1);

enum State {
    Idle,
    Leasing { release_requested: bool },
    Active(Box<ActiveEndpoint>),
}

/// The delivery actor of one endpoint.
pub(super) struct DeliveryActor {
    webhook_id: WebhookId,
    context: DeliveryContext,
    lineage: Lineage,
    started_at: Instant,
    state: State,
    timer: Option<SpawnHandle>,
}

impl DeliveryActor {
    pub(super) fn new(webhook_id: WebhookId, context: DeliveryContext, lineage: Lineage) -> Self {
        Self {
            webhook_id,
            context,
            lineage,
            started_at: Instant::now(),
            state: State::Idle,
            timer: None,
        }
    }

    /// Time since the actor started; never zero, since zero stands for "never".
    fn now(&self) -> Duration {
        self.started_at.elapsed() + Duration::from_millis(1)
    }

    fn lease(&mut self, ctx: &mut Context<Self>) {
        self.state = State::Leasing {
            release_requested: false,
        };
        // The hold keeps the actor from being evicted.
        let hold = self.lineage.holds.open_hold();
        let (outbox, webhook_id) = (Arc::clone(&self.context.outbox), self.webhook_id);
        let requested_at = self.now();
        let leased = async move { outbox.lease(webhook_id).await };
        ctx.spawn(leased.into_actor(self).map(move |leased, actor, ctx| {
            let release_requested = matches!(actor.state, State::Leasing { release_requested: true });
            actor.state = State::Idle;
            actor.lineage.metrics.set_state(ActorState::Idle);
            match leased {
                Ok(Some(endpoint)) => {
                    let now = actor.now();
                    let mut active = ActiveEndpoint::new(endpoint, requested_at, now, hold);
                    active.set_releasing(release_requested);
                    actor.state = State::Active(Box::new(active));
                    actor.lineage.metrics.set_state(ActorState::Ready);
                    actor.advance(ctx);
                }
                Ok(None) => drop(hold),
                Err(error) => {
                    warn!(webhook.id = %actor.webhook_id, error.message = %error, "cannot lease webhook endpoint");
                    actor.lineage.metrics.record_error(format!("cannot lease webhook endpoint: {error}"));
                    drop(hold);
                }
            }
        }));
    }

    /// Starts due attempts and the next flush, and sets the timer for the next action.
    fn advance(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let now = self.now();
        let State::Active(active) = &mut self.state else {
            return;
        };
        let due = active.take_due(now, &self.context.concurrency);
        for (delivery, permit) in due {
            self.send(delivery, permit, ctx);
        }
        let State::Active(active) = &mut self.state else {
            return;
        };
        match active.next_action(now) {
            NextAction::Flush(flush) => self.flush(flush, ctx),
            NextAction::Wait(Some(wait)) => {
                self.timer = Some(ctx.run_later(wait, |actor, ctx| {
                    actor.timer = None;
                    actor.advance(ctx);
                }));
            }
            NextAction::Wait(None) => {}
        }
    }

    fn send(
        &mut self,
        delivery: QueuedDelivery,
        permit: tokio::sync::OwnedSemaphorePermit,
        ctx: &mut Context<Self>,
    ) {
        let State::Active(active) = &self.state else {
            return;
        };
        let Some(event) = active.event(delivery.number) else {
            return;
        };
        let DeliveryContext {
            sender,
            clock,
            metrics,
            ..
        } = &self.context;
        let (started_at, at) = (Instant::now(), clock.now());
        if delivery.attempts == 0 && !delivery.has_row {
            let delay = Duration::try_from(at - event.events.created_at).unwrap_or_default();
            metrics.record_first_attempt(delay);
        }
        let (lease, response) = (active.lease(), sender.send(active.target(), event.clone()));
        let attempt = async move {
            let result = timeout(ATTEMPT_TIMEOUT, response).await;
            drop(permit);
            result.unwrap_or_else(|_| SendResult::failed(DeliveryFault::Timeout))
        };
        ctx.spawn(attempt.into_actor(self).map(move |result, actor, ctx| {
            let duration = started_at.elapsed();
            let outcome = result.outcome();
            let attempt = attempt_of(at, duration, result);
            actor.context.metrics.record_attempt(outcome, duration);
            actor.lineage.metrics.record_handled(duration);
            if outcome != AttemptOutcome::Delivered {
                actor.lineage.metrics.record_error(failure_message(&attempt));
            }
            let mut ended = actor.ended_attempt(&delivery, event, outcome, &attempt);
            if let State::Active(active) = &mut actor.state
                && active.lease() == lease
            {
                let retry_in = actor.record_attempt(delivery, outcome, attempt);
                if let (Some(ended), Some(retry_in)) = (&mut ended, retry_in) {
                    ended.retry_at = Some(actor.context.clock.now() + retry_in);
                }
                actor.advance(ctx);
            }
            if let (Some(log), Some(ended)) = (&actor.context.attempt_log, ended) {
                log.record(ended);
            }
        }));
    }

    /// The entry of the attempt log; `None` if there is no log.
    fn ended_attempt(
        &self,
        delivery: &QueuedDelivery,
        event: WebhookEvent,
        outcome: AttemptOutcome,
        attempt: &DeliveryAttempt,
    ) -> Option<EndedAttempt> {
        self.context.attempt_log.as_ref()?;
        Some(EndedAttempt {
            webhook_id: self.webhook_id,
            event,
            order_id: delivery.order_id,
            number: delivery.attempts + 1,
            outcome,
            attempt: DeliveryAttempt {
                answer: match outcome {
                    AttemptOutcome::Delivered => String::new(),
                    AttemptOutcome::Failed(_) | AttemptOutcome::Gone => {
                        prefix(&attempt.answer, MAX_LOGGED_RESPONSE_BYTES).to_owned()
                    }
                },
                ..*attempt
            },
            retry_at: None,
        })
    }

    /// Returns the time until the delivery is due again.
    fn record_attempt(
        &mut self,
        delivery: QueuedDelivery,
        outcome: AttemptOutcome,
        attempt: DeliveryAttempt,
    ) -> Option<Duration> {
        let now = self.now();
        let webhook_id = self.webhook_id;
        if outcome != AttemptOutcome::Delivered {
            debug!(
                webhook.id = %webhook_id,
                delivery.number = delivery.number,
                delivery.attempt = delivery.attempts + 1,
                http.response.status_code = attempt.status,
                delivery.fault = ?attempt.fault,
                "delivery attempt failed"
            );
        }
        let jitter = (self.context.jitter)();
        let State::Active(active) = &mut self.state else {
            return None;
        };
        let retry_at = active.record_attempt(delivery, outcome, attempt, now, jitter)?;
        Some(retry_at.saturating_sub(now))
    }

    fn flush(&mut self, flush: FlushRequest, ctx: &mut Context<Self>) {
        let (outbox, webhook_id) = (Arc::clone(&self.context.outbox), self.webhook_id);
        let written = async move { (outbox.flush(webhook_id, flush.clone()).await, flush) };
        ctx.spawn(
            written
                .into_actor(self)
                .map(|(page, flush), actor, ctx| actor.finish_flush(page, flush, ctx)),
        );
    }

    fn finish_flush(
        &mut self,
        page: Result<Option<DeliveryPage>, Unavailable>,
        flush: FlushRequest,
        ctx: &mut Context<Self>,
    ) {
        let now = self.now();
        let State::Active(active) = &mut self.state else {
            return;
        };
        match page {
            Ok(Some(page)) => {
                if active.finish_flush(&flush, page, now) {
                    return self.advance(ctx);
                }
            }
            Ok(None) => {
                debug!(webhook.id = %self.webhook_id, "webhook endpoint lost: leased by another process, or changed")
            }
            Err(error) if !active.is_lease_expired(now) => {
                warn!(webhook.id = %self.webhook_id, error.message = %error, "cannot write deliveries; the flush is repeated");
                self.lineage
                    .metrics
                    .record_error(format!("cannot write deliveries: {error}"));
                ctx.run_later(FLUSH_RETRY_DELAY, |actor, ctx| actor.flush(flush, ctx));
                return;
            }
            Err(error) => {
                warn!(webhook.id = %self.webhook_id, error.message = %error, "webhook lease expired; endpoint dropped");
                self.lineage
                    .metrics
                    .record_error(format!("webhook lease expired: {error}"));
            }
        }
        // Dropping the state drops its hold: the actor may be evicted.
        self.state = State::Idle;
        self.lineage.metrics.set_state(ActorState::Idle);
    }
}

fn failure_message(attempt: &DeliveryAttempt) -> String {
    match (attempt.status, attempt.fault) {
        (Some(status), _) => format!("the endpoint responded with status {status}"),
        (None, Some(fault)) => format!("no response from the endpoint: {}", fault.into_str()),
        (None, None) => "no response from the endpoint".to_owned(),
    }
}

fn attempt_of(at: time::OffsetDateTime, duration: Duration, result: SendResult) -> DeliveryAttempt {
    DeliveryAttempt {
        at,
        latency_ms: u32::try_from(duration.as_millis()).unwrap_or(u32::MAX),
        status: result.status.ok(),
        fault: result.status.err(),
        answer: prefix(&result.body, MAX_STORED_RESPONSE_BYTES).to_owned(),
    }
}

/// The characters within the first `max_bytes` bytes.
fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

impl Actor for DeliveryActor {
    type Context = Context<Self>;
}

impl Handler<Wake> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, wake: Wake, ctx: &mut Self::Context) {
        match &mut self.state {
            State::Idle => self.lease(ctx),
            State::Leasing { .. } => {}
            State::Active(active) => {
                active.request_poll();
                self.advance(ctx);
            }
        }
        drop(wake);
    }
}

impl Handler<ReleaseLease> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, message: ReleaseLease, ctx: &mut Self::Context) {
        match &mut self.state {
            State::Idle => {}
            State::Leasing { release_requested } => *release_requested = true,
            State::Active(active) => {
                active.set_releasing(true);
                self.advance(ctx);
            }
        }
        drop(message);
    }
}

/// The failure state of an endpoint that was leased at `now`.
pub(super) fn health_of(
    endpoint: &LeasedEndpoint,
    now: Duration,
) -> vouchsafe_domain::delivery::EndpointHealth {
    vouchsafe_domain::delivery::EndpointHealth {
        consecutive_failures: endpoint.consecutive_failures,
        backoff_step: endpoint.backoff_step,
        not_before: now + endpoint.retry_in,
    }
}
