//! The shell round the queue of one endpoint: reads, sends, writes down what came of it, and goes to rest.
//!
//! | it is | it has |
//! |---|---|
//! | dormant | nothing; it may be forgotten |
//! | opening | asked for the lease |
//! | live | the lease, the queue, and what is under way |
//!
//! Rules: one turn with the store is under way at a time, so that what is read was read after everything was written that
//! the queue knew of. Nothing durable is here: who loses the lease, or dies, leaves what the next one finds.

mod live;
pub(super) mod message;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, SpawnHandle, WrapFuture as _};
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use self::live::{Live, Next};
use self::message::{Rest, Wake};
use super::Equipment;
use super::outbox::{Opened, Page, Turn};
use crate::domain::delivery::{Answered, Attempt, Ending, Fault, MAX_ANSWER_BYTES, Waiting};
use crate::domain::ids::WebhookId;
use crate::store::Unavailable;
use crate::supervisor::Lineage;

/// How long one attempt may take, from connecting to the answer's head (contract §6).
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// How long after a turn that got no answer it is tried again.
const TURN_AGAIN_AFTER: Duration = Duration::from_secs(1);

enum State {
    Dormant,
    Opening { told_to_rest: bool },
    Live(Box<Live>),
}

/// The delivery actor of one endpoint.
pub(super) struct DeliveryActor {
    webhook_id: WebhookId,
    equipment: Equipment,
    lineage: Lineage,
    began: Instant,
    state: State,
    alarm: Option<SpawnHandle>,
}

impl DeliveryActor {
    /// An actor that has nothing yet.
    pub(super) fn new(webhook_id: WebhookId, equipment: Equipment, lineage: Lineage) -> Self {
        Self {
            webhook_id,
            equipment,
            lineage,
            began: Instant::now(),
            state: State::Dormant,
            alarm: None,
        }
    }

    /// Time since it began; never nought, which stands for never.
    fn now(&self) -> Duration {
        self.began.elapsed() + Duration::from_millis(1)
    }

    fn open(&mut self, ctx: &mut Context<Self>) {
        self.state = State::Opening { told_to_rest: false };
        // As long as it is open, nobody forgets it.
        let hold = self.lineage.holds.begin();
        let (outbox, webhook_id) = (Arc::clone(&self.equipment.outbox), self.webhook_id);
        let asked = self.now();
        let taken = async move { outbox.take(webhook_id).await };
        ctx.spawn(taken.into_actor(self).map(move |taken, actor, ctx| {
            let told_to_rest = matches!(actor.state, State::Opening { told_to_rest: true });
            actor.state = State::Dormant;
            match taken {
                Ok(Some(opened)) => {
                    let now = actor.now();
                    let mut live = Live::new(opened, asked, now, hold);
                    live.rest(told_to_rest);
                    actor.state = State::Live(Box::new(live));
                    actor.lineage.meter.set_ready(true);
                    actor.go_on(ctx);
                }
                Ok(None) => drop(hold),
                Err(error) => {
                    warn!(webhook.id = %actor.webhook_id, %error, "an endpoint cannot be taken yet");
                    drop(hold);
                }
            }
        }));
    }

    /// Does whatever can be done now, and sets the alarm for the next thing.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let now = self.now();
        let State::Live(live) = &mut self.state else {
            return;
        };
        let due = live.due(now, &self.equipment.places);
        for (waiting, place) in due {
            self.send(waiting, place, ctx);
        }
        let State::Live(live) = &mut self.state else {
            return;
        };
        match live.next(now) {
            Next::Turn(turn) => self.turn(turn, ctx),
            Next::Wait(Some(wait)) => {
                self.alarm = Some(ctx.run_later(wait, |actor, ctx| {
                    actor.alarm = None;
                    actor.go_on(ctx);
                }));
            }
            Next::Wait(None) => {}
        }
    }

    fn send(&mut self, waiting: Waiting, place: tokio::sync::OwnedSemaphorePermit, ctx: &mut Context<Self>) {
        let State::Live(live) = &self.state else { return };
        let Some(letter) = live.letter(waiting.number) else {
            return;
        };
        let Equipment {
            sender,
            clock,
            metrics,
            ..
        } = &self.equipment;
        self.lineage.meter.handle();
        let (began, at) = (Instant::now(), clock.now());
        if waiting.attempts == 0 && !waiting.stored {
            let after = Duration::try_from(at - letter.told.created_at).unwrap_or_default();
            metrics.first_attempt(after);
        }
        let (lease, sent) = (live.lease(), sender.send(live.target(), letter));
        let attempt = async move {
            let answered = timeout(ATTEMPT_LIMIT, sent).await;
            drop(place);
            answered.unwrap_or_else(|_| Answered::not(Fault::Timeout))
        };
        ctx.spawn(attempt.into_actor(self).map(move |answered, actor, ctx| {
            let took = began.elapsed();
            let ending = answered.ending();
            let attempt = attempt_of(at, took, answered);
            actor.equipment.metrics.ended(actor.webhook_id, ending, took);
            if let State::Live(live) = &mut actor.state
                && live.lease() == lease
            {
                actor.ended(waiting, ending, attempt);
                actor.go_on(ctx);
            }
        }));
    }

    fn ended(&mut self, waiting: Waiting, ending: Ending, attempt: Attempt) {
        let now = self.now();
        let webhook_id = self.webhook_id;
        if ending != Ending::Delivered {
            debug!(
                webhook.id = %webhook_id,
                delivery.number = waiting.number,
                delivery.attempt = waiting.attempts + 1,
                status = attempt.status,
                fault = ?attempt.fault,
                "a delivery failed"
            );
        }
        let chance = (self.equipment.chance)();
        if let State::Live(live) = &mut self.state {
            live.ended(waiting, ending, attempt, now, chance);
        }
    }

    fn turn(&mut self, turn: Turn, ctx: &mut Context<Self>) {
        let (outbox, webhook_id) = (Arc::clone(&self.equipment.outbox), self.webhook_id);
        let written = async move { (outbox.turn(webhook_id, turn.clone()).await, turn) };
        ctx.spawn(
            written
                .into_actor(self)
                .map(|(page, turn), actor, ctx| actor.turned(page, turn, ctx)),
        );
    }

    fn turned(&mut self, page: Result<Option<Page>, Unavailable>, turn: Turn, ctx: &mut Context<Self>) {
        let now = self.now();
        let State::Live(live) = &mut self.state else {
            return;
        };
        match page {
            Ok(Some(page)) => {
                if live.turned(&turn, page, now) {
                    return self.go_on(ctx);
                }
            }
            Ok(None) => {
                debug!(webhook.id = %self.webhook_id, "an endpoint belongs to another process, or was changed")
            }
            Err(error) if !live.is_overdue(now) => {
                warn!(webhook.id = %self.webhook_id, %error, "deliveries cannot be written down yet");
                ctx.run_later(TURN_AGAIN_AFTER, |actor, ctx| actor.turn(turn, ctx));
                return;
            }
            Err(error) => {
                warn!(webhook.id = %self.webhook_id, %error, "an endpoint is given up: its lease has run out");
            }
        }
        // Its hold goes with it: the actor may be forgotten.
        self.state = State::Dormant;
        self.lineage.meter.set_ready(false);
    }
}

fn attempt_of(at: time::OffsetDateTime, took: Duration, answered: Answered) -> Attempt {
    let mut answer = answered.answer;
    let mut end = answer.len().min(MAX_ANSWER_BYTES);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    answer.truncate(end);
    Attempt {
        at,
        latency_ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
        status: answered.status.ok(),
        fault: answered.status.err(),
        answer,
    }
}

impl Actor for DeliveryActor {
    type Context = Context<Self>;
}

impl Handler<Wake> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, wake: Wake, ctx: &mut Self::Context) {
        match &mut self.state {
            State::Dormant => self.open(ctx),
            State::Opening { .. } => {}
            State::Live(live) => {
                live.look();
                self.go_on(ctx);
            }
        }
        drop(wake);
    }
}

impl Handler<Rest> for DeliveryActor {
    type Result = ();

    fn handle(&mut self, rest: Rest, ctx: &mut Self::Context) {
        match &mut self.state {
            State::Dormant => {}
            State::Opening { told_to_rest } => *told_to_rest = true,
            State::Live(live) => {
                live.rest(true);
                self.go_on(ctx);
            }
        }
        drop(rest);
    }
}

/// The endpoint as it was taken, with its waiting time from now on.
pub(super) fn health_of(opened: &Opened, now: Duration) -> crate::domain::delivery::Health {
    crate::domain::delivery::Health {
        failures: opened.failures,
        step: opened.step,
        not_before: now + opened.wait,
    }
}
