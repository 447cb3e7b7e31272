//! That outbox, put through the conformance suite.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::tables::{RowState as Kept, Tables};
use super::{MemoryOutbox, order_id};
use crate::delivery::outbox::Outbox;
use crate::delivery::schedule::TRIED_FOR;
use crate::domain::event_kind::EventKinds;
use crate::domain::ids::WebhookId;
use crate::testing::outbox::{OutboxSubject, Row, RowState, Standing};

impl OutboxSubject for MemoryOutbox {
    fn webhook_id(&self) -> WebhookId {
        self.webhook_id
    }

    async fn start(&self, node: &str) -> Arc<dyn Outbox> {
        Arc::new(self.of(node))
    }

    async fn commit(&self, order: u32) -> i64 {
        Self::commit(self, order)
    }

    /// Time is paused: whoever sleeps moves it.
    async fn pass(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    async fn replay(&self, numbers: RangeInclusive<i64>) {
        Self::replay(self, numbers);
    }

    async fn switch(&self, on: bool) {
        self.tables.lock().unwrap().switch(on);
    }

    async fn ask_for(&self, kinds: EventKinds) {
        let mut tables = self.tables.lock().unwrap();
        tables.kinds = kinds;
        tables.recall();
    }

    async fn rotate(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.previous = Some(tables.secret);
        tables.secret += 1;
        tables.recall();
    }

    async fn enable(&self) {
        self.tables.lock().unwrap().switch(true);
    }

    async fn remove(&self) {
        let mut tables = self.tables.lock().unwrap();
        tables.removed = true;
        tables.rows.clear();
    }

    async fn forget_taking(&self) {
        self.tables.lock().unwrap().forget_taking();
    }

    async fn row(&self, number: i64) -> Option<Row> {
        let row = self.tables.lock().unwrap().rows.get(&number).cloned()?;
        Some(Row {
            state: match row.state {
                Kept::Waiting(_) => RowState::Waiting,
                Kept::Behind => RowState::Behind,
                Kept::Delivered => RowState::Delivered,
                Kept::Failed => RowState::Failed,
            },
            attempts: row.attempts,
            log: row.log,
        })
    }

    async fn standing(&self) -> Option<Standing> {
        let tables = self.tables.lock().unwrap();
        (!tables.removed).then_some(Standing {
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
    fn switch(&mut self, on: bool) {
        if on && self.disabled {
            let young = Instant::now().checked_sub(TRIED_FOR);
            let old = self.events.iter();
            let old = old.take_while(|event| young.is_some_and(|young| event.at < young));
            self.cursor = self.cursor.max(i64::try_from(old.count()).unwrap());
        }
        self.disabled = !on;
        self.recall();
    }

    /// What `vouchsafe verify` checks of rows, as far as this has them.
    fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.cursor > self.newest() {
            found.push(format!("the cursor is at {}", self.cursor));
        }
        if self.due_at.is_none() && self.rows.values().any(|row| row.state.waits()) {
            found.push("nobody looks for what waits".to_owned());
        }
        if (self.failures > 0) != (self.step > 0) {
            found.push(format!("{} failures, step {}", self.failures, self.step));
        }
        for (number, row) in &self.rows {
            let mut earlier = self.rows.range(..number);
            let waits_for = earlier.any(|(_, other)| other.order == row.order && other.state.waits());
            if row.state.waits() && waits_for != (row.state == Kept::Behind) {
                found.push(format!("{number} of {} is {:?}", order_id(row.order), row.state));
            }
            if row.state == Kept::Failed && row.ends > Instant::now() {
                found.push(format!("{number} was given up before its time"));
            }
        }
        found
    }
}
