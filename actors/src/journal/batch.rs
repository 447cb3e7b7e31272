//! The records of one commit, with what waits for each; and how a batch that cannot be written falls into parts.

use tracing::Span;

use super::entry::{Entry, Open, Outcome};
use super::record::{Record, Verdict};
use crate::domain::ids::PartnerId;

/// Most records of a batch. Beyond some 500 the time per record no longer falls (it is flat from 256), and latency grows.
pub const MAX_BATCH_RECORDS: usize = 512;

/// Most voucher rows of a batch: bounds the statement's memory and its time where orders are large.
pub const MAX_BATCH_VOUCHERS: usize = 4_096;

/// Into how many parts a batch falls: the root of [`MAX_BATCH_RECORDS`], so that a full one is down to single records after
/// two times. Each time may cost the wait for a lock, and a part that is written costs a commit.
const PARTS: usize = 23;

/// The records of one commit, with what waits for each.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<Record>,
    open: Vec<Open>,
    vouchers: usize,
}

impl Batch {
    pub(super) fn push(&mut self, entry: Entry) {
        self.vouchers += entry.record.vouchers();
        self.records.push(entry.record);
        self.open.push(entry.open);
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whose events it wrote.
    pub(super) fn told(&self, verdicts: &[Verdict]) -> impl Iterator<Item = PartnerId> {
        let told =
            self.records.iter().zip(verdicts).filter(|(record, verdict)| {
                record.events.is_some() && matches!(verdict, Verdict::Committed(_))
            });
        told.map(|(record, _)| record.partner_id)
    }

    /// What is logged about the batch belongs to a request where the batch is the record of one.
    pub(super) fn span(&self) -> Span {
        match &self.open[..] {
            [only] => only.span.clone(),
            _ => Span::none(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= MAX_BATCH_RECORDS
    }

    pub(super) fn has_room_for(&self, entry: &Entry) -> bool {
        let vouchers = self.vouchers + entry.record.vouchers();
        self.records.is_empty() || vouchers <= MAX_BATCH_VOUCHERS
    }

    /// The batch in parts of nearly one size.
    pub(super) fn parts(self) -> impl Iterator<Item = Self> {
        let size = self.len().div_ceil(PARTS);
        let mut entries: Vec<Entry> = self.entries().collect();
        // What stands in somebody's way mostly does so at the rows of its partner: so few parts have some of it.
        entries.sort_by_key(|entry| entry.record.partner_id);
        let mut entries = entries.into_iter();
        let part = move || Some(Self::of(entries.by_ref().take(size)));
        std::iter::from_fn(part).take_while(|part| part.len() > 0)
    }

    /// Drops what nobody waits for: it is certainly not written, and its client was told to come again.
    pub(super) fn forget_abandoned(self) -> Self {
        let (abandoned, kept): (Vec<_>, Vec<_>) = self.entries().partition(|entry| entry.open.abandoned());
        abandoned
            .into_iter()
            .for_each(|entry| entry.open.give_up(Outcome::Busy));
        Self::of(kept)
    }

    /// The batch with this number of its lane committed, and said this of each record.
    pub(super) fn settle(self, number: i64, verdicts: Vec<Verdict>) {
        assert_eq!(
            self.len(),
            verdicts.len(),
            "the store gives a verdict for each record"
        );
        // Signed, since numbers of traces are.
        let records = i64::try_from(self.len()).unwrap_or(i64::MAX);
        for (entry, verdict) in self.entries().zip(verdicts) {
            entry.open.was_in(number, records);
            entry.open.settle(entry.record, verdict);
        }
    }

    pub(super) fn give_up(self, outcome: fn() -> Outcome) {
        self.open.into_iter().for_each(|open| open.give_up(outcome()));
    }

    fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut batch = Self::default();
        entries.into_iter().for_each(|entry| batch.push(entry));
        batch
    }

    fn entries(self) -> impl Iterator<Item = Entry> {
        let entries = self.records.into_iter().zip(self.open);
        entries.map(|(record, open)| Entry { record, open })
    }
}
