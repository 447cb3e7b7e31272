//! What a store must offer to be put through the suite: a world around it, faults on its way, and a look at its rows.
//!
//! Rule: every operation is one that a real database in another process can offer: a second connection that holds a
//! transaction open, a proxy that loses or delays what a lane sends, a row that is changed by hand, plain reads. Nothing
//! here asks for a moment in time: a wait is known by the lock that is waited for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::ids::{OrderId, PartnerId, StockId};
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::money::Amount;
use crate::domain::order::Order;
use crate::domain::product::Sku;
use crate::domain::voucher::{Expiry, Shelved};
use crate::store::Store;
use crate::testing::facts::{Entry, Holder, Kept, Told};

/// What becomes of the next commit of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// Refused for certain, because it took too long: the lane hears `Contended`. (A statement that is cancelled.)
    Refused,
    /// Applied, and its answer is lost: the lane hears `Unknown` after the server is done with it. (The proxy swallows
    /// the answer and closes.)
    AnswerLost,
    /// Lost on its way: the lane hears `Unknown`, the server nothing. (The proxy closes instead of passing it on.)
    NeverSent,
    /// Cut off while it runs: the lane hears `Unknown`, the server goes on with it. (The proxy passes it on and closes.)
    Adrift,
    /// Delayed until [`Subject::deliver_late`]: the lane hears `Unknown`. (The proxy keeps it and closes towards the
    /// lane.)
    Late,
}

/// A transaction of somebody else, which holds its locks until it ends.
pub trait OtherTransaction {
    /// Ends it with its write.
    fn commit(self) -> impl Future<Output = ()>;

    /// Ends it without.
    fn rollback(self) -> impl Future<Output = ()>;
}

/// A store under test. Each case has one of its own, empty.
pub trait Subject {
    /// A transaction of somebody else.
    type Other: OtherTransaction;

    /// Starts a node, as the service does: a new incarnation, with a lease that outlasts the case.
    fn start_node(&self, node: &str) -> impl Future<Output = Arc<dyn Store>>;

    /// Ends the node's lease now.
    fn lapse_lease(&self, node: &str) -> impl Future<Output = ()>;

    /// Makes a partner known, where the store asks for that.
    fn add_partner(&self, partner_id: PartnerId) -> impl Future<Output = ()>;

    /// Imports vouchers as one chunk that nobody owns; in the order of `expiries`. Its product is sold in USD.
    fn add_chunk(&self, sku: &Sku, expiries: &[Expiry]) -> impl Future<Output = Vec<Shelved>>;

    /// Keeps the chunk of these vouchers for the order of a purchase, or for nobody any more.
    fn keep_for(&self, vouchers: &[Shelved], purchase_id: Option<Uuid>) -> impl Future<Output = ()>;

    /// Takes a free voucher out.
    fn void(&self, stock_id: StockId) -> impl Future<Output = ()>;

    /// Reads the codes of an order, past every lane.
    fn retrieve(&self, partner_id: PartnerId, order_id: OrderId) -> impl Future<Output = ()>;

    /// Adds money to a wallet, past every lane.
    fn top_up(&self, wallet: WalletKey, amount: Amount) -> impl Future<Output = ()>;

    /// Makes the row of a key older, by the database's clock.
    fn age_key(&self, key: KeyHash, by: Duration) -> impl Future<Output = ()>;

    /// A transaction that has inserted this key for ever, with this answer, and stands open.
    fn open_key(&self, key: KeyHash, known: &KnownAnswer) -> impl Future<Output = Self::Other>;

    /// A transaction that has voided this voucher and stands open.
    fn open_void(&self, stock_id: StockId) -> impl Future<Output = Self::Other>;

    /// Returns once at least so many transactions wait for a lock (`pg_locks` with `NOT granted`).
    fn until_waiting(&self, transactions: usize) -> impl Future<Output = ()>;

    /// Lets this befall the next commit of the node. The lane has committed before, so that its statement is prepared.
    fn fail_next_commit(&self, node: &str, fault: CommitFault) -> impl Future<Output = ()>;

    /// Delivers what [`CommitFault::Late`] delayed, and returns once the server is done with it.
    fn deliver_late(&self) -> impl Future<Output = ()>;

    /// The newest state of a wallet; `None` where there is none.
    fn wallet(&self, wallet: WalletKey) -> impl Future<Output = Option<Receipt>>;

    /// What was debited for orders that are not delivered yet.
    fn pending_orders(&self, wallet: WalletKey) -> impl Future<Output = Amount>;

    /// What left for payouts that are not paid yet.
    fn pending_payouts(&self, wallet: WalletKey) -> impl Future<Output = Amount>;

    /// The ledger of a wallet, oldest first.
    fn ledger(&self, wallet: WalletKey) -> impl Future<Output = Vec<Entry>>;

    /// An order, whole.
    fn order(&self, order_id: OrderId) -> impl Future<Output = Option<Order>>;

    /// Who has which voucher, by stock row.
    fn allocations(&self) -> impl Future<Output = Vec<(StockId, Holder)>>;

    /// The row of a key, expired or not.
    fn kept(&self, key: KeyHash) -> impl Future<Output = Option<Kept>>;

    /// What a partner was told, in the order of its numbers.
    fn events(&self, partner_id: PartnerId) -> impl Future<Output = Vec<Told>>;

    /// Every violation of an invariant, with its rows.
    fn violations(&self) -> impl Future<Output = Vec<String>>;
}
