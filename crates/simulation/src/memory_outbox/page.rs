//! Pages of the in-memory outbox: due or all waiting rows, and events past the cursor, by number.

use std::sync::Arc;

use tokio::time::Instant;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, PendingDelivery};
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_domain::delivery::{CommittedEvents, WebhookEvent};
use vouchsafe_domain::event::{EventBundle, EventStep};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::OrderStatus;

use super::tables::{Row, RowState, Tables};
use crate::build;
use crate::outbox::order_id;

/// Maximum events and rows of a page.
const PAGE: usize = 64;

impl Tables {
    pub(super) fn page(&self, request: ReadRequest) -> DeliveryPage {
        let now = Instant::now();
        let (ReadRequest::Due { after, .. } | ReadRequest::Oldest { after }) = request;
        let rows = self.rows.range(..=after);
        let due = rows.filter_map(|(number, row)| self.due_row(*number, row, request));
        let mut page = DeliveryPage {
            pending: due.take(PAGE).collect(),
            scanned_to: after,
            has_more: false,
            next_due_in: self.next_due(now).map(|due| due - now),
        };
        let mut remaining = match request {
            ReadRequest::Due { limit: most, .. } => most.min(PAGE),
            ReadRequest::Oldest { .. } => PAGE - page.pending.len(),
        };
        for number in after + 1..=self.newest() {
            let pending = match self.rows.get(&number) {
                Some(row) => self.due_row(number, row, request),
                None => self.event_without_row(number),
            };
            if remaining == 0 && pending.is_some() {
                page.has_more = true;
                break;
            }
            remaining -= usize::from(pending.is_some());
            page.pending.extend(pending);
            page.scanned_to = number;
        }
        page
    }

    fn due_row(&self, number: i64, row: &Row, request: ReadRequest) -> Option<PendingDelivery> {
        let now = Instant::now();
        let due = match (row.state, request) {
            (RowState::Waiting(due), ReadRequest::Oldest { .. }) => due,
            (RowState::Waiting(due), ReadRequest::Due { .. }) if due <= now => due,
            (RowState::Blocked, ReadRequest::Oldest { .. }) => now,
            _ => return None,
        };
        Some(PendingDelivery {
            attempts: row.attempts,
            replays: row.replays,
            has_row: true,
            is_blocked: false,
            due_in: time_until(due),
            give_up_in: time_until(row.expires_at),
            ..self.pending(number)
        })
    }

    /// An event without a row, if the endpoint subscribes to its kind.
    fn event_without_row(&self, number: i64) -> Option<PendingDelivery> {
        let pending = self.pending(number);
        let kind = pending.event.events.kind(number)?;
        self.kinds.contains(kind).then_some(pending)
    }

    fn pending(&self, number: i64) -> PendingDelivery {
        let event = self.event(number);
        let mut before = self.rows.range(..number);
        PendingDelivery {
            event: WebhookEvent {
                events: Arc::new(self.committed_events(number)),
                number,
            },
            order_id: order_id(event.order),
            attempts: 0,
            replays: 0,
            has_row: false,
            is_blocked: before.any(|(_, row)| row.order == event.order && row.state.is_waiting()),
            due_in: time::Duration::ZERO,
            give_up_in: time_until(event.at + RETRY_WINDOW),
        }
    }

    fn next_due(&self, now: Instant) -> Option<Instant> {
        let later = |row: &Row| match row.state {
            RowState::Waiting(due) if due > now => Some(due),
            _ => None,
        };
        self.rows.values().filter_map(later).min()
    }

    /// The first event of an order is `Created`, the others are `Processing`.
    fn committed_events(&self, number: i64) -> CommittedEvents {
        let event = self.event(number);
        CommittedEvents {
            partner_id: build::partner(1),
            first_number: number,
            bundle: bundle(event.order, event.sequence),
            created_at: build::NOW,
        }
    }
}

/// Bundle with one event of an order.
#[must_use]
pub fn bundle(order: u32, first_sequence: u32) -> EventBundle {
    let step = if first_sequence == 1 {
        EventStep::Created
    } else {
        EventStep::Processing
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

fn time_until(at: Instant) -> time::Duration {
    let now = Instant::now();
    if at >= now {
        time::Duration::try_from(at - now).unwrap()
    } else {
        -time::Duration::try_from(now - at).unwrap()
    }
}
