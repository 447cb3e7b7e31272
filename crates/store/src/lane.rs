//! Lane connection: writes batches, and after an error with an unknown outcome determines whether the batch
//! committed.
//!
//! The connection is taken out while a batch is in flight and put back only after a complete response of the
//! server. After any other result it is dropped, and the fence decides the outcome.

use std::future::Future;
use std::time::Duration;

use sqlx::PgConnection;
use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, LaneStore, RecoverError, StoreFuture};
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::servers::{PrimaryWatch, Servers, moved_error};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::store_error::{CommitError, Unavailable};

use super::commit::{Fence, commit_batch};
use super::continuity::{self, ServerIdentity};
use super::idempotency_keys;
use super::node_identity::NodeIdentity;
use vouchsafe_database::connection_pool::timeout_error;
use vouchsafe_database::error::{commit_error, describe, is_read_only, unavailable};

/// Deadline of a statement on a lane's connection. Longer than every server-side timeout, so only a dead
/// connection reaches it; then the connection is dropped and the fence decides the outcome.
const LANE_TIMEOUT: Duration = Duration::from_secs(20);

/// Reason of a quarantine, for the audit trail.
const COMMITS_LOST: &str = "commits that the database acknowledged are missing";

/// Planner settings of `commit_batch`: generic plans of index probes, whatever the table sizes were at plan
/// time. A bitmap scan reads every version that an open snapshot keeps of a row, where an ordered index scan
/// ends at the newest.
const PLANNER_SETTINGS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

pub(super) struct PgLane {
    servers: Servers,
    fence: Fence,
    /// The database of the last connection.
    identity: ServerIdentity,
    /// What the database has shown of the lane. A server with less has lost commits.
    seen: LaneState,
    connection: Option<LaneConnection>,
}

/// The fence of a lane in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LaneState {
    generation: i64,
    /// The last batch that was committed.
    batch: i64,
}

/// A connection, and the primary that it leads to.
type LaneConnection = (PgConnection, PrimaryWatch);

impl PgLane {
    /// Opens a lane with a new generation, which fences off batches in flight, and restarts its batch
    /// numbers.
    pub(super) async fn open(
        servers: &Servers,
        node: &NodeIdentity,
        lane: i16,
    ) -> Result<Self, RecoverError> {
        // Shows operators the lane in `pg_stat_activity`.
        let servers = servers
            .with_application_name(&format!("vouchsafe lane {lane}"))
            .with_settings(PLANNER_SETTINGS);
        let ((mut connection, primary), identity) = connect(&servers).await?;
        let opened = sqlx::query_scalar!(
            "INSERT INTO lanes AS l (node, lane, generation, batch)
             SELECT n.node, $3, 1, 0
               FROM nodes AS n
              WHERE n.node = $1 AND n.incarnation = $2 /* guard: incarnation */
                FOR SHARE OF n
             ON CONFLICT (node, lane) DO UPDATE SET generation = l.generation + 1, batch = 0
             RETURNING generation",
            node.name,
            node.incarnation,
            lane,
        );
        let generation = with_timeout(opened.fetch_all(&mut connection)).await?.pop();
        let generation = generation.ok_or(RecoverError::Superseded)?;
        Ok(Self {
            servers,
            fence: Fence {
                node: node.name.clone(),
                incarnation: node.incarnation,
                lane,
                generation,
            },
            identity,
            seen: LaneState { generation, batch: 0 },
            connection: Some((connection, primary)),
        })
    }

    /// Opens another connection. If the server behind it lacks what this lane has seen, the free stock is
    /// quarantined first.
    async fn reconnect(&mut self) -> Result<LaneConnection, Unavailable> {
        let ((mut connection, primary), identity) = connect(&self.servers).await?;
        if identity.has_other_tables(self.identity) {
            self.servers.record_discontinuity();
        }
        self.identity = identity;
        if let Some(rest) = with_timeout(self.find_loss(&mut connection)).await? {
            let actor = AuditActor::service();
            let quarantine = continuity::quarantine(&mut connection, Some(COMMITS_LOST), &actor);
            with_timeout(quarantine).await?;
            self.servers.record_discontinuity();
            self.seen = rest;
        }
        Ok((connection, primary))
    }

    /// Returns what the database has of the lane if it has lost commits. A later start of the node begins
    /// with other numbers.
    async fn find_loss(&self, connection: &mut PgConnection) -> Result<Option<LaneState>, sqlx::Error> {
        let found = sqlx::query!(
            r#"SELECT n.incarnation AS "incarnation?", l.generation AS "generation?", l.batch AS "batch?"
                 FROM (VALUES ($1::text)) AS me (node)
                 LEFT JOIN nodes AS n ON n.node = me.node
                 LEFT JOIN lanes AS l ON l.node = me.node AND l.lane = $2"#,
            self.fence.node,
            self.fence.lane,
        );
        let found = found.fetch_one(connection).await?;
        if found.incarnation > Some(self.fence.incarnation) {
            return Ok(None);
        }
        let rest = LaneState {
            generation: found.generation.unwrap_or_default(),
            batch: found.batch.unwrap_or_default(),
        };
        let is_lost = found.incarnation < Some(self.fence.incarnation)
            || rest.generation < self.seen.generation
            || rest.batch < self.seen.batch;
        Ok(is_lost.then_some(rest))
    }

    async fn write_batch(&mut self, batch: i64, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        let lost = || CommitError::Unknown("the lane lost its connection earlier".to_owned());
        let (mut connection, mut primary) = self.connection.take().ok_or_else(lost)?;
        let written = commit_batch(&mut connection, &self.fence, batch, records);
        let written = tokio::select! {
            // First: nothing is sent to a former primary, and its late acknowledgement does not count. It may
            // never answer.
            biased;
            () = primary.moved() => Ok(Err(moved_error())),
            written = tokio::time::timeout(LANE_TIMEOUT, written) => written,
        };
        match written {
            Ok(Ok(verdicts)) => {
                self.connection = Some((connection, primary));
                self.seen.batch = batch;
                Ok(verdicts)
            }
            // As a lost connection: the next one leads to a server that accepts writes.
            Ok(Err(error)) if is_read_only(&error) => Err(CommitError::Unknown(describe(&error))),
            Ok(Err(error)) => {
                let error = commit_error(&error);
                if !matches!(error, CommitError::Unknown(_)) {
                    self.connection = Some((connection, primary));
                }
                Err(error)
            }
            Err(_) => Err(CommitError::Unknown(format!(
                "no response within {} s",
                LANE_TIMEOUT.as_secs()
            ))),
        }
    }

    async fn recover_outcome(&mut self, batch: i64) -> Result<BatchOutcome, RecoverError> {
        self.connection = None;
        let (mut connection, primary) = self.reconnect().await?;
        // The lock on the lane's row waits for a running old transaction, the new generation fences off one
        // that arrives later, and the row holds the number of the last committed batch. The node's row is
        // locked first: after a wait for the lane's row Postgres would not evaluate the incarnation again,
        // and a later start could have happened meanwhile.
        let recovered = sqlx::query!(
            "WITH me AS MATERIALIZED (
                SELECT n.node
                  FROM nodes AS n
                 WHERE n.node = $1
                   AND n.incarnation = $3 /* guard: incarnation */
                   FOR SHARE
             )
             UPDATE lanes AS l
                SET generation = l.generation + 1
               FROM me
              WHERE l.node = me.node
                AND l.lane = $2
             RETURNING l.generation, l.batch",
            self.fence.node,
            self.fence.lane,
            self.fence.incarnation,
        );
        let recovered = with_timeout(recovered.fetch_all(&mut connection)).await?.pop();
        let lane = recovered.ok_or(RecoverError::Superseded)?;
        self.seen = LaneState {
            generation: lane.generation,
            batch: lane.batch,
        };
        self.fence.generation = lane.generation;
        self.connection = Some((connection, primary));
        Ok(if lane.batch == batch {
            BatchOutcome::Committed
        } else {
            BatchOutcome::NotWritten
        })
    }

    async fn read_verdicts(&mut self, records: &[Record]) -> Result<Vec<Verdict>, Unavailable> {
        let (mut connection, primary) = match self.connection.take() {
            Some(connection) => connection,
            None => self.reconnect().await?,
        };
        let mut verdicts = Vec::with_capacity(records.len());
        for record in records {
            verdicts.push(with_timeout(read_verdict(&mut connection, record)).await?);
        }
        self.connection = Some((connection, primary));
        Ok(verdicts)
    }
}

/// A record is committed if its key's row has its fingerprint and its response.
async fn read_verdict(connection: &mut PgConnection, record: &Record) -> Result<Verdict, sqlx::Error> {
    let stored = idempotency_keys::find_response(&mut *connection, record.claim.key).await?;
    Ok(match stored {
        Some(stored)
            if stored.fingerprint == record.claim.fingerprint && stored.response == record.claim.response =>
        {
            Verdict::Committed(read_receipt(connection, record).await?)
        }
        Some(stored) => Verdict::KeyKnown(stored),
        None => Verdict::Stale(StaleReason::Unclear),
    })
}

async fn read_receipt(
    connection: &mut PgConnection,
    record: &Record,
) -> Result<Option<WalletState>, sqlx::Error> {
    let Some(movement) = &record.movement else {
        return Ok(None);
    };
    sqlx::query_as!(
        WalletState,
        r#"SELECT sequence, balance AS "balance: Amount" FROM wallets WHERE partner_id = $1 AND currency = $2"#,
        record.partner_id as _,
        movement.currency as _,
    )
    .fetch_optional(connection)
    .await
}

async fn connect(servers: &Servers) -> Result<(LaneConnection, ServerIdentity), Unavailable> {
    with_timeout(async {
        let (mut connection, primary) = servers.connect().await?;
        // Before anything commits: a connection belongs to one server, which cannot change its timeline.
        let identity = continuity::check(&mut connection).await?;
        Ok(((connection, primary), identity))
    })
    .await
}

/// Runs idempotent work with the lane timeout.
async fn with_timeout<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Unavailable> {
    let result = tokio::time::timeout(LANE_TIMEOUT, work).await;
    let result = result.unwrap_or_else(|_| Err(timeout_error(LANE_TIMEOUT)));
    result.map_err(|error| unavailable(&error))
}

impl LaneStore for PgLane {
    fn commit<'a>(
        &'a mut self,
        batch: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        Box::pin(self.write_batch(batch, records))
    }

    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>> {
        Box::pin(self.recover_outcome(batch))
    }

    fn load_verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(self.read_verdicts(records))
    }
}
