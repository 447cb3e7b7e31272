//! Conformance subject over the in-memory database.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId, WebhookId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::MemoryDatabase;
use super::commit::execute;
use super::fault::Fault;
use super::operate::OtherTransaction;
use crate::conformance::{self, CommitFault, EndpointChange, Subject};
use crate::rows::{DeliveryRow, EndpointStatus, FeedEntry, Holder, LedgerEntry, StoredKey, StoredWallet};

impl conformance::OtherTransaction for OtherTransaction {
    async fn commit(self) {
        Self::commit(self);
    }

    async fn rollback(self) {
        Self::rollback(self);
    }
}

impl Subject for MemoryDatabase {
    type Transaction = OtherTransaction;

    async fn start_node(&self, node: &str) -> Arc<dyn Store> {
        Arc::new(Self::start_node(self, node))
    }

    async fn expire_lease(&self, node: &str) {
        Self::expire_lease(self, node);
    }

    async fn advance_lease(&self, node: &str) {
        Self::advance_lease(self, node, Duration::from_secs(3_600));
    }

    async fn age_demand(&self, sku: &Sku, node: &str, by: Duration) {
        let now = self.now();
        self.with(|state| {
            let demands = state.tables.stock_demands.iter_mut();
            let mut of_node = demands.filter(|((demanded, by), _)| demanded == sku && **by == *node);
            let (_, row) = of_node.next().expect("the node demands the SKU");
            row.demanded_at = row.demanded_at.before(by);
            row.renewed_at = now.after(Duration::from_secs(86_400));
        });
    }

    async fn add_partner(&self, _: PartnerId) {}

    async fn add_chunk(&self, sku: &Sku, expiries: &[Expiry]) -> Vec<StockVoucher> {
        self.add_stock(sku, expiries, expiries.len())
    }

    async fn reserve_for(&self, vouchers: &[StockVoucher], purchase_id: Option<Uuid>) {
        Self::reserve_for(self, vouchers, purchase_id);
    }

    async fn void(&self, stock_id: StockId) {
        assert!(Self::void(self, stock_id).await, "{stock_id:?} is not free");
    }

    async fn retrieve(&self, _: PartnerId, order_id: OrderId) {
        assert!(
            Self::retrieve(self, order_id).await,
            "{order_id} holds no vouchers"
        );
    }

    async fn top_up(&self, wallet: WalletKey, amount: Amount) {
        Self::top_up(self, wallet, amount).await;
    }

    async fn age_key(&self, key: KeyHash, by: Duration) {
        Self::age_key(self, key, by);
    }

    async fn begin_insert_key(&self, key: KeyHash, known: &StoredResponse) -> OtherTransaction {
        Self::begin_insert_key(self, key, known.clone()).await
    }

    async fn begin_void(&self, stock_id: StockId) -> OtherTransaction {
        Self::begin_void(self, stock_id).await
    }

    async fn wait_for_blocked(&self, transactions: usize) {
        Self::wait_for_blocked(self, transactions).await;
    }

    async fn fail_next_commit(&self, node: &str, fault: CommitFault) {
        let fault = match fault {
            CommitFault::Aborted => Fault::Contended,
            CommitFault::ResponseLost => Fault::ResponseLost,
            CommitFault::NeverSent => Fault::NeverSent,
            CommitFault::Detached => Fault::Detached(Duration::ZERO),
            CommitFault::Delayed => Fault::Delayed,
        };
        self.fail_commit(node, fault);
    }

    async fn deliver_delayed_commits(&self) {
        for sent in self.take_delayed_batches(|_| true) {
            // The sender has disconnected and does not see the outcome.
            let _ = execute(self, &sent.header, &sent.records, Duration::ZERO).await;
        }
    }

    async fn wallet(&self, wallet: WalletKey) -> Option<StoredWallet> {
        Self::wallet(self, wallet)
    }

    async fn ledger(&self, wallet: WalletKey) -> Vec<LedgerEntry> {
        Self::ledger(self, wallet)
    }

    async fn order(&self, order_id: OrderId) -> Option<Order> {
        Self::order(self, order_id)
    }

    async fn allocations(&self) -> Vec<(StockId, Holder)> {
        Self::allocations(self)
    }

    async fn stored_key(&self, key: KeyHash) -> Option<StoredKey> {
        Self::stored_key(self, key)
    }

    async fn events(&self, partner_id: PartnerId) -> Vec<FeedEntry> {
        Self::events(self, partner_id)
    }

    async fn start_outbox(&self, node: &str) -> Arc<dyn Outbox> {
        Arc::new(Self::start_node(self, node))
    }

    async fn add_endpoint(&self, partner_id: PartnerId) -> WebhookId {
        let webhook_id = WebhookId::generate();
        Self::add_endpoint(self, partner_id, webhook_id);
        webhook_id
    }

    async fn change_endpoint(&self, webhook_id: WebhookId, change: EndpointChange) {
        Self::change_endpoint(self, webhook_id, change);
    }

    async fn append_event(&self, partner_id: PartnerId, order: u32) -> i64 {
        Self::append_event(self, partner_id, order)
    }

    async fn replay(&self, webhook_id: WebhookId, numbers: RangeInclusive<i64>) {
        Self::replay(self, webhook_id, numbers);
    }

    /// Time is paused: sleeping advances it.
    async fn advance_time(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    async fn delivery(&self, webhook_id: WebhookId, number: i64) -> Option<DeliveryRow> {
        Self::delivery(self, webhook_id, number)
    }

    async fn endpoint(&self, webhook_id: WebhookId) -> Option<EndpointStatus> {
        Self::endpoint(self, webhook_id)
    }

    async fn violations(&self) -> Vec<String> {
        self.invariants()
    }
}
