//! Batch commit in stages, each of which verifies what the actors decided in memory.
//!
//! Nothing is written before everything is verified and every lock is held. A rejected record leaves no rows and does not
//! affect the other records of its batch.
//!
//! | Stage | Locks | Rejects |
//! |---|---|---|
//! | fence | lane | the batch: the lane has another generation |
//! | text | | the batch: a NUL byte |
//! | keys | keys | the batch: one key twice; a record whose key is known |
//! | orders | orders, payouts | a record whose order or payout has changed, or whose returned voucher was retrieved |
//! | wallets | wallets | a record whose debit is not covered |
//! | chunks | chunks, shared | a record whose chunk the node does not own |
//! | vouchers | vouchers | a record whose voucher is allocated |
//! | duplicates | | the batch: an order id or transaction id that exists |
//! | numbers | event numbers | |

mod verify;
mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use vouchsafe_actors::ports::record::{PayoutChange, Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::CommitError;
use vouchsafe_domain::ids::{OrderId, PayoutId};
use vouchsafe_domain::voucher::StockVoucher;

use self::verify::{
    find_allocated_vouchers, find_changed_records, find_duplicate, find_known_key, find_uncovered_debits,
    has_nul_byte, is_owned_by,
};
use self::write::{write_record, write_unreleased_claims};
use super::MemoryDatabase;
use super::batch::BatchHeader;
use super::guard::Guard;
use super::lock::{Lock, LockTimeout};
use super::tables::DbTime;
use super::transaction::Transaction;

const STALE_BALANCE: StaleReason = StaleReason::Balance;
const STALE_STOCK: StaleReason = StaleReason::Stock;

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
    batch.check_wallets().await?;
    batch.check_chunks().await?;
    batch.claim_vouchers().await?;
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

    async fn fence(&mut self) -> Result<(), CommitError> {
        self.tx.lock(Lock::Lane(self.header.lane.clone())).await?;
        let lane = self.header.lane.clone();
        let fenced = self.tx.read(|state| {
            let generation = state.tables.lanes.get(&lane).map(|row| row.generation);
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
        let keys: BTreeSet<_> = self.records.iter().map(|record| record.claim.key).collect();
        for key in keys {
            self.tx.lock(Lock::Key(key)).await?;
        }
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
        let orders: BTreeSet<_> = self
            .accepted_records()
            .filter_map(|(_, record)| changed_order_id(record))
            .collect();
        for order_id in orders {
            self.tx.lock(Lock::Order(order_id)).await?;
        }
        let payouts: BTreeSet<_> = self
            .accepted_records()
            .filter_map(|(_, record)| decided_payout_id(record))
            .collect();
        for payout_id in payouts {
            self.tx.lock(Lock::Payout(payout_id)).await?;
        }
        let stale = self
            .tx
            .read(|state| find_changed_records(state, self.accepted_records()));
        self.reject(&stale, StaleReason::StateChanged);
        Ok(())
    }

    async fn check_wallets(&mut self) -> Result<(), CommitError> {
        let wallets: BTreeSet<_> = self
            .accepted_records()
            .filter_map(|(_, record)| record.wallet())
            .collect();
        for wallet in wallets {
            self.tx.lock(Lock::Wallet(wallet)).await?;
        }
        let uncovered = self
            .tx
            .read(|state| find_uncovered_debits(state, self.accepted_records()))?;
        self.reject(&uncovered, STALE_BALANCE);
        Ok(())
    }

    async fn check_chunks(&mut self) -> Result<(), CommitError> {
        let chunks: BTreeSet<_> = self
            .accepted_records()
            .flat_map(|(_, record)| issued_vouchers(record))
            .map(|v| v.chunk_id)
            .collect();
        if self.tx.read(|state| state.has_guard(Guard::ChunkLock)) {
            for chunk_id in chunks {
                self.tx.lock_shared(Lock::Chunk(chunk_id)).await?;
            }
        }
        let owned_by_other = |record: &Record| {
            self.tx
                .read(|state| issued_vouchers(record).any(|v| !is_owned_by(state, v, &self.header.owner)))
        };
        let stale: Vec<_> = self
            .accepted_records()
            .filter(|(_, record)| owned_by_other(record))
            .map(|(index, _)| index)
            .collect();
        self.reject(&stale, STALE_STOCK);
        Ok(())
    }

    async fn claim_vouchers(&mut self) -> Result<(), CommitError> {
        let vouchers: BTreeSet<_> = self
            .accepted_records()
            .flat_map(|(_, record)| issued_vouchers(record))
            .map(|v| v.stock_id)
            .collect();
        for stock_id in vouchers {
            self.tx.lock(Lock::Voucher(stock_id)).await?;
        }
        let stale = self
            .tx
            .read(|state| find_allocated_vouchers(state, self.accepted_records()));
        self.reject(&stale, STALE_STOCK);
        Ok(())
    }

    async fn lock_event_numbers(&mut self) -> Result<(), CommitError> {
        let with_events = self
            .accepted_records()
            .filter(|(_, record)| record.events.is_some());
        let partners: BTreeSet<_> = with_events.map(|(_, record)| record.partner_id).collect();
        for partner_id in partners {
            self.tx.lock(Lock::EventNumber(partner_id)).await?;
        }
        Ok(())
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
