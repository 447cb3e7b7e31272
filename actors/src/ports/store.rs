//! Storage port of the engine; the service implements it with Postgres.
//!
//! Every failure states whether the write may have happened. A write that the server certainly rejected is
//! *aborted*; anything else is *unknown*, and only the lane's fence resolves it.

use std::future::Future;
use std::pin::Pin;

use uuid::Uuid;
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::order::StoredOrder;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockDemand, StockRequest};
use vouchsafe_domain::store_error::{CommitError, Unavailable};
use vouchsafe_domain::voucher::StockVoucher;

use super::record::{Record, Verdict};

/// A boxed future, so that the engine does not depend on a store implementation.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The resolved outcome of a batch whose outcome was unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchOutcome {
    Committed,
    /// Not written, and it can no longer be written.
    NotWritten,
}

/// Why a lane could not be recovered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The store is unavailable; try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A later start of this node has taken over; this process must end.
    #[error("a later start of this node has taken over")]
    Superseded,
}

/// A lane's connection to the store; it writes one batch at a time.
pub trait LaneStore: Send + 'static {
    /// Writes a batch in one transaction and returns the verdict of each record, in order.
    ///
    /// `batch` grows by one with every call, whatever the outcome of the last one.
    ///
    /// # Errors
    /// [`CommitError`], which states what is known about the write. After [`CommitError::Unknown`] and
    /// [`CommitError::Fenced`] the lane must [`recover`](Self::recover) before the next batch.
    fn commit<'a>(
        &'a mut self,
        batch: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>>;

    /// Fences off earlier writes of this lane on a new connection and resolves the outcome of `batch`.
    ///
    /// # Errors
    /// [`RecoverError`]: retry later if the store is unavailable; end the process if it was superseded.
    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>>;

    /// Reads the verdicts of a batch that is known to have committed.
    ///
    /// # Errors
    /// [`Unavailable`]: retry later.
    fn load_verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>>;
}

/// Storage as the engine needs it.
pub trait Store: Send + Sync + 'static {
    /// Opens a lane of this node and fences off its earlier writes.
    ///
    /// # Errors
    /// [`RecoverError`], as for [`LaneStore::recover`].
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>>;

    /// How often the store may have lost commits since this node started: a standby was promoted, or a backup
    /// restored. What was read from it before may be untrue.
    fn discontinuities(&self) -> u64;

    /// Claims chunks of a SKU for this node, earliest expiry first. Idempotent.
    ///
    /// # Errors
    /// [`Unavailable`]: chunks that were claimed nevertheless are returned by the next request.
    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>>;

    /// Lists the demands of other nodes for SKUs of which this node owns stock, except those that are younger
    /// than this node's own demand for the SKU.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn list_stock_demands(&self) -> StoreFuture<'_, Result<Vec<StockDemand>, Unavailable>>;

    /// Releases the chunks of a SKU that this node owns, except `kept`: each node can claim them.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release_stock(&self, sku: Sku, kept: Vec<ChunkId>) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Reads the newest state of each wallet of a partner.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, WalletState)>, Unavailable>>;

    /// Reads an order of this partner; `None` if there is none.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>>;

    /// Counts the orders of this partner, in any status, up to `limit`.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn count_orders(&self, partner_id: PartnerId, limit: u32) -> StoreFuture<'_, Result<u64, Unavailable>>;

    /// Reads the counters of the checks of this partner. Numbers of orders are counted up to one more than
    /// the cap.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn cap_usage(
        &self,
        partner_id: PartnerId,
        checks: Vec<CapCheck>,
    ) -> StoreFuture<'_, Result<Vec<i64>, Unavailable>>;

    /// Reads a payout of this partner; `None` if there is none.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>>;

    /// Claims for this node the vouchers reserved under a purchase's id, earliest expiry first. Idempotent.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn claim_reserved(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<StockVoucher>, Unavailable>>;

    /// Allocates ascending ids for new stock rows. Unused ids are lost, which is harmless.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn allocate_stock_ids(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>>;

    /// Reads the response stored under a key, unless its retention has ended.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn find_response(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<StoredResponse>, Unavailable>>;
}
