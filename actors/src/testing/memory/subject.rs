//! The database in memory, put through the conformance suite.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::MemoryDatabase;
use super::commit::execute;
use super::fault::Fault;
use super::operate::OtherTransaction;
use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::ids::{OrderId, PartnerId, StockId};
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::order::Order;
use crate::domain::product::Sku;
use crate::domain::voucher::{Expiry, Shelved};
use crate::store::Store;
use crate::testing::conformance::{self, CommitFault, Subject};
use crate::testing::facts::{Entry, Holder, Kept, Told};

impl conformance::OtherTransaction for OtherTransaction {
    async fn commit(self) {
        Self::commit(self);
    }

    async fn rollback(self) {
        Self::rollback(self);
    }
}

impl Subject for MemoryDatabase {
    type Other = OtherTransaction;

    async fn start_node(&self, node: &str) -> Arc<dyn Store> {
        Arc::new(Self::start_node(self, node))
    }

    async fn lapse_lease(&self, node: &str) {
        Self::lapse_lease(self, node);
    }

    async fn add_partner(&self, _: PartnerId) {}

    async fn add_chunk(&self, sku: &Sku, expiries: &[Expiry]) -> Vec<Shelved> {
        self.add_stock(sku, expiries, expiries.len())
    }

    async fn keep_for(&self, vouchers: &[Shelved], purchase_id: Option<Uuid>) {
        Self::keep_for(self, vouchers, purchase_id);
    }

    async fn void(&self, stock_id: StockId) {
        assert!(Self::void(self, stock_id).await, "{stock_id:?} is not free");
    }

    async fn retrieve(&self, _: PartnerId, order_id: OrderId) {
        assert!(Self::retrieve(self, order_id).await, "{order_id} holds nothing");
    }

    async fn top_up(&self, wallet: WalletKey, amount: Amount) {
        Self::top_up(self, wallet, amount).await;
    }

    async fn age_key(&self, key: KeyHash, by: Duration) {
        Self::age_key(self, key, by);
    }

    async fn open_key(&self, key: KeyHash, known: &KnownAnswer) -> OtherTransaction {
        Self::open_key(self, key, known.clone()).await
    }

    async fn open_void(&self, stock_id: StockId) -> OtherTransaction {
        Self::open_void(self, stock_id).await
    }

    async fn until_waiting(&self, transactions: usize) {
        Self::until_waiting(self, transactions).await;
    }

    async fn fail_next_commit(&self, node: &str, fault: CommitFault) {
        let fault = match fault {
            CommitFault::Refused => Fault::Contended,
            CommitFault::AnswerLost => Fault::AnswerLost,
            CommitFault::NeverSent => Fault::NeverSent,
            CommitFault::Adrift => Fault::Adrift(Duration::ZERO),
            CommitFault::Late => Fault::Late,
        };
        self.fail_commit(node, fault);
    }

    async fn deliver_late(&self) {
        for sent in self.take_late(|_| true) {
            // Whatever the server makes of it: the one who sent it does not listen any more.
            let _ = execute(self, &sent.header, &sent.records, Duration::ZERO).await;
        }
    }

    async fn wallet(&self, wallet: WalletKey) -> Option<Receipt> {
        Self::wallet(self, wallet)
    }

    async fn pending_orders(&self, wallet: WalletKey) -> Amount {
        Self::pending_orders(self, wallet)
    }

    async fn pending_payouts(&self, wallet: WalletKey) -> Amount {
        Self::pending_payouts(self, wallet)
    }

    async fn ledger(&self, wallet: WalletKey) -> Vec<Entry> {
        Self::ledger(self, wallet)
    }

    async fn order(&self, order_id: OrderId) -> Option<Order> {
        Self::order(self, order_id)
    }

    async fn allocations(&self) -> Vec<(StockId, Holder)> {
        Self::allocations(self)
    }

    async fn kept(&self, key: KeyHash) -> Option<Kept> {
        Self::kept(self, key)
    }

    async fn events(&self, partner_id: PartnerId) -> Vec<Told> {
        Self::events(self, partner_id)
    }

    async fn violations(&self) -> Vec<String> {
        self.invariants()
    }
}
