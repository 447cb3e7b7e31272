//! Who speaks for a process in these cases: takes the endpoint, and writes and reads a turn at a time.

use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;

use super::subject::OutboxSubject;
use crate::delivery::outbox::{Opened, Outbox, Page, Then, Turn};
use crate::delivery::queue::{Changes, FAILING_AFTER, Want};
use crate::domain::delivery::{Attempt, Fate, Health, Mark};
use crate::domain::ids::WebhookId;
use crate::testing::memory_outbox::order_id;

/// Longer than any machine is slow.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// What is due, and everything past this number.
pub(super) const fn due(after: i64) -> Want {
    Want::Due { after, most: 100 }
}

/// A process that delivers.
pub(super) struct Process {
    outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
}

/// An endpoint that a process has taken.
pub(super) struct Teller {
    outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
    pub(super) opened: Opened,
    turns: i64,
}

/// What is written in one turn.
#[derive(Default)]
pub(super) struct Said {
    pub(super) cursor: i64,
    pub(super) failures: u32,
    pub(super) marks: Vec<Mark>,
    pub(super) attempts: Vec<(i64, Attempt)>,
    pub(super) recovered: bool,
    pub(super) gone: bool,
    pub(super) wait: Option<Duration>,
}

impl Process {
    pub(super) async fn start<S: OutboxSubject>(subject: &S, node: &str) -> Self {
        Self {
            outbox: subject.start(node).await,
            webhook_id: subject.webhook_id(),
        }
    }

    pub(super) async fn take(&self) -> Option<Teller> {
        let opened = self.outbox.take(self.webhook_id).await.unwrap()?;
        Some(Teller {
            outbox: Arc::clone(&self.outbox),
            webhook_id: self.webhook_id,
            opened,
            turns: 0,
        })
    }
}

/// A process that has taken the endpoint.
pub(super) async fn taken<S: OutboxSubject>(subject: &S, node: &str) -> Teller {
    let process = Process::start(subject, node).await;
    process
        .take()
        .await
        .expect("there is something to do, and nobody does it")
}

impl Teller {
    /// The next turn, which says this.
    pub(super) fn turn(&mut self, said: Said, then: Then) -> Turn {
        self.turns += 1;
        let taken = said.attempts.iter();
        let taken = taken.filter(|(_, attempt)| matches!(attempt.status, Some(200..=299)));
        let delivered = u32::try_from(taken.count()).unwrap();
        Turn {
            lease: self.opened.lease,
            number: self.turns,
            now: HOUR,
            delivered,
            refused: u32::try_from(said.attempts.len()).unwrap() - delivered,
            changes: Changes {
                cursor: said.cursor,
                health: Health {
                    failures: said.failures,
                    step: said.failures,
                    not_before: Duration::ZERO,
                },
                marks: said.marks,
                recovered: said.recovered,
            },
            attempts: said.attempts,
            gone: said.gone,
            wait: said.wait,
            save: true,
            then,
        }
    }

    /// Writes a turn; `None` when the lease is another.
    pub(super) async fn write(&self, turn: Turn) -> Option<Page> {
        self.outbox.turn(self.webhook_id, turn).await.unwrap()
    }

    /// Writes this down, and goes on.
    pub(super) async fn say(&mut self, said: Said) -> Option<Page> {
        let turn = self.turn(said, Then::Keep(None));
        self.write(turn).await
    }

    /// Reads, and writes nothing.
    pub(super) async fn read(&mut self, want: Want) -> Option<Page> {
        let turn = Turn {
            save: false,
            ..self.turn(Said::default(), Then::Keep(Some(want)))
        };
        self.write(turn).await
    }

    /// The numbers of what is read.
    pub(super) async fn numbers(&mut self, want: Want) -> Vec<i64> {
        let page = self.read(want).await.expect("it has the lease");
        numbers(&page)
    }

    /// Gives the endpoint back.
    pub(super) async fn release(mut self, said: Said) {
        let turn = self.turn(said, Then::Release);
        self.write(turn).await.expect("it has the lease");
    }
}

impl Said {
    /// An attempt to deliver this event of the order was not taken: it is tried again after so long.
    pub(super) fn failed(order: u32, number: i64, attempts: u32, again_in: Duration) -> Self {
        Self {
            cursor: number,
            failures: attempts,
            marks: vec![mark(order, number, attempts, Fate::Again(HOUR + again_in))],
            attempts: vec![(number, attempt(500, attempts))],
            ..Self::default()
        }
    }

    /// And these of the order wait behind it.
    pub(super) fn behind(mut self, order: u32, numbers: &[i64]) -> Self {
        let behind = numbers.iter().map(|number| mark(order, *number, 0, Fate::Behind));
        self.marks.extend(behind);
        self.cursor = self.cursor.max(numbers.iter().copied().max().unwrap_or_default());
        self
    }

    /// It fails, and nothing is tried for so long.
    pub(super) fn failing(mut self, wait: Duration) -> Self {
        self.failures = FAILING_AFTER;
        self.wait = Some(wait);
        self
    }

    /// A delivery that has a row was taken.
    pub(super) fn taken(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            marks: vec![mark(order, number, 1, Fate::Delivered)],
            attempts: vec![(number, attempt(204, 9))],
            ..Self::default()
        }
    }

    /// The time of a delivery is over, and it was not tried.
    pub(super) fn given_up(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            failures: 1,
            marks: vec![mark(order, number, 0, Fate::Failed)],
            ..Self::default()
        }
    }

    /// All of it is of what had been replayed so often when it was read.
    pub(super) fn of_replay(mut self, replays: u32) -> Self {
        self.marks.iter_mut().for_each(|mark| mark.replays = replays);
        self
    }

    /// Everything up to here was taken at once.
    pub(super) fn seen_to(cursor: i64) -> Self {
        Self {
            cursor,
            ..Self::default()
        }
    }
}

pub(super) fn mark(order: u32, number: i64, attempts: u32, fate: Fate) -> Mark {
    Mark {
        number,
        order_id: order_id(order),
        attempts,
        replays: 0,
        fate,
    }
}

/// What was answered to an attempt, which began so many minutes after all began.
pub(super) fn attempt(status: u16, minutes: u32) -> Attempt {
    Attempt {
        at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(60) * minutes,
        latency_ms: 3,
        status: Some(status),
        fault: None,
        answer: "heard".to_owned(),
    }
}

pub(super) fn numbers(page: &Page) -> Vec<i64> {
    page.pending.iter().map(|pending| pending.letter.number).collect()
}
