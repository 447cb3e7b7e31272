//! Events of a partner, numbered in commit order.

use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::ids::PartnerId;

use super::clock::DbTime;

#[derive(Debug, Clone)]
pub(super) struct EventRow {
    /// Number of the bundle's first event.
    pub(super) number: i64,
    pub(super) bundle: EventBundle,
    pub(super) at: DbTime,
}

impl EventRow {
    pub(super) fn last_number(&self) -> i64 {
        self.number + i64::from(self.bundle.count()) - 1
    }
}

/// Events of a partner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feed<'a> {
    pub(super) partner_id: PartnerId,
    pub(super) rows: &'a [EventRow],
}

impl<'a> Feed<'a> {
    /// Number of the newest event; 0 if there is none.
    pub(super) fn newest(self) -> i64 {
        self.rows.last().map_or(0, EventRow::last_number)
    }

    /// The row that contains an event.
    pub(super) fn row_of(self, number: i64) -> &'a EventRow {
        let index = self.rows.partition_point(|row| row.last_number() < number);
        self.rows.get(index).expect("the event exists")
    }
}
