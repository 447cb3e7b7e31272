//! Interface of a store under test: setup, fault injection and reads of its rows.
//!
//! A real database in another process can offer every operation: a second connection that holds a transaction
//! open, a proxy that drops or delays statements, direct updates, plain reads. Cases detect blocking by lock
//! waits, never by time.

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId, WebhookId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use crate::rows::{DeliveryRow, EndpointStatus, FeedEntry, Holder, LedgerEntry, StoredKey, StoredWallet};

/// Fault of a node's next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// Aborted because it took too long: the lane gets `Contended`. (The statement is cancelled.)
    Aborted,
    /// Applied, and the response is lost: the lane gets `Unknown` after the server has finished. (The proxy
    /// drops the response and closes.)
    ResponseLost,
    /// Never reaches the server: the lane gets `Unknown`. (The proxy closes instead of forwarding it.)
    NeverSent,
    /// Loses its connection while it runs: the lane gets `Unknown`, the server continues. (The proxy forwards
    /// it and closes.)
    Detached,
    /// Held back until [`Subject::deliver_delayed_commits`]: the lane gets `Unknown`. (The proxy keeps it and
    /// closes the lane's side.)
    Delayed,
}

/// Change to a webhook endpoint during delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointChange {
    /// The partner enables or disables it.
    SetEnabled(bool),
    EnableByOperator,
    SetEventKinds(EventKinds),
    RotateSecret,
    /// The partner requests a retry of everything that waits.
    RequestRetry,
    Remove,
    /// The database crashes before the last lease is durable.
    ForgetLastLease,
    /// The database is restored without the events after this number.
    LoseEvents {
        after: i64,
    },
    /// The service finds that the database was restored.
    ReplaceHistory,
}

/// An open transaction of another session, which holds its locks until it ends.
pub trait OtherTransaction {
    fn commit(self) -> impl Future<Output = ()>;

    fn rollback(self) -> impl Future<Output = ()>;
}

/// A store under test; each case gets an empty one.
pub trait Subject {
    type Transaction: OtherTransaction;

    /// Starts a node as the service does: a new incarnation, with a lease that outlasts the case.
    fn start_node(&self, node: &str) -> impl Future<Output = Arc<dyn Store>>;

    fn expire_lease(&self, node: &str) -> impl Future<Output = ()>;

    /// Makes the node's last renewal one by a clock that was an hour fast.
    fn advance_lease(&self, node: &str) -> impl Future<Output = ()>;

    /// Makes a node's demand for a SKU this much older, and valid until it is renewed, however slow the case
    /// runs.
    fn age_demand(&self, sku: &Sku, node: &str, by: Duration) -> impl Future<Output = ()>;

    /// Inserts a partner, if the store requires it.
    fn add_partner(&self, partner_id: PartnerId) -> impl Future<Output = ()>;

    /// Imports vouchers as one unclaimed chunk, in the order of `expiries`. The product is sold in USD.
    fn add_chunk(&self, sku: &Sku, expiries: &[Expiry]) -> impl Future<Output = Vec<StockVoucher>>;

    /// Reserves the chunk of these vouchers for a purchase, or releases the reservation.
    fn reserve_for(&self, vouchers: &[StockVoucher], purchase_id: Option<Uuid>) -> impl Future<Output = ()>;

    fn void(&self, stock_id: StockId) -> impl Future<Output = ()>;

    /// Retrieves the codes of an order, bypassing the lanes.
    fn retrieve(&self, partner_id: PartnerId, order_id: OrderId) -> impl Future<Output = ()>;

    /// Credits a wallet, bypassing the lanes.
    fn top_up(&self, wallet: WalletKey, amount: Amount) -> impl Future<Output = ()>;

    /// Ages the row of a key, by the database's clock.
    fn age_key(&self, key: KeyHash, by: Duration) -> impl Future<Output = ()>;

    /// Begins a transaction that has inserted this key, without expiry, with this response.
    fn begin_insert_key(
        &self,
        key: KeyHash,
        known: &StoredResponse,
    ) -> impl Future<Output = Self::Transaction>;

    /// Begins a transaction that has voided this voucher.
    fn begin_void(&self, stock_id: StockId) -> impl Future<Output = Self::Transaction>;

    /// Returns when at least `transactions` transactions are blocked on a lock (`pg_locks` with `NOT
    /// granted`).
    fn wait_for_blocked(&self, transactions: usize) -> impl Future<Output = ()>;

    /// Injects a fault into the node's next commit. The lane has committed before, so its statement is
    /// prepared.
    fn fail_next_commit(&self, node: &str, fault: CommitFault) -> impl Future<Output = ()>;

    /// Delivers the commits held back by [`CommitFault::Delayed`], and returns when the server has finished
    /// them.
    fn deliver_delayed_commits(&self) -> impl Future<Output = ()>;

    /// Row of a wallet; `None` if it does not exist.
    fn wallet(&self, wallet: WalletKey) -> impl Future<Output = Option<StoredWallet>>;

    /// Ledger of a wallet, oldest first.
    fn ledger(&self, wallet: WalletKey) -> impl Future<Output = Vec<LedgerEntry>>;

    fn order(&self, order_id: OrderId) -> impl Future<Output = Option<Order>>;

    /// Holder of each allocated voucher, by stock id.
    fn allocations(&self) -> impl Future<Output = Vec<(StockId, Holder)>>;

    /// Row of a key, expired or not.
    fn stored_key(&self, key: KeyHash) -> impl Future<Output = Option<StoredKey>>;

    /// Events of a partner, by number.
    fn events(&self, partner_id: PartnerId) -> impl Future<Output = Vec<FeedEntry>>;

    /// Starts a delivery process, which is the node's next incarnation.
    fn start_outbox(&self, node: &str) -> impl Future<Output = Arc<dyn Outbox>>;

    /// Adds an endpoint of the partner.
    fn add_endpoint(&self, partner_id: PartnerId) -> impl Future<Output = WebhookId>;

    fn change_endpoint(&self, webhook_id: WebhookId, change: EndpointChange) -> impl Future<Output = ()>;

    /// Appends an event of this order without the order, and returns its number. The first event of an order
    /// is `Created`, the others are `Processing`.
    fn append_event(&self, partner_id: PartnerId, order: u32) -> impl Future<Output = i64>;

    fn replay(&self, webhook_id: WebhookId, numbers: RangeInclusive<i64>) -> impl Future<Output = ()>;

    /// Advances the clock that deliveries follow.
    fn advance_time(&self, by: Duration) -> impl Future<Output = ()>;

    /// Delivery row of an event.
    fn delivery(&self, webhook_id: WebhookId, number: i64) -> impl Future<Output = Option<DeliveryRow>>;

    /// Status of an endpoint; `None` if it does not exist.
    fn endpoint(&self, webhook_id: WebhookId) -> impl Future<Output = Option<EndpointStatus>>;

    /// Violations of invariants: their names and rows.
    fn violations(&self) -> impl Future<Output = Vec<String>>;
}

/// Whether the invariant of a violation holds after a case. A violation begins with the invariant's name.
pub type IsAudited = fn(violation: &str) -> bool;

/// Fixture of a case over this subject.
pub trait CaseFixture<'s, S: Subject> {
    fn create(subject: &'s S) -> impl Future<Output = Self>;

    /// The invariants that hold after a case with this fixture; by default all.
    fn is_audited(&self) -> IsAudited {
        |_| true
    }
}
