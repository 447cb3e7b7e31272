//! The engine's port: what one node, in one of its lives, claims, commits and reads.

use std::ops::Deref;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use tracing::warn;
use uuid::Uuid;
use vouchsafe_actors::domain::answer::{KeyHash, KnownAnswer};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::Currency;
use vouchsafe_actors::domain::order::{Order, StoredOrder};
use vouchsafe_actors::domain::payout::Payout;
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::domain::voucher::Shelved;
use vouchsafe_actors::store::{LaneStore, RecoverError, Store, StoreFuture, Unavailable};

use super::claims::ClaimStock;
use super::codes::{ReadCodes, Retrieval, Retrieved};
use super::connections::silent;
use super::error::unavailable;
use super::events::{FeedPage, FeedPlace, FeedRequest, ReadFeeds};
use super::lane::PgLane;
use super::nodes::{self, NodeIdentity};
use super::orders::ReadOrders;
use super::together::{Kind, Line};
use super::wallets::{ReadWallets, WalletRow};
use super::{PgStore, inventory, keys, on, wallets};

/// How long a start waits for a lane on which a batch of its predecessor still runs: longer than a statement may.
const LANE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a request waits to hear what its key was answered before: as long as for any other decision.
const LOOK_UP_PATIENCE: Duration = Duration::from_secs(2);

/// The pause between two attempts.
const LANE_PAUSE: Duration = Duration::from_millis(200);

/// Postgres, as one node writes to it.
#[derive(Debug, Clone)]
pub struct PgNode {
    store: PgStore,
    identity: NodeIdentity,
    claims: Line<ClaimStock>,
    retrievals: Line<ReadCodes>,
    orders: Line<ReadOrders>,
    wallets: Line<ReadWallets>,
    feeds: Line<ReadFeeds>,
}

impl PgNode {
    /// Takes the next incarnation of the node called `name`: from here on its predecessor is shut out.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn start(store: PgStore, name: String) -> Result<Self, sqlx::Error> {
        let identity = store.run(|pool| async move { nodes::start(&pool, name).await });
        let identity = identity.await?;
        Ok(Self {
            claims: Line::of(&store, &ClaimStock(identity.clone()), Kind::Write),
            retrievals: Line::of(&store, &ReadCodes, Kind::Write),
            orders: Line::of(&store, &ReadOrders, Kind::LookUp),
            wallets: Line::of(&store, &ReadWallets, Kind::LookUp),
            feeds: Line::of(&store, &ReadFeeds, Kind::LookUp),
            store,
            identity,
        })
    }

    /// Who this process is.
    #[must_use]
    pub const fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    /// Renews the lease. `false` when a later start of this node has taken over.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn renew_lease(&self) -> Result<bool, sqlx::Error> {
        let node = self.identity.clone();
        self.store
            .run(|pool| async move { nodes::renew(&pool, &node).await })
            .await
    }

    /// Writes the trail and reads the sealed codes; the trail is committed when they come.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer; then the trail may have been written, and nothing was read.
    pub async fn retrieve_codes(&self, retrieval: Retrieval) -> Result<Retrieved, Unavailable> {
        self.retrievals.ask(retrieval).await
    }

    /// The order of this partner, with its vouchers line by line.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    pub async fn find_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Option<Order>, Unavailable> {
        self.orders.ask((partner_id, order_id)).await
    }

    /// The wallets of a partner, by currency.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    pub async fn list_wallets(&self, partner_id: PartnerId) -> Result<Vec<WalletRow>, Unavailable> {
        self.wallets.ask(partner_id).await
    }

    /// Up to `limit` events of a partner; `None` where the event to begin behind is none of its feed.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    pub async fn read_feed(
        &self,
        partner_id: PartnerId,
        place: FeedPlace,
        limit: usize,
    ) -> Result<Option<FeedPage>, Unavailable> {
        let request = FeedRequest {
            partner_id,
            place,
            limit,
        };
        self.feeds.ask(request).await
    }
}

impl Deref for PgNode {
    type Target = PgStore;

    fn deref(&self) -> &PgStore {
        &self.store
    }
}

/// A batch that is still running after its process has died holds the lane's row.
async fn open_lane(
    options: &PgConnectOptions,
    node: &NodeIdentity,
    lane: i16,
) -> Result<PgLane, RecoverError> {
    let since = Instant::now();
    loop {
        match PgLane::open(options.clone(), node, lane).await {
            Err(RecoverError::Unavailable(reason)) if since.elapsed() < LANE_PATIENCE => {
                warn!(lane, %reason, "the lane cannot be opened yet");
                tokio::time::sleep(LANE_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

impl Store for PgNode {
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        let (options, node) = (self.store.session(), self.identity.clone());
        let opening = on(&self.store.runtime, async move {
            Ok(open_lane(&options, &node, lane.cast_signed()).await)
        });
        Box::pin(async move {
            let lane = opening.await.map_err(|error| unavailable(&error))??;
            Ok(Box::new(lane) as Box<dyn LaneStore>)
        })
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        Box::pin(self.claims.ask(request))
    }

    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, Receipt)>, Unavailable>> {
        Box::pin(async move {
            let receipts = self
                .store
                .run(move |pool| async move { wallets::receipts(&pool, partner_id).await })
                .await;
            receipts.map_err(|error| unavailable(&error))
        })
    }

    fn load_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(async move {
            let found = self.store.find_stored_order(partner_id, order_id).await;
            found.map_err(|error| unavailable(&error))
        })
    }

    fn load_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        Box::pin(async move {
            let found = self.store.find_payout(partner_id, payout_id).await;
            found.map_err(|error| unavailable(&error))
        })
    }

    fn claim_bought(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Vec<Shelved>, Unavailable>> {
        let node = self.identity.clone();
        Box::pin(async move {
            let claimed = self
                .store
                .run(move |pool| async move { inventory::claim_bought(&pool, &node, purchase_id).await });
            claimed.await.map_err(|error| unavailable(&error))
        })
    }

    fn number_stock(&self, count: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        Box::pin(async move {
            let numbers = self.store.number_stock(count).await;
            numbers.map_err(|error| unavailable(&error))
        })
    }

    fn find_answer(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<KnownAnswer>, Unavailable>> {
        // The look goes on when nobody waits for it any more: it is a task of its own.
        let look = self
            .store
            .run(move |pool| async move { keys::find_answer(&pool, key).await });
        Box::pin(async move {
            let found = tokio::time::timeout(LOOK_UP_PATIENCE, look).await;
            let found = found.unwrap_or_else(|_| Err(silent(LOOK_UP_PATIENCE)));
            found.map_err(|error| unavailable(&error))
        })
    }
}
