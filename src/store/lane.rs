//! A lane's own connection: it writes batches, and after a failure that says nothing it finds out what became of one.
//!
//! Rule: the connection is taken out while a batch is under way and put back only when the server has answered in full.
//! Whatever goes wrong otherwise, it is never used again, and the fence decides.

use std::future::Future;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::journal::{Record, Stale, Verdict};
use vouchsafe_actors::store::{BatchFate, CommitError, LaneStore, RecoverError, StoreFuture, Unavailable};

use super::commit;
use super::connections::silent;
use super::error::{commit_error, unavailable};
use super::keys;
use super::nodes::NodeIdentity;

/// How long a batch, or whatever else is asked on a lane's connection, may take before the connection is given up, and the
/// outcome settled by the fence: longer than every server-side timeout, so that only a connection that is dead gets here.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// How the statements of `commit_batch` are planned: as index probes, whatever the tables' sizes were when that was done. No
/// plan of a lane is made anew, and none is compiled.
const PLANS: [(&str, &str); 5] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// Under which name and generation a lane writes.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    pub(super) node: String,
    pub(super) incarnation: i64,
    pub(super) lane: i16,
    pub(super) generation: i64,
}

/// A lane over Postgres.
pub(super) struct PgLane {
    options: PgConnectOptions,
    fence: Fence,
    connection: Option<PgConnection>,
}

impl PgLane {
    /// Opens a lane: what its predecessor left under way is shut out, and its batches are counted anew.
    pub(super) async fn open(
        options: PgConnectOptions,
        node: &NodeIdentity,
        lane: i16,
    ) -> Result<Self, RecoverError> {
        // So that operators see whose the server's work is.
        let options = options
            .application_name(&format!("vouchsafe lane {lane}"))
            .options(PLANS);
        let mut connection = connect(&options).await?;
        let opened = sqlx::query_scalar(
            "INSERT INTO lanes AS l (node, lane, generation, batch)
             SELECT n.node, $3, 1, 0
               FROM nodes AS n
              WHERE n.node = $1 AND n.incarnation = $2 /* guard: incarnation */
                FOR SHARE OF n
             ON CONFLICT (node, lane) DO UPDATE SET generation = l.generation + 1, batch = 0
             RETURNING generation",
        )
        .bind(&node.name)
        .bind(node.incarnation)
        .bind(lane)
        .fetch_all(&mut connection);
        let generation = in_time(opened).await?.pop();
        let generation = generation.ok_or(RecoverError::Superseded)?;
        Ok(Self {
            options,
            fence: Fence {
                node: node.name.clone(),
                incarnation: node.incarnation,
                lane,
                generation,
            },
            connection: Some(connection),
        })
    }

    async fn write(&mut self, batch: i64, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        let lost = || CommitError::Unknown("the connection was lost before".to_owned());
        let mut connection = self.connection.take().ok_or_else(lost)?;
        let written = commit::commit_batch(&mut connection, &self.fence, batch, records);
        match tokio::time::timeout(GIVE_UP_AFTER, written).await {
            Ok(Ok(verdicts)) => {
                self.connection = Some(connection);
                Ok(verdicts)
            }
            Ok(Err(error)) => {
                let error = commit_error(&error);
                if !matches!(error, CommitError::Unknown(_)) {
                    self.connection = Some(connection);
                }
                Err(error)
            }
            Err(_) => Err(CommitError::Unknown(format!(
                "no answer within {} s",
                GIVE_UP_AFTER.as_secs()
            ))),
        }
    }

    async fn take_up(&mut self, batch: i64) -> Result<BatchFate, RecoverError> {
        self.connection = None;
        let mut connection = connect(&self.options).await?;
        // Waits for the old transaction if it still runs, shuts out one that has not arrived yet, and reads which batch
        // was the last to commit, all by the lock on one row. The node's row is locked before: after a wait for the lane
        // Postgres would not look at the incarnation again, and a later start could have come meanwhile.
        let taken = sqlx::query_as(
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
        )
        .bind(&self.fence.node)
        .bind(self.fence.lane)
        .bind(self.fence.incarnation)
        .fetch_all(&mut connection);
        let taken: Option<(i64, i64)> = in_time(taken).await?.pop();
        let (generation, last) = taken.ok_or(RecoverError::Superseded)?;
        self.fence.generation = generation;
        self.connection = Some(connection);
        Ok(if last == batch {
            BatchFate::Committed
        } else {
            BatchFate::NotWritten
        })
    }

    async fn read_verdicts(&mut self, records: &[Record]) -> Result<Vec<Verdict>, Unavailable> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.options).await?,
        };
        let mut verdicts = Vec::with_capacity(records.len());
        for record in records {
            verdicts.push(in_time(read_verdict(&mut connection, record)).await?);
        }
        self.connection = Some(connection);
        Ok(verdicts)
    }
}

/// The key's row tells whose record is in: the request that it answers, and an answer that is the record's own.
async fn read_verdict(connection: &mut PgConnection, record: &Record) -> Result<Verdict, sqlx::Error> {
    let known = keys::find_answer(&mut *connection, record.claim.key).await?;
    Ok(match known {
        Some(known)
            if known.fingerprint == record.claim.fingerprint && known.answer == record.claim.answer =>
        {
            Verdict::Committed(read_receipt(connection, record).await?)
        }
        Some(known) => Verdict::KeyKnown(known),
        None => Verdict::Stale(Stale::Unclear),
    })
}

async fn read_receipt(
    connection: &mut PgConnection,
    record: &Record,
) -> Result<Option<Receipt>, sqlx::Error> {
    let Some(movement) = &record.movement else {
        return Ok(None);
    };
    let newest: Option<(i64, i64)> =
        sqlx::query_as("SELECT sequence, balance FROM wallets WHERE partner_id = $1 AND currency = $2")
            .bind(record.partner_id.as_uuid())
            .bind(movement.currency.as_str())
            .fetch_optional(connection)
            .await?;
    Ok(newest.map(|(sequence, balance)| Receipt {
        sequence,
        balance: Amount::from_minor(balance),
    }))
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Unavailable> {
    in_time(options.connect()).await
}

/// What may be asked again on another connection, and is given up on one that has gone silent.
async fn in_time<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Unavailable> {
    let done = tokio::time::timeout(GIVE_UP_AFTER, work).await;
    let done = done.unwrap_or_else(|_| Err(silent(GIVE_UP_AFTER)));
    done.map_err(|error| unavailable(&error))
}

impl LaneStore for PgLane {
    fn commit<'a>(
        &'a mut self,
        batch: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        Box::pin(self.write(batch, records))
    }

    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchFate, RecoverError>> {
        Box::pin(self.take_up(batch))
    }

    fn verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(self.read_verdicts(records))
    }
}
