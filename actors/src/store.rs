//! The one narrow port to storage: what the engine asks of Postgres, and nothing more.
//!
//! Rule: every failure says whether the write may have happened. A write that was refused by the server for certain is
//! *aborted*; whatever cannot be told is *unknown*, and only the lane's fence settles it.

use std::future::Future;
use std::pin::Pin;

use uuid::Uuid;

use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::ids::{OrderId, PartnerId, PayoutId, StockId};
use crate::domain::ledger::Receipt;
use crate::domain::money::Currency;
use crate::domain::order::StoredOrder;
use crate::domain::payout::Payout;
use crate::domain::stock::{ClaimedStock, StockRequest};
use crate::domain::voucher::Shelved;
use crate::journal::{Record, Verdict};

/// A future of the store, boxed so that the engine does not depend on which store it is.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The store cannot answer now; nothing is known to have changed. Ask again later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store cannot answer: {0}")]
pub struct Unavailable(pub String);

/// Why a batch has no verdicts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Certainly not written, because of what is in it: writing it again fails again.
    #[error("the batch was refused: {0}")]
    Poisoned(String),
    /// Certainly not written, because something in it waited too long for somebody else, or ran into them. The rest of it
    /// may be written without that.
    #[error("the batch collided with somebody else: {0}")]
    Contended(String),
    /// Certainly not written, because of the moment: no room, a server that is standing by. Writing it again may succeed.
    #[error("the batch could not be written now: {0}")]
    Busy(String),
    /// Certainly not written: the lane's generation is no longer this one.
    #[error("the lane was fenced off")]
    Fenced,
    /// Nobody can say yet.
    #[error("the outcome of the batch is not known: {0}")]
    Unknown(String),
}

/// What became of the batch whose outcome was unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchFate {
    Committed,
    /// It did not, and never will.
    NotWritten,
}

/// Why a lane could not be taken up again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The store cannot answer; try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A later start of this node has taken over. This process must end.
    #[error("a later start of this node has taken over")]
    Superseded,
}

/// A lane's own way to the store: one connection, one batch at a time.
pub trait LaneStore: Send + 'static {
    /// Writes a batch in one transaction and returns a verdict for each record, in their order.
    ///
    /// `batch` grows by one with every call, whatever became of the last one.
    ///
    /// # Errors
    /// [`CommitError`], which says what is known about the write. After [`CommitError::Unknown`] and
    /// [`CommitError::Fenced`] the lane must [`recover`](Self::recover) before the next batch.
    fn commit<'a>(
        &'a mut self,
        batch: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>>;

    /// Shuts out whatever may still arrive from before, on a new connection, and says what became of `batch`.
    ///
    /// # Errors
    /// [`RecoverError`]: try again later, or give up for good.
    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchFate, RecoverError>>;

    /// The verdicts of a batch that is known to have committed, by plain reads.
    ///
    /// # Errors
    /// [`Unavailable`]: try again later.
    fn verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>>;
}

/// Storage, as the engine sees it.
pub trait Store: Send + Sync + 'static {
    /// Opens a lane of this node: whatever was under way in it is shut out first.
    ///
    /// # Errors
    /// [`RecoverError`], as for [`LaneStore::recover`].
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>>;

    /// Claims chunks of a SKU for this node, earliest expiry first. Asking again is harmless.
    ///
    /// # Errors
    /// [`Unavailable`]: nothing was learned; chunks that were claimed all the same come with the next request.
    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>>;

    /// The newest state of each wallet of a partner.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, Receipt)>, Unavailable>>;

    /// An order of this partner, to be moved on.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>>;

    /// A payout of this partner, to be decided on.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>>;

    /// The vouchers that were bought under a purchase and are kept for its order, for this node, first to expire first.
    /// Asking again is harmless.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn claim_bought(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<Shelved>, Unavailable>>;

    /// Numbers for rows of stock that are about to be written, ascending. Those that are not used are lost, which costs
    /// nothing.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn number_stock(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>>;

    /// The answer kept under a key, unless its time is over.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn find_answer(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<KnownAnswer>, Unavailable>>;
}
