//! The engine's `Store` port over Postgres, for one incarnation of one node.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::servers::Servers;

use parking_lot::Mutex;
use sqlx::PgPool;
use tracing::warn;
use uuid::Uuid;
use vouchsafe_actors::ports::store::{LaneStore, RecoverError, Store, StoreFuture};
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::order::{Order, StoredOrder};
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::replication::Replication;
use vouchsafe_domain::stock::{ClaimedStock, StockDemand, StockRequest};
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_domain::wallet::Wallet;
use vouchsafe_security::rate_limiter::RateLimiter;

use super::codes::{CodeRetrieval, RetrievalOutcome, RetrieveCodesOp};
use super::credentials::Credentials;
use super::events::{FeedPage, FeedPosition, FeedRequest, ReadFeedsOp};
use super::lane::PgLane;
use super::node_identity::{self, EndedRegistration, LEASE_S, NodeIdentity};
use super::orders::ReadOrdersOp;
use super::quarantine::Quarantine;
use super::rate_limit_usage::CountRequestsOp;
use super::replication::ReplicationCheck;
use super::shared_limits::SharedLimits;
use super::stock_claims::ClaimStockOp;
use super::wallets::ReadWalletsOp;
use super::{cap_usage, idempotency_keys, inventory, orders, payouts, stock, stock_demands, wallets};
use vouchsafe_database::batcher::{Batcher, BatcherKind};
use vouchsafe_database::connection_class::ConnectionClass;
use vouchsafe_database::connection_pool::timeout_error;
use vouchsafe_database::database::Database;
use vouchsafe_operators::grants::Grants;

/// How long a start waits for a lane on which a batch of its predecessor still runs. Longer than the
/// statement timeout.
const LANE_OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request waits for the lookup of its idempotency key. Equal to the decision timeout.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

const LANE_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Two renewals, of which one may fail, and shorter than the lease.
const MAX_RENEWAL_AGE: Duration = Duration::from_secs(LEASE_S.cast_unsigned() as u64 * 2 / 3);

/// Handle to Postgres for one incarnation of a node.
#[derive(Debug, Clone)]
pub struct PgNode {
    /// Uses the connections that orders need.
    database: Database,
    identity: NodeIdentity,
    lease_renewed_at: Arc<Mutex<Instant>>,
    /// Held while the lease is renewed or ended.
    lease_lock: Arc<tokio::sync::Mutex<()>>,
    replication: ReplicationCheck,
    claims: Batcher<ClaimStockOp>,
    retrievals: Batcher<RetrieveCodesOp>,
    orders: Batcher<ReadOrdersOp>,
    /// Reads orders that are changed: they do not wait behind the reads of partners.
    orders_to_change: Batcher<ReadOrdersOp>,
    wallets: Batcher<ReadWalletsOp>,
    feeds: Batcher<ReadFeedsOp>,
}

impl PgNode {
    /// Takes the next incarnation of the node `name`, which fences off the previous one.
    #[boxed]
    pub async fn start(database: &Database, name: String) -> Result<Self, StoreError> {
        let identity = database.run(|pool| async move { node_identity::start(&pool, name).await });
        let identity = identity.await?;
        let control = database.on(ConnectionClass::Control);
        let claims = database.on(ConnectionClass::Claims);
        let partners = database.on(ConnectionClass::Partners);
        Ok(Self {
            claims: Batcher::start(&claims, &ClaimStockOp(identity.clone()), BatcherKind::Write),
            // Reads of partners that run alone have been delayed by a lock, and orders must not wait behind
            // them.
            retrievals: Batcher::start(&partners, &RetrieveCodesOp, BatcherKind::Write),
            orders: Batcher::start(&partners, &ReadOrdersOp, BatcherKind::Lookup),
            orders_to_change: Batcher::start(&control, &ReadOrdersOp, BatcherKind::Lookup),
            wallets: Batcher::start(&partners, &ReadWalletsOp, BatcherKind::Lookup),
            feeds: Batcher::start(&partners, &ReadFeedsOp, BatcherKind::Lookup),
            database: control,
            identity,
            lease_renewed_at: Arc::new(Mutex::new(Instant::now())),
            lease_lock: Arc::default(),
            replication: ReplicationCheck::default(),
        })
    }

    /// The name and the incarnation of this process.
    #[must_use]
    pub const fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    /// Shares the rate limits with the other nodes.
    #[boxed]
    pub async fn share_limits(
        &self,
        limiter: Arc<RateLimiter>,
        clock: Arc<dyn Clock>,
    ) -> Result<SharedLimits, StoreError> {
        let counts = Batcher::start(&self.database, &CountRequestsOp, BatcherKind::Count);
        SharedLimits::start(
            self.database.clone(),
            self.identity.clone(),
            counts,
            limiter,
            clock,
        )
        .await
    }

    /// Checks that the database responds. Returns whether stock is quarantined.
    #[boxed]
    pub async fn ping(&self) -> Result<bool, StoreError> {
        let quarantine = Quarantine(self.database.on(ConnectionClass::Lease));
        quarantine.is_active().await
    }

    /// The database for webhook deliveries.
    pub(super) fn delivery_database(&self) -> Database {
        self.database.on(ConnectionClass::Deliveries)
    }

    /// Credentials on the connections that orders need: the first order with a rotated credential records its
    /// first use.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        Credentials(self.database.clone(), Grants::default())
    }

    /// Runs work for the engine on the connections that orders need.
    fn run<T, F, W>(&self, work: W) -> StoreFuture<'_, Result<T, Unavailable>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
        W: FnOnce(PgPool) -> F + Send + 'static,
    {
        Box::pin(async move { self.database.run(work).await.map_err(Unavailable::from) })
    }

    /// Finds out why the database no longer has this incarnation of the node.
    #[boxed]
    pub async fn find_end(&self) -> Result<EndedRegistration, StoreError> {
        let node = self.identity.clone();
        self.database
            .on(ConnectionClass::Lease)
            .run(|pool| async move { node_identity::find_end(&pool, &node).await })
            .await
    }

    /// Renews the lease. Returns `false` if this incarnation is no longer the one in the database.
    #[boxed]
    pub async fn renew_lease(&self) -> Result<bool, StoreError> {
        let node = self.identity.clone();
        let guard = Arc::clone(&self.lease_lock).lock_owned().await;
        let renewed = self
            .database
            .on(ConnectionClass::Lease)
            .run(|pool| async move {
                let renewed = node_identity::renew(&pool, &node).await;
                drop(guard);
                renewed
            })
            .await?;
        *self.lease_renewed_at.lock() = Instant::now();
        Ok(renewed)
    }

    /// Whether the lease was renewed recently. A renewal is a commit, so this also shows, without orders,
    /// that commits hang.
    #[must_use]
    pub fn has_renewed_lease(&self) -> bool {
        let renewed_at = *self.lease_renewed_at.lock();
        renewed_at.elapsed() < MAX_RENEWAL_AGE
    }

    /// Checks whether commits wait for a standby.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; nothing is known after a while.
    #[boxed]
    pub async fn check_replication(&self) -> Result<Replication, StoreError> {
        let check = self.replication.clone();
        self.database
            .on(ConnectionClass::Jobs)
            .run(|pool| async move { check.check(&mut *pool.acquire().await?).await })
            .await
    }

    /// The result of the last check; unknown if it was long ago.
    #[must_use]
    pub fn replication(&self) -> Replication {
        self.replication.last()
    }

    /// Ends the lease: other nodes may claim this node's stock at once. Call it when every record has its
    /// verdict.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; other nodes then take the stock over on demand.
    #[boxed]
    pub async fn end_lease(&self) -> Result<(), StoreError> {
        let node = self.identity.clone();
        // A renewal whose caller has stopped waiting still runs, and would give the lease back.
        let _guard = self.lease_lock.lock().await;
        self.database
            .on(ConnectionClass::Lease)
            .run(|pool| async move { node_identity::end_lease(&pool, &node).await })
            .await
    }

    /// Deletes demands for stock that ended long ago.
    #[boxed]
    pub async fn purge_stock_demands(&self) -> Result<(), StoreError> {
        self.database
            .run(|pool| async move { stock_demands::purge_ended(&pool).await })
            .await
    }

    /// Commits the audit entry and returns the sealed codes.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer. The audit entry may have been committed; no code
    /// was returned.
    #[boxed]
    pub async fn retrieve_codes(&self, retrieval: CodeRetrieval) -> Result<RetrievalOutcome, Unavailable> {
        self.retrievals.submit(retrieval).await
    }

    /// Finds an order of this partner, with its vouchers in line order.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn find_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Option<Order>, Unavailable> {
        let stored = self.orders.submit((partner_id, order_id)).await?;
        Ok(stored.map(|stored| stored.order))
    }

    /// Lists the wallets of a partner by currency.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn list_wallets(&self, partner_id: PartnerId) -> Result<Vec<Wallet>, Unavailable> {
        self.wallets.submit(partner_id).await
    }

    /// Reads up to `limit` events of a partner. Returns `None` if the event to start after is not in its
    /// feed.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn read_feed(
        &self,
        partner_id: PartnerId,
        position: FeedPosition,
        limit: usize,
    ) -> Result<Option<FeedPage>, Unavailable> {
        let request = FeedRequest {
            partner_id,
            position,
            limit,
        };
        self.feeds.submit(request).await
    }
}

/// Retries while a batch of a dead process still locks the lane's row.
async fn open_lane(servers: &Servers, node: &NodeIdentity, lane: i16) -> Result<PgLane, RecoverError> {
    let started = Instant::now();
    loop {
        match PgLane::open(servers, node, lane).await {
            Err(RecoverError::Unavailable(reason)) if started.elapsed() < LANE_OPEN_TIMEOUT => {
                warn!(lane, error.message = %reason, "cannot open lane yet, retrying");
                tokio::time::sleep(LANE_RETRY_DELAY).await;
            }
            opened => return opened,
        }
    }
}

impl Store for PgNode {
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        let (servers, node) = (self.database.session_servers(), self.identity.clone());
        let opening = self
            .database
            .spawn(async move { Ok(open_lane(&servers, &node, lane.cast_signed()).await) });
        Box::pin(async move {
            let lane = opening.await.map_err(Unavailable::from)??;
            Ok(Box::new(lane) as Box<dyn LaneStore>)
        })
    }

    fn discontinuities(&self) -> u64 {
        self.database.discontinuities()
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        Box::pin(self.claims.submit(request))
    }

    fn list_stock_demands(&self) -> StoreFuture<'_, Result<Vec<StockDemand>, Unavailable>> {
        let node = self.identity.clone();
        self.run(move |pool| async move { stock_demands::list(&pool, &node).await })
    }

    fn release_stock(&self, sku: Sku, kept: Vec<ChunkId>) -> StoreFuture<'_, Result<(), Unavailable>> {
        let node = self.identity.clone();
        let kept: Vec<i64> = kept.into_iter().map(|chunk| chunk.0).collect();
        self.run(move |pool| async move { stock_demands::release(&pool, &node, &sku, &kept).await })
    }

    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, WalletState)>, Unavailable>> {
        self.run(move |pool| async move { wallets::load_wallet_states(&pool, partner_id).await })
    }

    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(self.orders_to_change.submit((partner_id, order_id)))
    }

    fn count_orders(&self, partner_id: PartnerId, limit: u32) -> StoreFuture<'_, Result<u64, Unavailable>> {
        self.run(move |pool| async move { orders::count(&pool, partner_id, limit).await })
    }

    fn cap_usage(
        &self,
        partner_id: PartnerId,
        checks: Vec<CapCheck>,
    ) -> StoreFuture<'_, Result<Vec<i64>, Unavailable>> {
        self.run(move |pool| async move { cap_usage::read(&pool, partner_id, &checks).await })
    }

    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        self.run(move |pool| async move { payouts::find(partner_id, payout_id).fetch_optional(&pool).await })
    }

    fn claim_reserved(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<StockVoucher>, Unavailable>> {
        let node = self.identity.clone();
        self.run(move |pool| async move { inventory::claim_reserved(&pool, &node, purchase_id).await })
    }

    fn allocate_stock_ids(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        self.run(move |pool| async move { stock::allocate_ids(&pool, count).await })
    }

    fn find_response(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<StoredResponse>, Unavailable>> {
        // The lookup runs in its own task: after a timeout it continues in the background.
        let lookup = self
            .database
            .run(move |pool| async move { idempotency_keys::find_response(&pool, key).await });
        Box::pin(async move {
            let found = tokio::time::timeout(LOOKUP_TIMEOUT, lookup).await;
            let found = found.unwrap_or_else(|_| Err(timeout_error(LOOKUP_TIMEOUT).into()));
            found.map_err(Unavailable::from)
        })
    }
}
