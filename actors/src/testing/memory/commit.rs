//! The batch statement: the stages that a batch goes through, each verifying what was decided in memory.
//!
//! Rule: nothing is written before all of it was verified and all its locks are held; a record that is refused leaves
//! nothing behind, and the others of its batch do not notice.
//!
//! | Stage | Locks | Refuses |
//! |---|---|---|
//! | fence | lane | the batch: the lane's generation is another |
//! | poison | | the batch: a text that no table takes |
//! | keys | keys | the batch: one key twice; a record whose key is known |
//! | orders | orders, payouts | a record whose order or payout moved on, or whose voucher was read before it comes back |
//! | wallets | wallets | a record whose debit is not covered |
//! | chunks | chunks, shared | a record whose vouchers are another's |
//! | vouchers | vouchers | a record whose voucher is taken |
//! | duplicates | | the batch: an order or an entry of the ledger that is there already |
//! | numbers | event numbers | |

mod verify;
mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use self::verify::{duplicate, has_poison, is_own, known, moved, taken, uncovered};
use self::write::{leave_behind, write_record};
use super::MemoryDatabase;
use super::guard::Guard;
use super::lock::{Lock, LockTimeout, Transaction};
use super::tables::{DbTime, LaneId, Owner};
use crate::domain::ids::{OrderId, PayoutId};
use crate::domain::voucher::Shelved;
use crate::journal::{PayoutChange, Record, Stale, Verdict};
use crate::store::CommitError;

/// What a record is refused for: its wallet is short, or a voucher of it gone.
const SHORT: Stale = Stale::Balance;
const GONE: Stale = Stale::Stock;

/// Who writes a batch, in which lane, under which number.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) by: Owner,
    pub(super) lane: LaneId,
    pub(super) generation: i64,
    pub(super) batch: i64,
}

/// A batch that left for the server.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) header: Header,
    pub(super) records: Vec<Record>,
}

impl From<LockTimeout> for CommitError {
    fn from(LockTimeout: LockTimeout) -> Self {
        Self::Contended("canceling statement due to lock timeout".to_owned())
    }
}

/// Runs the statement to its end; `fsync` is how long the commit itself takes, with all locks held.
pub(super) async fn execute(
    db: &MemoryDatabase,
    header: &Header,
    records: &[Record],
    fsync: Duration,
) -> Result<Vec<Verdict>, CommitError> {
    let tx = Transaction::begin(db);
    let mut batch = Batch {
        tx,
        header,
        records,
        refused: vec![None; records.len()],
    };
    batch.fence().await?;
    batch.refuse_poison()?;
    batch.claim_keys(db).await?;
    batch.check_orders().await?;
    batch.check_wallets().await?;
    batch.check_chunks().await?;
    batch.claim_vouchers().await?;
    batch.refuse_duplicates()?;
    batch.lock_numbers().await?;
    if !fsync.is_zero() {
        tokio::time::sleep(fsync).await;
    }
    Ok(batch.write(db.now()))
}

struct Batch<'a> {
    tx: Transaction,
    header: &'a Header,
    records: &'a [Record],
    /// Why each record is refused; `None` while it stands.
    refused: Vec<Option<Verdict>>,
}

impl<'a> Batch<'a> {
    /// The records that still stand, with their places.
    fn standing(&self) -> impl Iterator<Item = (usize, &'a Record)> {
        let standing = self.records.iter().enumerate().zip(&self.refused);
        standing
            .filter(|(_, refused)| refused.is_none())
            .map(|(standing, _)| standing)
    }

    fn refuse(&mut self, places: &[usize], stale: Stale) {
        places
            .iter()
            .for_each(|place| self.refused[*place] = Some(Verdict::Stale(stale)));
    }

    async fn fence(&mut self) -> Result<(), CommitError> {
        self.tx.lock(Lock::Lane(self.header.lane.clone())).await?;
        let lane = self.header.lane.clone();
        let fenced = self.tx.read(|state| {
            let generation = state.tables.lanes.get(&lane).map(|row| row.generation);
            state.verifies(Guard::Lane) && generation != Some(self.header.generation)
        });
        if fenced { Err(CommitError::Fenced) } else { Ok(()) }
    }

    fn refuse_poison(&self) -> Result<(), CommitError> {
        if self.records.iter().any(has_poison) {
            return Err(CommitError::Poisoned(
                "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned(),
            ));
        }
        Ok(())
    }

    fn refuse_duplicates(&self) -> Result<(), CommitError> {
        let duplicate = self.tx.read(|state| duplicate(&state.tables, self.standing()));
        let refuse = |constraint| CommitError::Poisoned(format!("duplicate key value violates {constraint}"));
        duplicate.map_or(Ok(()), |constraint| Err(refuse(constraint)))
    }

    async fn claim_keys(&mut self, db: &MemoryDatabase) -> Result<(), CommitError> {
        let keys: BTreeSet<_> = self.records.iter().map(|record| record.claim.key).collect();
        for key in keys {
            self.tx.lock(Lock::Key(key)).await?;
        }
        let now = db.now();
        let known = |record: &Record| self.tx.read(|state| known(state, record, now));
        self.refused = self.records.iter().map(known).collect();
        let mut claimed = BTreeSet::new();
        if !self
            .standing()
            .all(|(_, record)| claimed.insert(record.claim.key))
        {
            let reason = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(CommitError::Poisoned(reason.to_owned()));
        }
        Ok(())
    }

    async fn check_orders(&mut self) -> Result<(), CommitError> {
        let orders: BTreeSet<_> = self
            .standing()
            .filter_map(|(_, record)| changed(record))
            .collect();
        for order_id in orders {
            self.tx.lock(Lock::Order(order_id)).await?;
        }
        let payouts: BTreeSet<_> = self
            .standing()
            .filter_map(|(_, record)| decided(record))
            .collect();
        for payout_id in payouts {
            self.tx.lock(Lock::Payout(payout_id)).await?;
        }
        let stale = self.tx.read(|state| moved(state, self.standing()));
        self.refuse(&stale, Stale::Moved);
        Ok(())
    }

    async fn check_wallets(&mut self) -> Result<(), CommitError> {
        let wallets: BTreeSet<_> = self
            .standing()
            .filter_map(|(_, record)| record.wallet())
            .collect();
        for wallet in wallets {
            self.tx.lock(Lock::Wallet(wallet)).await?;
        }
        let short = self.tx.read(|state| uncovered(state, self.standing()))?;
        self.refuse(&short, SHORT);
        Ok(())
    }

    async fn check_chunks(&mut self) -> Result<(), CommitError> {
        let chunks: BTreeSet<_> = self
            .standing()
            .flat_map(|(_, record)| held(record))
            .map(|v| v.chunk_id)
            .collect();
        if self.tx.read(|state| state.verifies(Guard::ChunkLock)) {
            for chunk_id in chunks {
                self.tx.share(Lock::Chunk(chunk_id)).await?;
            }
        }
        let foreign = |record: &Record| {
            self.tx
                .read(|state| held(record).any(|v| !is_own(state, v, &self.header.by)))
        };
        let stale: Vec<_> = self
            .standing()
            .filter(|(_, record)| foreign(record))
            .map(|(place, _)| place)
            .collect();
        self.refuse(&stale, GONE);
        Ok(())
    }

    async fn claim_vouchers(&mut self) -> Result<(), CommitError> {
        let vouchers: BTreeSet<_> = self
            .standing()
            .flat_map(|(_, record)| held(record))
            .map(|v| v.stock_id)
            .collect();
        for stock_id in vouchers {
            self.tx.lock(Lock::Voucher(stock_id)).await?;
        }
        let stale = self.tx.read(|state| taken(state, self.standing()));
        self.refuse(&stale, GONE);
        Ok(())
    }

    async fn lock_numbers(&mut self) -> Result<(), CommitError> {
        let told = self.standing().filter(|(_, record)| record.events.is_some());
        let partners: BTreeSet<_> = told.map(|(_, record)| record.partner_id).collect();
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
            refused,
        } = self;
        tx.commit(|state| {
            if state.verifies(Guard::LaneBatch) {
                state.tables.lanes.entry(header.lane.clone()).or_default().batch = header.batch;
            }
            let write = |(record, refused): (&Record, Option<Verdict>)| match refused {
                None => Verdict::Committed(write_record(&mut state.tables, record, &header.by, now)),
                Some(refused) => {
                    if matches!(refused, Verdict::Stale(_)) {
                        leave_behind(state, record, &header.by, now);
                    }
                    refused
                }
            };
            records.iter().zip(refused).map(write).collect()
        })
    }
}

fn held(record: &Record) -> impl Iterator<Item = Shelved> {
    record.issued().map(|(_, allocation)| allocation.voucher)
}

fn changed(record: &Record) -> Option<OrderId> {
    Some(record.change.as_ref()?.after.order_id)
}

fn decided(record: &Record) -> Option<PayoutId> {
    match record.payout.as_ref()? {
        PayoutChange::Decided(payout) => Some(payout.payout_id),
        PayoutChange::Requested(_) => None,
    }
}
