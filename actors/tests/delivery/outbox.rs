//! An outbox in memory: events, rows and a lease, with tokio's time for the database's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::delivery::outbox::{LEASE, Lease, Opened, Outbox, Page, Pending, Then, Turn};
use vouchsafe_actors::delivery::queue::{FAILING_AFTER, Want};
use vouchsafe_actors::delivery::schedule::TRIED_FOR;
use vouchsafe_actors::domain::delivery::{Attempt, Fate, Letter, Mark, SealedSecret, Target, Told};
use vouchsafe_actors::domain::event::{EventBundle, Step};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId, WebhookId};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::OrderStatus;
use vouchsafe_actors::store::{StoreFuture, Unavailable};
use vouchsafe_actors::testing::build;

/// How many events and rows a page of these tests has.
const PAGE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    Waiting(Instant),
    Behind,
    Delivered,
    Failed,
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) order: u32,
    pub(crate) attempts: u32,
    pub(crate) state: RowState,
    pub(crate) log: Vec<Attempt>,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    events: Vec<(u32, Instant)>,
    pub(crate) rows: BTreeMap<i64, Row>,
    pub(crate) cursor: i64,
    pub(crate) failures: u32,
    pub(crate) disabled: bool,
    step: u32,
    due_at: Option<Instant>,
    lease: i64,
    leased_until: Option<Instant>,
    /// The store answers nothing.
    pub(crate) down: bool,
}

/// The outbox, and what it has.
#[derive(Debug, Clone)]
pub(crate) struct MemoryOutbox {
    pub(crate) webhook_id: WebhookId,
    pub(crate) tables: Arc<Mutex<Tables>>,
}

impl MemoryOutbox {
    pub(crate) fn new() -> Self {
        Self {
            webhook_id: WebhookId::generate(),
            tables: Arc::default(),
        }
    }

    /// An event of this order is committed; says its number.
    pub(crate) fn commit(&self, order: u32) -> i64 {
        let mut tables = self.tables.lock().unwrap();
        tables.events.push((order, Instant::now()));
        i64::try_from(tables.events.len()).unwrap()
    }

    /// Somebody else takes the endpoint.
    pub(crate) fn steal(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.lease += 1;
        tables.leased_until = Some(Instant::now() + LEASE);
    }
}

impl Tables {
    fn take(&mut self) -> Option<Lease> {
        let now = Instant::now();
        let due = self.due_at.is_some_and(|due| due <= now + Duration::from_secs(1));
        let new = self.failures < FAILING_AFTER && self.cursor < i64::try_from(self.events.len()).unwrap();
        let free = self.leased_until.is_none_or(|until| until <= now);
        if self.disabled || !free || !(due || new) {
            return None;
        }
        self.lease += 1;
        self.leased_until = Some(now + LEASE);
        Some(Lease(self.lease))
    }

    fn mark(&mut self, mark: Mark, now: Duration) {
        let order = self.events[usize::try_from(mark.number).unwrap() - 1].0;
        let row = self.rows.entry(mark.number).or_insert(Row {
            order,
            attempts: 0,
            state: RowState::Behind,
            log: Vec::new(),
        });
        row.attempts = mark.attempts;
        row.state = match mark.fate {
            Fate::Delivered => RowState::Delivered,
            Fate::Again(at) => RowState::Waiting(Instant::now() + at.saturating_sub(now)),
            Fate::Behind => RowState::Behind,
            Fate::Failed => RowState::Failed,
        };
        if matches!(mark.fate, Fate::Delivered | Fate::Failed) {
            self.promote(order);
        }
    }

    /// The first of an order that waits is due, if none before it is under way.
    fn promote(&mut self, order: u32) {
        let waits = |row: &&mut Row| {
            row.order == order && !matches!(row.state, RowState::Delivered | RowState::Failed)
        };
        if let Some(row) = self.rows.values_mut().find(waits)
            && row.state == RowState::Behind
        {
            row.state = RowState::Waiting(Instant::now());
        }
    }

    fn page(&self, want: Want) -> Page {
        let now = Instant::now();
        let row = |(number, row): (&i64, &Row)| {
            let due = match row.state {
                RowState::Waiting(due) => due,
                RowState::Behind if matches!(want, Want::Oldest { .. }) => now,
                _ => return None,
            };
            Some(self.pending(*number, row.attempts, true, Some(due)))
        };
        let due_now =
            |pending: &Pending| matches!(want, Want::Oldest { .. }) || !pending.due_in.is_positive();
        let mut pending: Vec<_> = self
            .rows
            .iter()
            .filter_map(row)
            .filter(due_now)
            .take(PAGE)
            .collect();
        let (after, most) = match want {
            Want::Due { after, most } => (after, most.min(PAGE)),
            Want::Oldest { after } => (after, PAGE - pending.len()),
        };
        let newest = i64::try_from(self.events.len()).unwrap();
        let read_to = newest.min(after + i64::try_from(most).unwrap());
        let events = (after + 1..=read_to).filter(|number| !self.rows.contains_key(number));
        pending.extend(events.map(|number| self.pending(number, 0, false, None)));
        let next_due = self.rows.values().filter_map(|row| match row.state {
            RowState::Waiting(due) if due > now => Some(due - now),
            _ => None,
        });
        Page {
            pending,
            read_to: read_to.max(after),
            more: read_to < newest,
            next_due_in: next_due.min(),
        }
    }

    fn pending(&self, number: i64, attempts: u32, stored: bool, due: Option<Instant>) -> Pending {
        let (order, at) = self.events[usize::try_from(number).unwrap() - 1];
        let letter = Letter {
            told: Arc::new(told(number, order)),
            number,
        };
        let waits = |(other, row): (&i64, &Row)| {
            *other < number
                && row.order == order
                && matches!(row.state, RowState::Waiting(_) | RowState::Behind)
        };
        Pending {
            order_id: letter.told.bundle.order_id,
            letter,
            attempts,
            stored,
            behind: self.rows.iter().any(waits),
            due_in: due.map_or(time::Duration::ZERO, until),
            ends_in: until(at + TRIED_FOR),
        }
    }
}

fn until(at: Instant) -> time::Duration {
    let now = Instant::now();
    if at >= now {
        time::Duration::try_from(at - now).unwrap()
    } else {
        -time::Duration::try_from(now - at).unwrap()
    }
}

fn told(number: i64, order: u32) -> Told {
    Told {
        partner_id: build::partner(1),
        number,
        bundle: EventBundle {
            order_id: order_id(order),
            first_sequence: 1,
            steps: vec![Step::Created],
            status: OrderStatus::Pending,
            total: Amount::from_minor(100),
            currency: build::usd(),
            fulfilled_from: None,
            pending_reason: None,
            lines: Vec::new(),
            vouchers: Vec::new(),
        },
        created_at: build::NOW,
    }
}

pub(crate) fn order_id(order: u32) -> OrderId {
    OrderId::from_uuid(uuid::Uuid::from_u128(order.into()))
}

impl Outbox for MemoryOutbox {
    fn take(&self, _: WebhookId) -> StoreFuture<'_, Result<Option<Opened>, Unavailable>> {
        Box::pin(async move {
            let mut tables = self.tables.lock().unwrap();
            if tables.down {
                return Err(Unavailable("down".to_owned()));
            }
            let lease = tables.take();
            Ok(lease.map(|lease| Opened {
                lease,
                target: Arc::new(Target {
                    partner_id: PartnerId::from_uuid(uuid::Uuid::nil()),
                    webhook_id: self.webhook_id,
                    url: "http://127.0.0.1/".to_owned(),
                    secret: SealedSecret(Arc::from([])),
                    previous: None,
                }),
                cursor: tables.cursor,
                failures: tables.failures,
                step: tables.step,
                wait: tables.due_at.map_or(Duration::ZERO, |due| due - Instant::now()),
            }))
        })
    }

    fn turn(&self, _: WebhookId, turn: Turn) -> StoreFuture<'_, Result<Option<Page>, Unavailable>> {
        Box::pin(async move {
            let mut tables = self.tables.lock().unwrap();
            if tables.down {
                return Err(Unavailable("down".to_owned()));
            }
            if tables.lease != turn.lease.0 {
                return Ok(None);
            }
            if !turn.writes() {
                let want = match turn.then {
                    Then::Keep(want) => want,
                    Then::Release => None,
                };
                return Ok(Some(want.map(|want| tables.page(want)).unwrap_or_default()));
            }
            tables.cursor = turn.changes.cursor;
            tables.failures = turn.changes.health.failures;
            tables.step = turn.changes.health.step;
            tables.disabled |= turn.gone;
            for mark in &turn.changes.marks {
                tables.mark(*mark, turn.now);
            }
            for (number, attempt) in turn.attempts {
                if let Some(row) = tables.rows.get_mut(&number) {
                    row.log.push(attempt);
                }
            }
            if turn.changes.recovered {
                for row in tables.rows.values_mut() {
                    if let RowState::Waiting(due) = &mut row.state {
                        *due = (*due).min(Instant::now());
                    }
                }
            }
            let rows = tables.rows.values().filter_map(|row| match row.state {
                RowState::Waiting(due) => Some(due),
                _ => None,
            });
            tables.due_at = turn.wait.map(|wait| Instant::now() + wait).or(rows.min());
            Ok(Some(match turn.then {
                Then::Keep(want) => {
                    tables.leased_until = Some(Instant::now() + LEASE);
                    want.map(|want| tables.page(want)).unwrap_or_default()
                }
                Then::Release => {
                    tables.leased_until = None;
                    Page::default()
                }
            }))
        })
    }
}
