//! Batches: the records of one commit with their completions, and the splitting of a rejected batch.

use tokio::time::Instant;
use tracing::Span;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::order::trace::to_micros;

use super::submission::{Completion, RecordOutcome, Submission};
use crate::ports::record::{Record, Verdict};

/// Maximum number of records in a batch. Beyond some 500 the time per record no longer falls (it is flat from
/// 256), and latency grows.
pub const MAX_BATCH_RECORDS: usize = 512;

/// Maximum number of voucher rows in a batch: bounds the statement's memory and its time where orders are
/// large.
pub const MAX_BATCH_VOUCHERS: usize = 4_096;

/// Maximum number of parts of a split batch: the square root of [`MAX_BATCH_RECORDS`], so that two splits
/// reduce a full batch to single records. Each split may cost a lock timeout, and each written part costs a
/// commit.
const MAX_PARTS: usize = 23;

/// The records of one commit and their completions.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<Record>,
    completions: Vec<Completion>,
    voucher_count: usize,
}

impl Batch {
    pub(super) fn push(&mut self, submission: Submission) {
        self.voucher_count += submission.record.voucher_count();
        self.records.push(submission.record);
        self.completions.push(submission.completion);
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The partners whose events were committed.
    pub(super) fn partners_with_events(&self, verdicts: &[Verdict]) -> impl Iterator<Item = PartnerId> {
        let records =
            self.records.iter().zip(verdicts).filter(|(record, verdict)| {
                record.events.is_some() && matches!(verdict, Verdict::Committed(_))
            });
        records.map(|(record, _)| record.partner_id)
    }

    /// Ends the wait of the records in the queue: the lane sends them now.
    pub(super) fn finish_queueing(&mut self, now: Instant) {
        for (record, completion) in self.records.iter_mut().zip(&self.completions) {
            if let Some(trace) = record.order.as_mut().and_then(|order| order.trace.as_mut()) {
                trace.queue_us = to_micros(now.saturating_duration_since(completion.submitted_at));
            }
        }
    }

    /// The span of the request of a record.
    pub(super) fn span_of(&self, index: usize) -> &Span {
        &self.completions[index].span
    }

    /// Log lines about a batch of one record belong to that record's request.
    pub(super) fn span(&self) -> Span {
        match &self.completions[..] {
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

    pub(super) fn has_room_for(&self, submission: &Submission) -> bool {
        let vouchers = self.voucher_count + submission.record.voucher_count();
        self.records.is_empty() || vouchers <= MAX_BATCH_VOUCHERS
    }

    /// Splits the batch into parts of nearly equal size.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let size = self.len().div_ceil(MAX_PARTS);
        let mut submissions: Vec<Submission> = self.into_submissions().collect();
        // Conflicts are mostly about rows of one partner: sorted, few parts contain them.
        submissions.sort_by_key(|submission| submission.record.partner_id);
        let mut submissions = submissions.into_iter();
        let part = move || Some(Self::of(submissions.by_ref().take(size)));
        std::iter::from_fn(part).take_while(|part| part.len() > 0)
    }

    /// Drops records whose flows have stopped waiting: they are certainly not written, and their clients were
    /// told to retry.
    pub(super) fn drop_abandoned(self) -> Self {
        let (abandoned, remaining): (Vec<_>, Vec<_>) = self
            .into_submissions()
            .partition(|submission| submission.completion.is_abandoned());
        abandoned
            .into_iter()
            .for_each(|submission| submission.completion.abort(RecordOutcome::Busy));
        Self::of(remaining)
    }

    /// Delivers the verdicts of batch `number` to its records.
    pub(super) fn settle(self, number: i64, verdicts: Vec<Verdict>) {
        assert_eq!(
            self.len(),
            verdicts.len(),
            "the store must return one verdict per record"
        );
        // Signed: trace attributes are.
        let records = i64::try_from(self.len()).unwrap_or(i64::MAX);
        for (submission, verdict) in self.into_submissions().zip(verdicts) {
            submission.completion.record_batch(number, records);
            submission.completion.settle(submission.record, verdict);
        }
    }

    pub(super) fn abort(self, outcome: fn() -> RecordOutcome) {
        self.completions
            .into_iter()
            .for_each(|open| open.abort(outcome()));
    }

    fn of(submissions: impl IntoIterator<Item = Submission>) -> Self {
        let mut batch = Self::default();
        submissions
            .into_iter()
            .for_each(|submission| batch.push(submission));
        batch
    }

    fn into_submissions(self) -> impl Iterator<Item = Submission> {
        let submissions = self.records.into_iter().zip(self.completions);
        submissions.map(|(record, open)| Submission {
            record,
            completion: open,
        })
    }
}
