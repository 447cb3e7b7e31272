//! Operations outside the lanes: node starts, imports, voids, top-ups, ageing, restore.
//!
//! Operations on rows that a batch may lock wait for the lock, as any transaction would.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{OrderId, StockId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::MemoryDatabase;
use super::batch::SentBatch;
use super::lock::{Lock, LockMode};
use super::reservations::insert_chunk;
use super::store::MemoryStore;
use super::tables::{AllocationRow, KeyRow, NodeRow, Owner, Tables};
use super::transaction::Transaction;
use crate::build;
use crate::rows::Holder;

/// Lease of a started node. It is not renewed; a test expires it explicitly.
const LEASE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The rows of a lagging replica.
#[derive(Debug)]
pub struct Backup(Tables);

impl MemoryDatabase {
    /// Starts a node. Opening its lanes fences the batches of earlier incarnations, lane by lane.
    #[must_use]
    pub fn start_node(&self, node: &str) -> MemoryStore {
        let node: Arc<str> = Arc::from(node);
        let renewed_at = self.now();
        let lease_until = renewed_at.after(LEASE);
        let incarnation = self.with(|state| {
            let row = state.tables.nodes.entry(node.clone()).or_insert(NodeRow {
                incarnation: 0,
                renewed_at,
                lease_until,
            });
            *row = NodeRow {
                incarnation: row.incarnation + 1,
                renewed_at,
                lease_until,
            };
            row.incarnation
        });
        MemoryStore::new(self, Owner { node, incarnation })
    }

    /// Expires the node's lease, as if the node had been paused.
    pub fn expire_lease(&self, node: &str) {
        let now = self.now();
        self.with(|state| {
            if let Some(row) = state.tables.nodes.get_mut(node) {
                row.lease_until = now;
            }
        });
    }

    /// Makes the node's last renewal one by a clock that was this much fast.
    pub fn advance_lease(&self, node: &str, by: Duration) {
        self.with(|state| {
            if let Some(row) = state.tables.nodes.get_mut(node) {
                row.renewed_at = row.renewed_at.after(by);
                row.lease_until = row.lease_until.after(by);
            }
        });
    }

    /// Imports vouchers with these expiries, in unclaimed chunks of at most `chunk_size`.
    pub fn add_stock(&self, sku: &Sku, expiries: &[Expiry], chunk_size: usize) -> Vec<StockVoucher> {
        self.with(|state| {
            let chunks = expiries.chunks(chunk_size);
            chunks
                .flat_map(|expiries| add_chunk(&mut state.tables, sku, expiries))
                .collect()
        })
    }

    /// Imports vouchers as one chunk reserved for a purchase.
    pub fn add_reserved_stock(&self, sku: &Sku, expiries: &[Expiry], purchase: Uuid) {
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

    /// Reserves the chunks of these vouchers for a purchase, or releases the reservation.
    pub fn reserve_for(&self, vouchers: &[StockVoucher], purchase: Option<Uuid>) {
        self.with(|state| {
            for voucher in vouchers {
                let chunk = state.tables.chunks.get_mut(&voucher.chunk_id);
                chunk.expect("the voucher's chunk exists").purchase = purchase;
            }
        });
    }

    /// Releases the stock reserved for a purchase.
    pub fn release_reservation(&self, purchase: Uuid) {
        self.with(|state| {
            let chunks = state.tables.chunks.values_mut();
            chunks
                .filter(|chunk| chunk.purchase == Some(purchase))
                .for_each(|chunk| chunk.purchase = None);
        });
    }

    /// Voids a voucher if it is free; returns whether it was.
    pub async fn void(&self, stock_id: StockId) -> bool {
        let other = self.begin_void(stock_id).await;
        let free = self.with(|state| !state.tables.allocations.contains_key(&stock_id));
        if free {
            other.commit();
        }
        free
    }

    /// Retrieves the codes of an order; returns whether it held any vouchers.
    pub async fn retrieve(&self, order_id: OrderId) -> bool {
        let tx = self.begin_with_lock(Lock::Order(order_id)).await;
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

    /// Credits a wallet, which is created if it does not exist.
    pub async fn top_up(&self, wallet: WalletKey, amount: Amount) {
        let tx = self.begin_with_lock(Lock::Wallet(wallet)).await;
        tx.commit(|state| {
            let number = state.tables.newest(&wallet).sequence;
            let name = format!("{}/{}/{number}", wallet.partner_id, wallet.currency);
            state
                .tables
                .post(wallet, &build::top_up_movement(wallet, &name, amount))
        });
    }

    /// Ages a key; one without expiry does not change.
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

    /// Begins another transaction that has inserted a key.
    pub async fn begin_insert_key(&self, key: KeyHash, known: StoredResponse) -> OtherTransaction {
        self.begin_write(Lock::Key(key), PendingWrite::Key(key, known))
            .await
    }

    /// Begins another transaction that has voided a voucher.
    pub async fn begin_void(&self, stock_id: StockId) -> OtherTransaction {
        self.begin_write(Lock::Voucher(stock_id), PendingWrite::Void(stock_id))
            .await
    }

    async fn begin_write(&self, lock: Lock, write: PendingWrite) -> OtherTransaction {
        let tx = self.begin_with_lock(lock).await;
        OtherTransaction { tx, write }
    }

    /// Begins a transaction that holds this lock, retrying after lock timeouts.
    async fn begin_with_lock(&self, lock: Lock) -> Transaction {
        loop {
            let mut tx = Transaction::begin(self);
            if tx.lock(lock.clone(), LockMode::Exclusive).await.is_ok() {
                return tx;
            }
        }
    }

    /// A copy of all committed rows.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.with(|state| state.tables.clone()))
    }

    /// Restores a copy, like a failover to a lagging replica: later commits are lost. No transaction may be
    /// open.
    pub fn restore(&self, backup: &Backup) {
        self.with(|state| {
            state.tables = backup.0.clone();
            state.discontinuities += 1;
        });
    }

    /// Removes and returns delayed batches that match, in the order of sending.
    pub(super) fn take_delayed_batches(&self, matches: impl Fn(&SentBatch) -> bool) -> Vec<SentBatch> {
        let mut faults = self.faults();
        let (arriving, staying): (Vec<_>, Vec<_>) = faults.delayed.drain(..).partition(matches);
        faults.delayed.extend(staying);
        arriving
    }
}

/// An open transaction of another session; rolled back when dropped.
pub struct OtherTransaction {
    tx: Transaction,
    write: PendingWrite,
}

enum PendingWrite {
    Key(KeyHash, StoredResponse),
    Void(StockId),
}

impl OtherTransaction {
    pub fn commit(self) {
        let Self { tx, write } = self;
        tx.commit(|state| match write {
            PendingWrite::Key(key, known) => {
                state.tables.keys.insert(
                    key,
                    KeyRow {
                        known,
                        expires_at: None,
                        order_id: None,
                    },
                );
            }
            PendingWrite::Void(stock_id) => insert_void(&mut state.tables, stock_id),
        });
    }

    pub fn rollback(self) {
        drop(self);
    }
}

fn insert_void(tables: &mut Tables, stock_id: StockId) {
    let row = AllocationRow {
        holder: Holder::Void,
        committed_by: None,
        chunk_owner: None,
        returned: false,
    };
    tables.allocations.entry(stock_id).or_default().push(row);
}

fn add_chunk(tables: &mut Tables, sku: &Sku, expiries: &[Expiry]) -> Vec<StockVoucher> {
    let stock_ids = tables.allocate_stock_ids(expiries.len());
    let stock = expiries.iter().zip(stock_ids);
    insert_chunk(
        tables,
        sku,
        stock.map(|(expiry, stock_id)| (stock_id, *expiry, stock_id)),
    )
}
