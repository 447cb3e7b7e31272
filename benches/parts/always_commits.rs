//! A store with unlimited stock and money that commits every record at once, so that benches measure the
//! engine only.

use std::sync::atomic::{AtomicI64, Ordering};

use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, LaneStore, RecoverError, Store, StoreFuture};
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::order::StoredOrder;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedChunk, ClaimedStock, StockDemand, StockRequest, UnclaimableStock};
use vouchsafe_domain::store_error::{CommitError, Unavailable};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::build::usd;

/// Result of a stock claim.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StockClaims {
    /// As many chunks of 500 as requested, like a store with large stock of few SKUs.
    InFull,
    /// One chunk of this size per claim, so that many SKUs fit into memory.
    OneChunk(i64),
    Nothing,
}

/// Vouchers per chunk of [`StockClaims::InFull`].
const CHUNK: i64 = 500;

#[derive(Debug)]
pub(crate) struct AlwaysCommits {
    claims: StockClaims,
    chunks: AtomicI64,
}

impl AlwaysCommits {
    pub(crate) const fn new(claims: StockClaims) -> Self {
        Self {
            claims,
            chunks: AtomicI64::new(0),
        }
    }
}

pub(crate) struct AlwaysCommitsLane;

impl LaneStore for AlwaysCommitsLane {
    fn commit<'a>(
        &'a mut self,
        _: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        Box::pin(async move { Ok(vec![Verdict::Committed(None); records.len()]) })
    }

    fn recover(&mut self, _: i64) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>> {
        Box::pin(async { Ok(BatchOutcome::Committed) })
    }

    fn load_verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(async move { Ok(vec![Verdict::Committed(None); records.len()]) })
    }
}

impl Store for AlwaysCommits {
    fn open_lane(&self, _: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        Box::pin(async { Ok(Box::new(AlwaysCommitsLane) as Box<dyn LaneStore>) })
    }

    fn discontinuities(&self) -> u64 {
        0
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        let (chunks, size, next) = match self.claims {
            StockClaims::InFull => {
                let enough = i64::try_from(request.target_quantity).unwrap();
                (enough.div_euclid(CHUNK) + 1, CHUNK, Some(Expiry::NEVER))
            }
            // No further stock is announced, so nothing is claimed ahead.
            StockClaims::OneChunk(size) => (1, size, None),
            StockClaims::Nothing => (0, 0, None),
        };
        let first = self.chunks.fetch_add(chunks, Ordering::Relaxed);
        let chunk = |id: i64| ClaimedChunk {
            chunk_id: ChunkId(id),
            vouchers: (id * size..(id + 1) * size)
                .map(|stock| (StockId(stock), Expiry::NEVER))
                .collect(),
        };
        let chunks = (first..first + chunks).map(chunk).collect();
        Box::pin(async move {
            Ok(ClaimedStock {
                chunks,
                next_expiry: next,
                unclaimable: UnclaimableStock::None,
            })
        })
    }

    fn list_stock_demands(&self) -> StoreFuture<'_, Result<Vec<StockDemand>, Unavailable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn release_stock(&self, _: Sku, _: Vec<ChunkId>) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async { Ok(()) })
    }

    fn load_wallets(
        &self,
        _: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, WalletState)>, Unavailable>> {
        let funded = WalletState {
            sequence: 1,
            balance: Amount::from_minor(i64::MAX),
        };
        Box::pin(async move { Ok(vec![(usd(), funded)]) })
    }

    fn load_order(
        &self,
        _: PartnerId,
        _: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }

    fn cap_usage(&self, _: PartnerId, _: Vec<CapCheck>) -> StoreFuture<'_, Result<Vec<i64>, Unavailable>> {
        unreachable!("the partner has no caps")
    }

    fn count_orders(&self, _: PartnerId, _: u32) -> StoreFuture<'_, Result<u64, Unavailable>> {
        Box::pin(async { Ok(0) })
    }

    fn load_payout(&self, _: PartnerId, _: PayoutId) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }

    fn claim_reserved(&self, _: uuid::Uuid) -> StoreFuture<'_, Result<Vec<StockVoucher>, Unavailable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn allocate_stock_ids(&self, _: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn find_response(&self, _: KeyHash) -> StoreFuture<'_, Result<Option<StoredResponse>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }
}
