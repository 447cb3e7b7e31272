//! Conformance subject over the in-memory outbox.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::WebhookId;

use super::MemoryOutbox;
use super::tables::{RowState as Kept, Tables};
use crate::outbox::{EndpointStatus, OutboxSubject, Row, RowState, order_id};

impl OutboxSubject for MemoryOutbox {
    fn webhook_id(&self) -> WebhookId {
        self.webhook_id
    }

    async fn start(&self, node: &str) -> Arc<dyn Outbox> {
        Arc::new(self.for_node(node))
    }

    async fn commit(&self, order: u32) -> i64 {
        Self::commit(self, order)
    }

    /// Time is paused: sleeping advances it.
    async fn advance_time(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    async fn replay(&self, numbers: RangeInclusive<i64>) {
        Self::replay(self, numbers);
    }

    async fn set_enabled(&self, on: bool) {
        self.tables.lock().unwrap().set_enabled(on);
    }

    async fn set_event_kinds(&self, kinds: EventKinds) {
        let mut tables = self.tables.lock().unwrap();
        tables.kinds = kinds;
        tables.revoke_lease();
    }

    async fn rotate_secret(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.previous = Some(tables.secret);
        tables.secret += 1;
        tables.revoke_lease();
    }

    async fn enable(&self) {
        self.tables.lock().unwrap().set_enabled(true);
    }

    async fn remove(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.removed = true;
        tables.rows.clear();
    }

    async fn forget_last_lease(&self) {
        self.tables.lock().unwrap().forget_last_lease();
    }

    async fn row(&self, number: i64) -> Option<Row> {
        let row = self.tables.lock().unwrap().rows.get(&number).cloned()?;
        Some(Row {
            state: match row.state {
                Kept::Waiting(_) => RowState::Waiting,
                Kept::Blocked => RowState::Blocked,
                Kept::Delivered => RowState::Delivered,
                Kept::Failed => RowState::Failed,
            },
            attempts: row.attempts,
            log: row.log,
        })
    }

    async fn status(&self) -> Option<EndpointStatus> {
        let tables = self.tables.lock().unwrap();
        (!tables.removed).then_some(EndpointStatus {
            cursor: tables.cursor,
            failures: tables.failures,
            delivered: tables.delivered,
            refused: tables.refused,
            enabled: !tables.disabled,
        })
    }

    async fn violations(&self) -> Vec<String> {
        self.tables.lock().unwrap().violations()
    }
}

impl Tables {
    fn set_enabled(&mut self, on: bool) {
        if on && self.disabled {
            let cutoff = Instant::now().checked_sub(RETRY_WINDOW);
            let expired = self.events.iter();
            let expired = expired.take_while(|event| cutoff.is_some_and(|cutoff| event.at < cutoff));
            self.cursor = self.cursor.max(i64::try_from(expired.count()).unwrap());
        }
        self.disabled = !on;
        self.revoke_lease();
    }

    /// The checks of `vouchsafe verify` that apply to these rows.
    fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.cursor > self.newest() {
            found.push(format!("the cursor is at {}", self.cursor));
        }
        if self.due_at.is_none() && self.rows.values().any(|row| row.state.is_waiting()) {
            found.push("deliveries wait, but the endpoint is not due".to_owned());
        }
        if (self.failures > 0) != (self.step > 0) {
            found.push(format!("{} failures, step {}", self.failures, self.step));
        }
        for (number, row) in &self.rows {
            let mut earlier = self.rows.range(..number);
            let has_waiting_predecessor =
                earlier.any(|(_, other)| other.order == row.order && other.state.is_waiting());
            if row.state.is_waiting() && has_waiting_predecessor != (row.state == Kept::Blocked) {
                found.push(format!("{number} of {} is {:?}", order_id(row.order), row.state));
            }
            if row.state == Kept::Failed && row.expires_at > Instant::now() {
                found.push(format!("{number} failed before its expiry"));
            }
        }
        found
    }
}
