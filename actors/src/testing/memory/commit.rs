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
//! | wallets | event numbers, wallets | a record whose debit is not covered |
//! | chunks | chunks, shared | a record whose vouchers are another's |
//! | vouchers | vouchers | a record whose voucher is taken |
//! | duplicates | | the batch: an order or an entry of the ledger that is there already |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::MemoryDatabase;
use super::guard::Guard;
use super::lock::{Lock, LockTimeout, Transaction};
use super::state::State;
use super::tables::{AllocationRow, DbTime, KeyRow, LaneId, Owner, Tables};
use crate::domain::answer::Keep;
use crate::domain::ids::StockId;
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::voucher::Shelved;
use crate::journal::{Record, Stale, Verdict};
use crate::store::CommitError;
use crate::testing::facts::Holder;

/// How long an answer is kept under a partner's key.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

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
        Self::Busy("a lock was not to be had in time".to_owned())
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
    batch.check_wallets().await?;
    batch.check_chunks().await?;
    batch.claim_vouchers().await?;
    batch.refuse_duplicates()?;
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
        if keys.len() < self.records.len() {
            let reason = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(CommitError::Poisoned(reason.to_owned()));
        }
        for key in keys {
            self.tx.lock(Lock::Key(key)).await?;
        }
        let now = db.now();
        let known = |record: &Record| self.tx.read(|state| known(state, record, now));
        self.refused = self.records.iter().map(known).collect();
        Ok(())
    }

    async fn check_wallets(&mut self) -> Result<(), CommitError> {
        let partners: BTreeSet<_> = self
            .standing()
            .filter(|(_, record)| record.events.is_some())
            .map(|(_, record)| record.partner_id)
            .collect();
        let wallets: BTreeSet<_> = self
            .standing()
            .filter_map(|(_, record)| wallet_of(record))
            .collect();
        for partner_id in partners {
            self.tx.lock(Lock::EventNumber(partner_id)).await?;
        }
        for wallet in wallets {
            self.tx.lock(Lock::Wallet(wallet)).await?;
        }
        let short = self.tx.read(|state| uncovered(state, self.standing()))?;
        self.refuse(
            &short,
            Stale {
                balance: true,
                stock: false,
            },
        );
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
        self.refuse(
            &stale,
            Stale {
                balance: false,
                stock: true,
            },
        );
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
        self.refuse(
            &stale,
            Stale {
                balance: false,
                stock: true,
            },
        );
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
            for (record, refused) in records.iter().zip(&refused) {
                match refused {
                    None => write_record(&mut state.tables, record, &header.by, now),
                    Some(Verdict::Stale(_)) => leave_behind(state, record, &header.by, now),
                    Some(_) => {}
                }
            }
            if state.verifies(Guard::LaneBatch) {
                state.tables.lanes.entry(header.lane.clone()).or_default().batch = header.batch;
            }
            let verdict = |(record, refused): (&Record, Option<Verdict>)| {
                refused.unwrap_or_else(|| Verdict::Committed(receipt(&state.tables, record)))
            };
            records.iter().zip(refused).map(verdict).collect()
        })
    }
}

/// The newest state of the wallet that the record moved money in.
pub(super) fn receipt(tables: &Tables, record: &Record) -> Option<Receipt> {
    wallet_of(record).map(|wallet| tables.newest(&wallet))
}

fn wallet_of(record: &Record) -> Option<WalletKey> {
    let movement = record.movement.as_ref()?;
    Some(WalletKey {
        partner_id: record.partner_id,
        currency: movement.currency,
    })
}

fn held(record: &Record) -> impl Iterator<Item = Shelved> {
    record
        .order
        .iter()
        .flat_map(|order| &order.vouchers)
        .map(|allocation| allocation.voucher)
}

/// Why Postgres would refuse the whole statement because of a text of this record.
fn has_poison(record: &Record) -> bool {
    let order = record.order.as_ref();
    let texts = [
        order.and_then(|order| order.reference.as_deref()),
        order.and_then(|order| order.metadata.as_deref()),
        record
            .movement
            .as_ref()
            .and_then(|movement| movement.reference.as_deref()),
    ];
    texts.into_iter().flatten().any(|text| text.contains('\0'))
}

/// Which primary key two of the rows to be written, or one of them and one that is there, share.
fn duplicate<'a>(
    tables: &Tables,
    standing: impl Iterator<Item = (usize, &'a Record)>,
) -> Option<&'static str> {
    let (mut orders, mut transactions) = (BTreeSet::new(), BTreeSet::new());
    standing.into_iter().find_map(|(_, record)| {
        let order_twice = record.order.as_ref().is_some_and(|order| {
            tables.orders.contains_key(&order.order_id) || !orders.insert(order.order_id)
        });
        let booked_twice = record.movement.as_ref().is_some_and(|movement| {
            let transaction_id = movement.transaction_id;
            tables.transactions.contains(&transaction_id) || !transactions.insert(transaction_id)
        });
        let constraints = [(order_twice, "orders_pkey"), (booked_twice, "ledger_pkey")];
        constraints
            .into_iter()
            .find(|(twice, _)| *twice)
            .map(|(_, constraint)| constraint)
    })
}

/// The stored answer, if the record's key is known and its time is not over.
fn known(state: &State, record: &Record, now: DbTime) -> Option<Verdict> {
    let row = state
        .tables
        .keys
        .get(&record.claim.key)
        .filter(|_| state.verifies(Guard::Key))?;
    let over = match row.expires_at {
        Some(at) => at <= now && state.verifies(Guard::KeyExpiry),
        None => !state.verifies(Guard::KeyForever),
    };
    (!over).then(|| Verdict::KeyKnown(row.known.clone()))
}

/// The places of the records that would leave their wallet below zero, with what stood before them in the batch.
fn uncovered<'a>(
    state: &State,
    standing: impl Iterator<Item = (usize, &'a Record)>,
) -> Result<Vec<usize>, CommitError> {
    let mut balances: BTreeMap<WalletKey, Amount> = BTreeMap::new();
    let mut short = Vec::new();
    for (place, record) in standing {
        let (Some(wallet), Some(movement)) = (wallet_of(record), &record.movement) else {
            continue;
        };
        let before = balances
            .entry(wallet)
            .or_insert_with(|| state.tables.newest(&wallet).balance);
        let after = before.checked_add(movement.amount);
        let after = after.ok_or_else(|| CommitError::Poisoned("bigint out of range".to_owned()))?;
        if after < Amount::ZERO && state.verifies(Guard::Balance) {
            short.push(place);
        } else if state.verifies(Guard::RunningBalance) {
            *before = after;
        }
    }
    Ok(short)
}

fn is_own(state: &State, voucher: Shelved, by: &Owner) -> bool {
    let in_chunk = state
        .tables
        .stock
        .get(&voucher.stock_id)
        .is_some_and(|row| row.chunk_id == voucher.chunk_id);
    let owner = state
        .tables
        .chunks
        .get(&voucher.chunk_id)
        .and_then(|row| row.owner.as_ref());
    let node = owner.is_some_and(|owner| owner.node == by.node) || !state.verifies(Guard::ChunkNode);
    // Numbers of starts are counted per node: only with the node's guard do they mean anything.
    let other_node = owner.is_none_or(|owner| owner.node != by.node);
    let incarnation = other_node
        || owner.is_some_and(|owner| owner.incarnation == by.incarnation)
        || !state.verifies(Guard::ChunkIncarnation);
    in_chunk && node && incarnation
}

/// The places of the records with a voucher that somebody has, or that came before in the batch.
fn taken<'a>(state: &State, standing: impl Iterator<Item = (usize, &'a Record)>) -> Vec<usize> {
    let mut inserted = BTreeSet::new();
    let mut stale = Vec::new();
    for (place, record) in standing {
        // Every row is tried: one statement inserts the free ones even where another of the record is taken.
        let conflicts = held(record)
            .filter(|voucher| !is_free(state, voucher.stock_id) || !inserted.insert(voucher.stock_id));
        if conflicts.count() > 0 && state.verifies(Guard::Voucher) {
            stale.push(place);
        }
    }
    stale
}

fn is_free(state: &State, stock_id: StockId) -> bool {
    !state.tables.allocations.contains_key(&stock_id)
}

fn write_record(tables: &mut Tables, record: &Record, by: &Owner, now: DbTime) {
    write_key(tables, record, now);
    if let (Some(wallet), Some(movement)) = (wallet_of(record), &record.movement) {
        tables.book(wallet, movement);
    }
    if let Some(order) = &record.order {
        held(record).for_each(|voucher| allocate(tables, voucher, Holder::Order(order.order_id), by));
        tables.orders.insert(order.order_id, order.clone());
    }
    if let Some(bundle) = &record.events {
        tables.tell(record.partner_id, bundle);
    }
}

fn write_key(tables: &mut Tables, record: &Record, now: DbTime) {
    let claim = &record.claim;
    let known = crate::domain::answer::KnownAnswer {
        fingerprint: claim.fingerprint,
        answer: claim.answer.clone(),
    };
    let expires_at = match claim.keep {
        Keep::Day => Some(now.after(DAY)),
        Keep::Forever => None,
    };
    let row = KeyRow {
        known,
        expires_at,
        order_id: record.order.as_ref().map(|order| order.order_id),
    };
    let old = tables.keys.insert(claim.key, row);
    let expired = old.filter(|row| row.expires_at.is_some_and(|at| at <= now));
    tables.retired.extend(expired.map(|row| (claim.key, row)));
}

fn allocate(tables: &mut Tables, voucher: Shelved, holder: Holder, by: &Owner) {
    let owner = tables
        .chunks
        .get(&voucher.chunk_id)
        .and_then(|row| row.owner.clone());
    let row = AllocationRow {
        holder,
        by: Some(by.clone()),
        owner,
    };
    tables.allocations.entry(voucher.stock_id).or_default().push(row);
}

/// What a stale record leaves where a guard was taken away; with all guards, nothing.
fn leave_behind(state: &mut State, record: &Record, by: &Owner, now: DbTime) {
    if !state.verifies(Guard::GiveBackKey) {
        write_key(&mut state.tables, record, now);
    }
    if let Some(order) = record
        .order
        .as_ref()
        .filter(|_| !state.verifies(Guard::GiveBackVouchers))
    {
        let free: Vec<_> = held(record)
            .filter(|voucher| is_free(state, voucher.stock_id))
            .collect();
        free.into_iter()
            .for_each(|v| allocate(&mut state.tables, v, Holder::Order(order.order_id), by));
    }
}
