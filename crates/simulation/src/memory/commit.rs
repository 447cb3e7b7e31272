//! Batch commit in stages, each of which verifies what the actors decided in memory.
//!
//! Nothing is written before everything is verified and every lock is held. A rejected record leaves no rows
//! and does not affect the other records of its batch.
//!
//! | Stage | Locks | Rejects |
//! |---|---|---|
//! | fence | lane | the batch: the lane has another generation |
//! | text | | the batch: a NUL byte |
//! | keys | keys | the batch: one key twice; a record whose key is known |
//! | orders | orders, payouts | a record whose order or payout has changed, or whose returned voucher was retrieved |
//! | wallets | wallets | |
//! | chunks | chunks, shared | a record whose chunk the node does not own |
//! | vouchers | vouchers | a record whose voucher is allocated |
//! | money and caps | caps of partners | a record whose debit is not covered, or that would exceed a cap |
//! | duplicates | | the batch: an order id or transaction id that exists |
//! | numbers | event numbers | |

mod verify;
mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use vouchsafe_actors::ports::record::{PayoutChange, Record, StaleReason, Verdict};
use vouchsafe_domain::ids::{OrderId, PayoutId};
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_domain::voucher::StockVoucher;

use self::verify::{
    find_allocated_vouchers, find_duplicate, find_known_key, find_unfunded, has_changed, has_nul_byte,
    is_owned_by,
};
use self::write::{write_record, write_unreleased_claims};
use super::MemoryDatabase;
use super::batch::BatchHeader;
use super::guard::Guard;
use super::lock::{Lock, LockMode, LockTimeout};
use super::state::State;
use super::tables::DbTime;
use super::transaction::Transaction;

impl From<LockTimeout> for CommitError {
    fn from(LockTimeout: LockTimeout) -> Self {
        Self::Contended("canceling statement due to lock timeout".to_owned())
    }
}

/// Runs the statement; `fsync` is the duration of the commit itself, with all locks held.
pub(super) async fn execute(
    db: &MemoryDatabase,
    header: &BatchHeader,
    records: &[Record],
    fsync: Duration,
) -> Result<Vec<Verdict>, CommitError> {
    let tx = Transaction::begin(db);
    let mut batch = Batch {
        tx,
        header,
        records,
        rejections: vec![None; records.len()],
    };
    batch.fence().await?;
    batch.reject_invalid_text()?;
    batch.claim_keys(db).await?;
    batch.check_orders().await?;
    batch.lock_wallets().await?;
    batch.check_chunks().await?;
    batch.claim_vouchers().await?;
    batch.check_money_and_caps(db).await?;
    batch.reject_duplicates()?;
    batch.lock_event_numbers().await?;
    if !fsync.is_zero() {
        tokio::time::sleep(fsync).await;
    }
    Ok(batch.write(db.now()))
}

struct Batch<'a> {
    tx: Transaction,
    header: &'a BatchHeader,
    records: &'a [Record],
    /// Verdict of each rejected record; `None` while it is accepted.
    rejections: Vec<Option<Verdict>>,
}

impl<'a> Batch<'a> {
    /// Accepted records with their indexes.
    fn accepted_records(&self) -> impl Iterator<Item = (usize, &'a Record)> {
        let accepted = self.records.iter().enumerate().zip(&self.rejections);
        accepted
            .filter(|(_, refused)| refused.is_none())
            .map(|(accepted, _)| accepted)
    }

    fn reject(&mut self, indexes: &[usize], stale: StaleReason) {
        indexes
            .iter()
            .for_each(|index| self.rejections[*index] = Some(Verdict::Stale(stale)));
    }

    /// Rejects the accepted records that are stale.
    fn reject_if(&mut self, reason: StaleReason, is_stale: impl Fn(&State, &Record) -> bool) {
        let stale: Vec<_> = self.tx.read(|state| {
            let stale = self
                .accepted_records()
                .filter(|(_, record)| is_stale(state, record));
            stale.map(|(index, _)| index).collect()
        });
        self.reject(&stale, reason);
    }

    /// Locks rows of the accepted records, each once and in lock order.
    async fn lock_rows<I: IntoIterator<Item = Lock>>(
        &mut self,
        rows: impl Fn(&'a Record) -> I,
        mode: LockMode,
    ) -> Result<(), CommitError> {
        let locks: BTreeSet<Lock> = self
            .accepted_records()
            .flat_map(|(_, record)| rows(record))
            .collect();
        for lock in locks {
            self.tx.lock(lock, mode).await?;
        }
        Ok(())
    }

    async fn fence(&mut self) -> Result<(), CommitError> {
        let lane = &self.header.lane;
        self.tx
            .lock(Lock::Lane(lane.clone()), LockMode::Exclusive)
            .await?;
        let fenced = self.tx.read(|state| {
            let generation = state.tables.lanes.get(lane).map(|row| row.generation);
            state.has_guard(Guard::Lane) && generation != Some(self.header.generation)
        });
        if fenced { Err(CommitError::Fenced) } else { Ok(()) }
    }

    fn reject_invalid_text(&self) -> Result<(), CommitError> {
        if self.records.iter().any(has_nul_byte) {
            return Err(CommitError::Poisoned(
                "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned(),
            ));
        }
        Ok(())
    }

    fn reject_duplicates(&self) -> Result<(), CommitError> {
        let duplicate = self
            .tx
            .read(|state| find_duplicate(&state.tables, self.accepted_records()));
        let refuse = |constraint| CommitError::Poisoned(format!("duplicate key value violates {constraint}"));
        duplicate.map_or(Ok(()), |constraint| Err(refuse(constraint)))
    }

    async fn claim_keys(&mut self, db: &MemoryDatabase) -> Result<(), CommitError> {
        let key = |record: &Record| [Lock::Key(record.claim.key)];
        self.lock_rows(key, LockMode::Exclusive).await?;
        let now = db.now();
        let known = |record: &Record| self.tx.read(|state| find_known_key(state, record, now));
        self.rejections = self.records.iter().map(known).collect();
        let mut claimed = BTreeSet::new();
        if !self
            .accepted_records()
            .all(|(_, record)| claimed.insert(record.claim.key))
        {
            let reason = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(CommitError::Poisoned(reason.to_owned()));
        }
        Ok(())
    }

    async fn check_orders(&mut self) -> Result<(), CommitError> {
        let rows = |record: &Record| {
            let order = changed_order_id(record).map(Lock::Order);
            order
                .into_iter()
                .chain(decided_payout_id(record).map(Lock::Payout))
        };
        self.lock_rows(rows, LockMode::Exclusive).await?;
        self.reject_if(StaleReason::StateChanged, has_changed);
        Ok(())
    }

    async fn lock_wallets(&mut self) -> Result<(), CommitError> {
        let wallet = |record: &Record| record.wallet().map(Lock::Wallet);
        self.lock_rows(wallet, LockMode::Exclusive).await
    }

    async fn check_chunks(&mut self) -> Result<(), CommitError> {
        if self.tx.read(|state| state.has_guard(Guard::ChunkLock)) {
            let chunks = |record: &'a Record| issued_vouchers(record).map(|v| Lock::Chunk(v.chunk_id));
            self.lock_rows(chunks, LockMode::Shared).await?;
        }
        let owner = &self.header.owner;
        self.reject_if(StaleReason::Stock, |state, record| {
            issued_vouchers(record).any(|v| !is_owned_by(state, v, owner))
        });
        Ok(())
    }

    async fn claim_vouchers(&mut self) -> Result<(), CommitError> {
        let vouchers = |record: &'a Record| issued_vouchers(record).map(|v| Lock::Voucher(v.stock_id));
        self.lock_rows(vouchers, LockMode::Exclusive).await?;
        let stale = self
            .tx
            .read(|state| find_allocated_vouchers(state, self.accepted_records()));
        self.reject(&stale, StaleReason::Stock);
        Ok(())
    }

    async fn check_money_and_caps(&mut self, db: &MemoryDatabase) -> Result<(), CommitError> {
        let caps = |record: &Record| (!record.caps.is_empty()).then_some(Lock::Caps(record.partner_id));
        self.lock_rows(caps, LockMode::Exclusive).await?;
        let unfunded = self
            .tx
            .read(|state| find_unfunded(state, self.accepted_records(), db.now()))?;
        for (index, reason) in unfunded {
            self.reject(&[index], reason);
        }
        Ok(())
    }

    async fn lock_event_numbers(&mut self) -> Result<(), CommitError> {
        let number = |record: &Record| {
            let events = record.events.as_ref();
            events.map(|_| Lock::EventNumber(record.partner_id))
        };
        self.lock_rows(number, LockMode::Exclusive).await
    }

    fn write(self, now: DbTime) -> Vec<Verdict> {
        let Self {
            tx,
            header,
            records,
            rejections,
        } = self;
        tx.commit(|state| {
            if state.has_guard(Guard::LaneBatch) {
                state.tables.lanes.entry(header.lane.clone()).or_default().batch = header.batch;
            }
            let write = |(record, refused): (&Record, Option<Verdict>)| match refused {
                None => Verdict::Committed(write_record(&mut state.tables, record, &header.owner, now)),
                Some(refused) => {
                    if matches!(refused, Verdict::Stale(_)) {
                        write_unreleased_claims(state, record, &header.owner, now);
                    }
                    refused
                }
            };
            records.iter().zip(rejections).map(write).collect()
        })
    }
}

fn issued_vouchers(record: &Record) -> impl Iterator<Item = StockVoucher> {
    record.issued().map(|(_, allocation)| allocation.voucher)
}

fn changed_order_id(record: &Record) -> Option<OrderId> {
    Some(record.change.as_ref()?.after.order_id)
}

fn decided_payout_id(record: &Record) -> Option<PayoutId> {
    match record.payout.as_ref()? {
        PayoutChange::Decided(payout) => Some(payout.payout_id),
        PayoutChange::Requested(_) => None,
    }
}
