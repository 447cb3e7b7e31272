//! Rate limits of the whole deployment: a node exchanges its counts with those of the other nodes through the
//! database.
//!
//! Most requests are decided in memory (see [`vouchsafe_security::shared_window`]). A round each second
//! publishes what was counted, counts the nodes and receives the counts of all; a request for which the node
//! has no share left waits for an exchange of its window. Concurrent exchanges share one statement.
//!
//! While the database does not answer, each node admits its part of what remains. A node that is alone
//! decides alone and publishes its counts for a node that joins and for its own restart.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tracing::{info, warn};
use uuid::Uuid;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_security::rate_limiter::{RateLimitKey, RateLimitKeys, RateLimiter, WindowPublication};
use vouchsafe_security::shared_window::Admission;
use vouchsafe_security::sliding_window::{Exhausted, RateLimitStatus};

use super::node_identity::NodeIdentity;
use super::rate_limit_usage::{self, CountRequestsOp, UsageRequest, UsageResponse};
use vouchsafe_database::batcher::{BatchOp as _, Batcher};
use vouchsafe_database::database::Database;

/// How long the other nodes take at most to learn of a node and to publish their counts, while the database
/// answers in time: a round, and its duration.
const JOIN_DELAY: Duration = Duration::from_secs(2);

const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// A longer round means that the database does not answer in time.
const ROUND_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a request waits for the decision of the database. It takes a millisecond.
const EXCHANGE_TIMEOUT: Duration = Duration::from_millis(500);

/// The rate limits of all nodes.
#[derive(Clone)]
pub struct SharedLimits {
    limiter: Arc<RateLimiter>,
    clock: Arc<dyn Clock>,
    database: Database,
    node: NodeIdentity,
    counts: Batcher<CountRequestsOp>,
    started_at: Instant,
}

impl fmt::Debug for SharedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimits")
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

impl SharedLimits {
    /// Counts the nodes, this one included; a node that is alone loads what was counted before.
    pub(super) async fn start(
        database: Database,
        node: NodeIdentity,
        counts: Batcher<CountRequestsOp>,
        limiter: Arc<RateLimiter>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let shared = Self {
            limiter,
            clock,
            database,
            node,
            counts,
            started_at: Instant::now(),
        };
        let nodes = shared.count_nodes().await?;
        if nodes == 1 {
            shared.load(None).await?;
        }
        shared.limiter.set_nodes(nodes);
        Ok(shared)
    }

    /// Waits until the other nodes know of this one, so that they leave it its share. Call it before the
    /// first request.
    #[boxed]
    pub async fn join(&self) -> Result<(), StoreError> {
        if self.limiter.sharing().nodes > 1 {
            sleep_until(self.started_at + JOIN_DELAY).await;
        }
        self.synchronize().await
    }

    /// Counts an authenticated request, also against the ceiling of its partner if there is one. Returns the
    /// status of what is scarcer.
    ///
    /// # Errors
    /// [`Exhausted`]: the request is over a limit and was not counted, unless other requests reached the
    /// ceiling at the same time: then it counts against its credential.
    #[boxed]
    pub async fn acquire(&self, keys: RateLimitKeys) -> Result<RateLimitStatus, Exhausted> {
        let Some(ceiling) = keys.ceiling else {
            return self.acquire_one(keys.own).await;
        };
        self.limiter.peek(ceiling, self.clock.monotonic())?;
        let own = self.acquire_one(keys.own).await?;
        let total = self.acquire_one(ceiling).await?;
        Ok(if total.remaining < own.remaining {
            total
        } else {
            own
        })
    }

    /// Returns the status of a credential without counting a request, as far as this node knows.
    ///
    /// # Errors
    /// [`Exhausted`] if a request would be refused.
    pub fn peek(&self, keys: RateLimitKeys) -> Result<RateLimitStatus, Exhausted> {
        let now = self.clock.monotonic();
        if let Some(ceiling) = keys.ceiling {
            self.limiter.peek(ceiling, now)?;
        }
        self.limiter.peek(keys.own, now)
    }

    async fn acquire_one(&self, limit_key: RateLimitKey) -> Result<RateLimitStatus, Exhausted> {
        match self.limiter.try_acquire(limit_key, self.clock.monotonic())? {
            Admission::Admitted(status) => Ok(status),
            // Boxed: the future of most requests stays small.
            Admission::ExchangeRequired => Box::pin(self.exchange(limit_key)).await,
        }
    }

    /// Publishes the counts of a window and lets the database decide on a request.
    async fn exchange(&self, limit_key: RateLimitKey) -> Result<RateLimitStatus, Exhausted> {
        let publication = self.limiter.begin_publication(limit_key, self.clock.monotonic());
        let shared = self.clone();
        // A task: what was published is confirmed also if the request stops waiting.
        let counted = self.database.spawn(async move {
            let counted = shared.count(publication, true).await;
            Ok(counted.inspect_err(|error| shared.set_degraded(&error.0)))
        });
        if let Ok(Ok(Ok(is_admitted))) = timeout(EXCHANGE_TIMEOUT, counted).await {
            let (Ok(status) | Err(Exhausted(status))) = self.limiter.peek(limit_key, self.clock.monotonic());
            return match is_admitted {
                true => Ok(status),
                false => Err(Exhausted(RateLimitStatus {
                    remaining: 0,
                    ..status
                })),
            };
        }
        self.limiter.try_acquire_alone(limit_key, self.clock.monotonic())
    }

    /// Runs a round each second. Never returns.
    #[boxed]
    pub async fn run(&self) -> Infallible {
        let mut tick = interval(ROUND_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let shared = self.clone();
            let round = self.database.spawn(async move { shared.synchronize().await });
            tokio::pin!(round);
            let result = match timeout(ROUND_TIMEOUT, &mut round).await {
                Ok(result) => result,
                Err(_) => {
                    self.set_degraded("a round takes too long");
                    round.await
                }
            };
            match result {
                Ok(()) => self.set_recovered(),
                Err(error) => self.set_degraded(&error.to_string()),
            }
        }
    }

    /// Counts the nodes, publishes the counts of this one and receives those of all.
    ///
    /// # Errors
    /// What was not published stays so.
    #[boxed]
    pub async fn synchronize(&self) -> Result<(), StoreError> {
        let nodes = self.count_nodes().await?;
        if nodes == 1 && self.limiter.sharing().nodes > 1 {
            self.load(None).await?;
        }
        self.limiter.set_nodes(nodes);
        self.publish().await
    }

    /// Publishes the last counts, before the node stops.
    #[boxed]
    pub async fn leave(&self) {
        if let Err(error) = self.synchronize().await {
            warn!(error.message = %error, "cannot publish the last counts of rate limits; no other node counts them");
        }
    }

    /// Publishes the counts of this node and loads what the database counts in the windows of these owners. A
    /// node that is alone knows it.
    #[boxed]
    pub async fn refresh(&self, owners: Vec<Uuid>) -> Result<(), StoreError> {
        if self.limiter.sharing().nodes == 1 {
            return Ok(());
        }
        let shared = self.clone();
        // A task: what was published is confirmed also if the caller stops waiting.
        let refreshed = self.database.run_detached(async move {
            shared.publish().await?;
            shared.load(Some(owners)).await
        });
        refreshed.await
    }

    /// Deletes counts that ended.
    #[boxed]
    pub async fn purge(&self) -> Result<(), StoreError> {
        self.database
            .run(|pool| async move { rate_limit_usage::purge(&pool).await })
            .await
    }

    async fn count_nodes(&self) -> Result<u32, StoreError> {
        let node = self.node.clone();
        self.database
            .run(|pool| async move { rate_limit_usage::count_nodes(&pool, &node).await })
            .await
    }

    async fn load(&self, owners: Option<Vec<Uuid>>) -> Result<(), StoreError> {
        let stored = self
            .database
            .run(|pool| async move { rate_limit_usage::load(&pool, owners).await })
            .await?;
        for usage in stored {
            self.limiter
                .apply_view(usage.window, usage.window_s, &usage.view, self.clock.monotonic());
        }
        Ok(())
    }

    /// Sends statements of bounded size one after the other: exchanges of requests run in between.
    async fn publish(&self) -> Result<(), StoreError> {
        let mut publications = self
            .limiter
            .begin_publications(self.clock.monotonic())
            .into_iter();
        let mut result = Ok(());
        loop {
            let batch: Vec<_> = publications.by_ref().take(CountRequestsOp::MAX_BATCH).collect();
            if batch.is_empty() {
                return result;
            }
            if result.is_err() {
                batch
                    .into_iter()
                    .for_each(|publication| self.limiter.restore(publication));
                continue;
            }
            let counted = join_all(
                batch
                    .into_iter()
                    .map(|publication| self.count(publication, false)),
            )
            .await;
            let failed = counted.into_iter().find_map(Result::err);
            result = failed.map_or(Ok(()), |error| {
                Err(sqlx::Error::Io(std::io::Error::other(error.0)).into())
            });
        }
    }

    /// Publishes the counts of a window. Returns whether one more request is admitted, which is counted then.
    async fn count(&self, publication: WindowPublication, wants_one: bool) -> Result<bool, Unavailable> {
        let request = UsageRequest {
            window: publication.window,
            limit: publication.limit,
            published: publication.ages_us().to_vec(),
            wants_one,
        };
        match self.counts.submit(request).await {
            Ok(UsageResponse { is_admitted, view }) => {
                self.limiter.confirm(&publication, &view, self.clock.monotonic());
                Ok(is_admitted)
            }
            Err(error) => {
                self.limiter.restore(publication);
                Err(error)
            }
        }
    }

    fn set_degraded(&self, reason: &str) {
        if !self.limiter.set_degraded(true) && self.limiter.sharing().nodes > 1 {
            warn!(
                error.message = reason,
                "cannot share rate limits with the other nodes; this node admits its part of each quota"
            );
        }
    }

    fn set_recovered(&self) {
        if self.limiter.set_degraded(false) && self.limiter.sharing().nodes > 1 {
            info!("rate limits are shared with the other nodes again");
        }
    }
}
