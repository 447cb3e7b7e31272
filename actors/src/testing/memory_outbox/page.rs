//! What is read of that outbox: rows that are due, or all that wait, and events past what was read, in their order.

use std::sync::Arc;

use tokio::time::Instant;

use super::order_id;
use super::tables::{Row, RowState, Tables};
use crate::delivery::outbox::{Page, Pending};
use crate::delivery::queue::Want;
use crate::delivery::schedule::TRIED_FOR;
use crate::domain::delivery::{Letter, Told};
use crate::domain::event::{EventBundle, Step};
use crate::domain::money::Amount;
use crate::domain::order::OrderStatus;
use crate::testing::build;

/// How many events and rows a page of these tests has.
const PAGE: usize = 64;

impl Tables {
    pub(super) fn page(&self, want: Want) -> Page {
        let now = Instant::now();
        let (Want::Due { after, .. } | Want::Oldest { after }) = want;
        let rows = self.rows.range(..=after);
        let due = rows.filter_map(|(number, row)| self.due_row(*number, row, want));
        let mut page = Page {
            pending: due.take(PAGE).collect(),
            read_to: after,
            more: false,
            next_due_in: self.next_due(now).map(|due| due - now),
        };
        let mut room = match want {
            Want::Due { most, .. } => most.min(PAGE),
            Want::Oldest { .. } => PAGE - page.pending.len(),
        };
        for number in after + 1..=self.newest() {
            let pending = match self.rows.get(&number) {
                Some(row) => self.due_row(number, row, want),
                None => self.new_event(number),
            };
            if room == 0 && pending.is_some() {
                page.more = true;
                break;
            }
            room -= usize::from(pending.is_some());
            page.pending.extend(pending);
            page.read_to = number;
        }
        page
    }

    fn due_row(&self, number: i64, row: &Row, want: Want) -> Option<Pending> {
        let now = Instant::now();
        let due = match (row.state, want) {
            (RowState::Waiting(due), Want::Oldest { .. }) => due,
            (RowState::Waiting(due), Want::Due { .. }) if due <= now => due,
            (RowState::Behind, Want::Oldest { .. }) => now,
            _ => return None,
        };
        Some(Pending {
            attempts: row.attempts,
            replays: row.replays,
            stored: true,
            behind: false,
            due_in: until(due),
            ends_in: until(row.ends),
            ..self.pending(number)
        })
    }

    /// An event that has no row, if it is asked for.
    fn new_event(&self, number: i64) -> Option<Pending> {
        let pending = self.pending(number);
        let kind = pending.letter.told.kind(number)?;
        self.kinds.contains(kind).then_some(pending)
    }

    fn pending(&self, number: i64) -> Pending {
        let event = self.event(number);
        let mut before = self.rows.range(..number);
        Pending {
            letter: Letter {
                told: Arc::new(self.told(number)),
                number,
            },
            order_id: order_id(event.order),
            attempts: 0,
            replays: 0,
            stored: false,
            behind: before.any(|(_, row)| row.order == event.order && row.state.waits()),
            due_in: time::Duration::ZERO,
            ends_in: until(event.at + TRIED_FOR),
        }
    }

    fn next_due(&self, now: Instant) -> Option<Instant> {
        let later = |row: &Row| match row.state {
            RowState::Waiting(due) if due > now => Some(due),
            _ => None,
        };
        self.rows.values().filter_map(later).min()
    }

    /// The first event of an order says that it was created, the others that it is processed.
    fn told(&self, number: i64) -> Told {
        let event = self.event(number);
        Told {
            partner_id: build::partner(1),
            number,
            bundle: bundle(event.order, event.sequence),
            created_at: build::NOW,
        }
    }
}

/// One event of an order.
#[must_use]
pub fn bundle(order: u32, first_sequence: u32) -> EventBundle {
    let step = if first_sequence == 1 {
        Step::Created
    } else {
        Step::Processing
    };
    EventBundle {
        order_id: order_id(order),
        first_sequence,
        steps: vec![step],
        status: OrderStatus::Pending,
        total: Amount::from_minor(100),
        currency: build::usd(),
        fulfilled_from: None,
        pending_reason: None,
        lines: Vec::new(),
        vouchers: Vec::new(),
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
