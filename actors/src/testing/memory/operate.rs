//! What others do to the database: nodes that start, operators that import, void and top up, time that passes.
//!
//! Rule: what touches rows that a batch may hold waits for them, as any other transaction would.

use std::sync::Arc;
use std::time::Duration;

use super::MemoryDatabase;
use super::commit::Sent;
use super::lock::{Lock, Transaction};
use super::store::MemoryStore;
use super::tables::{AllocationRow, ChunkRow, KeyRow, NodeRow, Owner, StockRow, Tables};
use super::wait::kept_for_waiting;
use uuid::Uuid;

use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::ids::{ChunkId, OrderId, StockId};
use crate::domain::ledger::WalletKey;
use crate::domain::money::Amount;
use crate::domain::product::Sku;
use crate::domain::voucher::{Expiry, Shelved};
use crate::testing::build;
use crate::testing::facts::Holder;

/// How long a start holds its lease. Nobody renews it here: a test says when it is over.
const LEASE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What a replica that lags behind has.
#[derive(Debug)]
pub struct Backup(Tables);

impl MemoryDatabase {
    /// Starts a node: whatever an earlier start of it left running is shut out, lane by lane, as they are opened.
    #[must_use]
    pub fn start_node(&self, node: &str) -> MemoryStore {
        let node: Arc<str> = Arc::from(node);
        let lease_until = self.now().after(LEASE);
        let incarnation = self.with(|state| {
            let row = state.tables.nodes.entry(node.clone()).or_insert(NodeRow {
                incarnation: 0,
                lease_until,
            });
            *row = NodeRow {
                incarnation: row.incarnation + 1,
                lease_until,
            };
            row.incarnation
        });
        MemoryStore::new(self, Owner { node, incarnation })
    }

    /// Ends the node's lease, as if it had been paused for too long.
    pub fn lapse_lease(&self, node: &str) {
        let now = self.now();
        self.with(|state| {
            if let Some(row) = state.tables.nodes.get_mut(node) {
                row.lease_until = now;
            }
        });
    }

    /// Imports vouchers with these expiries, in chunks of at most `chunk_size`; claimed by nobody.
    pub fn add_stock(&self, sku: &Sku, expiries: &[Expiry], chunk_size: usize) -> Vec<Shelved> {
        self.with(|state| {
            let chunks = expiries.chunks(chunk_size);
            chunks
                .flat_map(|expiries| add_chunk(&mut state.tables, sku, expiries))
                .collect()
        })
    }

    /// Imports vouchers that were bought and are kept for an order.
    pub fn add_bought(&self, sku: &Sku, expiries: &[Expiry], purchase: Uuid) {
        self.with(|state| {
            let shelved = add_chunk(&mut state.tables, sku, expiries);
            let chunk = shelved
                .first()
                .and_then(|voucher| state.tables.chunks.get_mut(&voucher.chunk_id));
            if let Some(chunk) = chunk {
                chunk.purchase = Some(purchase);
            }
        });
    }

    /// Keeps the chunks of these vouchers for the order of a purchase, or for nobody any more.
    pub fn keep_for(&self, vouchers: &[Shelved], purchase: Option<Uuid>) {
        self.with(|state| {
            for voucher in vouchers {
                let chunk = state.tables.chunks.get_mut(&voucher.chunk_id);
                chunk.expect("the voucher lies in a chunk").purchase = purchase;
            }
        });
    }

    /// What was bought under a purchase is kept for nobody any more.
    pub fn release_bought(&self, purchase: Uuid) {
        self.with(|state| {
            let chunks = state.tables.chunks.values_mut();
            chunks
                .filter(|chunk| chunk.purchase == Some(purchase))
                .for_each(|chunk| chunk.purchase = None);
        });
    }

    /// Takes a free voucher out; returns whether it was free.
    pub async fn void(&self, stock_id: StockId) -> bool {
        let other = self.open_void(stock_id).await;
        let free = self.with(|state| !state.tables.allocations.contains_key(&stock_id));
        if free {
            other.commit();
        }
        free
    }

    /// Reads the codes of an order: whatever it holds at that moment. Says whether it held anything.
    pub async fn retrieve(&self, order_id: OrderId) -> bool {
        let tx = self.begin_with(Lock::Order(order_id)).await;
        tx.commit(|state| {
            let order = state.tables.orders.get(&order_id).map(|row| &row.order);
            let held: Vec<_> = order
                .iter()
                .flat_map(|order| &order.vouchers)
                .map(|a| a.voucher_id)
                .collect();
            state.tables.retrieved.extend(held.iter().copied());
            !held.is_empty()
        })
    }

    /// Adds money, opening the wallet if need be.
    pub async fn top_up(&self, wallet: WalletKey, amount: Amount) {
        let tx = self.begin_with(Lock::Wallet(wallet)).await;
        tx.commit(|state| {
            let number = state.tables.newest(&wallet).sequence;
            let name = format!("{}/{}/{number}", wallet.partner_id, wallet.currency);
            state.tables.book(wallet, &build::credit(wallet, &name, amount))
        });
    }

    /// Makes a key older by so much. One that is kept for ever has no age.
    pub fn age_key(&self, key: KeyHash, by: Duration) {
        self.with(|state| {
            let expires_at = state
                .tables
                .keys
                .get_mut(&key)
                .and_then(|row| row.expires_at.as_mut());
            if let Some(at) = expires_at {
                *at = at.before(by);
            }
        });
    }

    /// Another transaction that claimed a key and stands open.
    pub async fn open_key(&self, key: KeyHash, known: KnownAnswer) -> OtherTransaction {
        self.open(Lock::Key(key), Write::Key(key, known)).await
    }

    /// Another transaction that takes a voucher out and stands open.
    pub async fn open_void(&self, stock_id: StockId) -> OtherTransaction {
        self.open(Lock::Voucher(stock_id), Write::Void(stock_id)).await
    }

    async fn open(&self, lock: Lock, write: Write) -> OtherTransaction {
        let tx = self.begin_with(lock).await;
        OtherTransaction { tx, write }
    }

    /// A transaction that holds this lock. An operator tries again until it is given.
    async fn begin_with(&self, lock: Lock) -> Transaction {
        loop {
            let mut tx = Transaction::begin(self);
            if tx.lock(lock.clone()).await.is_ok() {
                return tx;
            }
        }
    }

    /// All that is committed, to be come back to.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.with(|state| state.tables.clone()))
    }

    /// A replica that has no more than this takes over: what was committed since is lost. Nothing is under way.
    pub fn fall_back(&self, backup: &Backup) {
        self.with(|state| state.tables = backup.0.clone());
    }

    /// Statements that have not arrived yet, in the order in which they were sent.
    pub(super) fn take_late(&self, which: impl Fn(&Sent) -> bool) -> Vec<Sent> {
        let mut faults = self.faults();
        let (arriving, staying): (Vec<_>, Vec<_>) = faults.late.drain(..).partition(which);
        faults.late.extend(staying);
        arriving
    }
}

/// A transaction of somebody else that stands open. Dropped, it is rolled back.
pub struct OtherTransaction {
    tx: Transaction,
    write: Write,
}

enum Write {
    Key(KeyHash, KnownAnswer),
    Void(StockId),
}

impl OtherTransaction {
    /// Ends it with its write.
    pub fn commit(self) {
        let Self { tx, write } = self;
        tx.commit(|state| match write {
            Write::Key(key, known) => {
                state.tables.keys.insert(
                    key,
                    KeyRow {
                        known,
                        expires_at: None,
                        order_id: None,
                    },
                );
            }
            Write::Void(stock_id) => void(&mut state.tables, stock_id),
        });
    }

    /// Ends it without.
    pub fn rollback(self) {
        drop(self);
    }
}

fn void(tables: &mut Tables, stock_id: StockId) {
    let row = AllocationRow {
        holder: Holder::Void,
        by: None,
        owner: None,
        returned: false,
    };
    tables.allocations.entry(stock_id).or_default().push(row);
}

fn add_chunk(tables: &mut Tables, sku: &Sku, expiries: &[Expiry]) -> Vec<Shelved> {
    let chunk_id = ChunkId(tables.chunks.last_key_value().map_or(1, |(last, _)| last.0 + 1));
    let shelved: Vec<_> = expiries
        .iter()
        .zip(tables.number_stock(expiries.len()))
        .map(|(expiry, stock_id)| Shelved {
            expiry: *expiry,
            stock_id,
            chunk_id,
        })
        .collect();
    for voucher in &shelved {
        let row = StockRow {
            sku: sku.clone(),
            chunk_id,
            expiry: voucher.expiry,
            code: voucher.stock_id,
        };
        tables.stock.insert(voucher.stock_id, row);
    }
    let stock = shelved.iter().map(|voucher| voucher.stock_id).collect();
    let purchase = kept_for_waiting(tables, sku, chunk_id);
    tables.chunks.insert(
        chunk_id,
        ChunkRow {
            sku: sku.clone(),
            owner: None,
            emptied: false,
            purchase,
            stock,
        },
    );
    shelved
}
