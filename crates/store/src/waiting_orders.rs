//! Orders that wait for vouchers: their demand per SKU, when they are due, and the locks to serve SKUs.
//!
//! Triggers maintain `order_demands` (migrations 0012 and 0013): a change of an order and the end of a
//! purchase make it due.

use std::time::Duration;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::servers::{PrimaryWatch, moved_error};

use sqlx::{Executor as _, PgConnection};
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_actors::ports::vendors::{OrderPurchases, SkuLocks, WaitingOrder};
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::store_error::Unavailable;

use vouchsafe_database::database::Database;

/// Space of the advisory locks of SKUs, among those of two numbers. Any otherwise unused number.
const SKU_LOCKS: i32 = 0x5653_6b75;

/// Shows operators the connection in `pg_stat_activity`.
const LOCKS_NAME: &str = "vouchsafe waiting orders";

/// Taking locks waits for nothing: one that takes longer counts as their loss.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// A node that stops responding without closing its connection loses its locks. It is idle for the length of
/// a round at most.
const LOCKS_IDLE_TIMEOUT: &str = "SET idle_session_timeout = '30s'";

/// The SKUs of fewer due orders are found from the orders. A few rounds.
const FEW_DUE: i64 = 1_024;

/// Number of orders that released stock makes due: a round.
const EXPEDITED_ORDERS: i64 = 256;

/// Bounds the time of one statement after a change of the clock. It is repeated each minute.
const MAX_EXPEDITED: i64 = 10_000;

/// Orders that wait for vouchers.
#[derive(Debug, Clone)]
pub struct WaitingOrders(pub(super) Database);

impl WaitingOrders {
    /// Opens a connection for locks of SKUs. The locks end with it, and when another server becomes the
    /// primary.
    #[boxed]
    pub async fn open_sku_locks(&self) -> Result<PgSkuLocks, StoreError> {
        let servers = self.0.session_servers().with_application_name(LOCKS_NAME);
        let connected = self.0.spawn(async move {
            let connected = tokio::time::timeout(LOCK_TIMEOUT, async {
                let (mut connection, primary) = servers.connect().await?;
                connection.execute(LOCKS_IDLE_TIMEOUT).await?;
                Ok((connection, primary))
            });
            Ok(connected.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
        });
        Ok(PgSkuLocks {
            connection: Some(connected.await?),
            database: self.0.clone(),
        })
    }

    /// Claims orders that are due: no other call returns them before they are due again. Each SKU has an
    /// equal share of `limit`, and at least one order.
    #[boxed]
    pub async fn claim_due(&self, limit: usize) -> Result<Vec<WaitingOrder>, StoreError> {
        // If no more than the oldest of them are due, these are all, and a SKU of which none is due costs
        // nothing. Beyond that, visits the SKUs by skipping along the index to the first of each, and of each
        // only what is due. Claimed rows are locked, so their places are stable, and no estimate of their
        // number makes a join of them. The delay grows with the order's age, so that the visits of an order
        // are few, however long it waits.
        let statement = sqlx::query!(
            r#"WITH RECURSIVE oldest AS MATERIALIZED (
                SELECT d.product_id, d.denomination
                  FROM order_demands AS d
                 WHERE d.next_at <= now()
                 ORDER BY d.next_at
                 LIMIT $2
             ), skus AS (
                (
                 SELECT d.product_id, d.denomination, d.next_at
                   FROM order_demands AS d
                  WHERE (SELECT count(*) FROM oldest) = $2
                  ORDER BY 1, 2, 3
                  LIMIT 1
                )
                UNION ALL
                SELECT n.product_id, n.denomination, n.next_at
                  FROM skus AS s
                 CROSS JOIN LATERAL (
                       SELECT d.product_id, d.denomination, d.next_at
                         FROM order_demands AS d
                        WHERE (d.product_id, d.denomination) > (s.product_id, s.denomination)
                        ORDER BY 1, 2, 3
                        LIMIT 1
                       ) AS n
             ), due AS MATERIALIZED (
                SELECT DISTINCT o.product_id, o.denomination
                  FROM oldest AS o
                 WHERE NOT EXISTS (SELECT FROM skus)
                UNION ALL
                SELECT s.product_id, s.denomination FROM skus AS s WHERE s.next_at <= now()
             ), claimed AS MATERIALIZED (
                SELECT c.row_id
                  FROM due AS s
                 CROSS JOIN LATERAL (
                       SELECT d.ctid AS row_id
                         FROM order_demands AS d
                        WHERE d.product_id = s.product_id AND d.denomination = s.denomination AND d.next_at <= now()
                        ORDER BY d.next_at
                        LIMIT GREATEST($1 / (SELECT count(*) FROM due), 1)
                          FOR UPDATE SKIP LOCKED
                       ) AS c
             ), postponed AS (
                UPDATE order_demands AS d
                   SET next_at = now() + LEAST(GREATEST((now() - d.accepted_at) / 4, interval '250 ms'), interval '5 min')
                 WHERE d.ctid = ANY (ARRAY(SELECT c.row_id FROM claimed AS c))
                RETURNING d.partner_id, d.order_id
             )
             SELECT p.partner_id AS "partner_id: PartnerId", p.order_id AS "order_id: OrderId",
                    (
                    SELECT bool_and(u.ended)
                      FROM purchases AS u
                     WHERE u.partner_id = p.partner_id AND u.order_id = p.order_id
                    ) AS have_ended
               FROM (SELECT DISTINCT * FROM postponed) AS p
              ORDER BY p.order_id"#,
            to_bigint(limit),
            FEW_DUE,
        )
        .map(|row| WaitingOrder {
            partner_id: row.partner_id,
            order_id: row.order_id,
            purchases: match row.have_ended {
                None => OrderPurchases::None,
                Some(false) => OrderPurchases::Open,
                Some(true) => OrderPurchases::Ended,
            },
        });
        self.0.fetch_all(statement).await
    }

    /// Lists up to `limit` orders that wait for a SKU, oldest first, and only those behind `after`.
    #[boxed]
    pub async fn list_for_sku(
        &self,
        sku: Sku,
        after: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<(PartnerId, OrderId)>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT d.partner_id AS "partner_id: PartnerId", d.order_id AS "order_id: OrderId"
                 FROM order_demands AS d
                WHERE d.product_id = $1
                  AND d.denomination = $2
                  AND (d.product_id, d.denomination, d.order_id)
                      > ($1, $2, COALESCE($3, '00000000-0000-0000-0000-000000000000'::uuid))
                ORDER BY d.order_id
                LIMIT $4"#,
            sku.product_id as _,
            sku.denomination as _,
            after.map(OrderId::as_uuid),
            to_bigint(limit),
        )
        .map(|row| (row.partner_id, row.order_id));
        self.0.fetch_all(statement).await
    }

    /// Makes the oldest orders behind `after` that wait for a SKU due at once.
    #[boxed]
    pub async fn expedite(&self, sku: Sku, after: OrderId) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE order_demands AS d
                SET next_at = now()
              WHERE d.ctid = ANY (ARRAY(
                    SELECT e.ctid
                      FROM order_demands AS e
                     WHERE e.product_id = $1 AND e.denomination = $2 AND e.order_id > $3
                     ORDER BY e.order_id
                     LIMIT $4
                       FOR UPDATE SKIP LOCKED
                    ))",
            sku.product_id as _,
            sku.denomination as _,
            after.as_uuid(),
            EXPEDITED_ORDERS,
        );
        self.0.execute(statement).await
    }

    /// Makes orders due that would be due later than `claim_due` ever postpones one: the database's clock was
    /// set back since. Skips rows that a commit has locked, which locks them in another order.
    #[boxed]
    pub async fn expedite_after_clock_change(&self) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE order_demands AS d
                SET next_at = now()
              WHERE d.ctid = ANY (ARRAY(
                    SELECT e.ctid
                      FROM order_demands AS e
                     WHERE e.next_at > now() + interval '5 minutes 10 seconds'
                     LIMIT $1
                       FOR UPDATE SKIP LOCKED
                    ))",
            MAX_EXPEDITED,
        );
        self.0.execute(statement).await
    }
}

/// Locks of SKUs: a connection that has advisory locks.
#[derive(Debug)]
pub struct PgSkuLocks {
    database: Database,
    connection: Option<(PgConnection, PrimaryWatch)>,
}

impl SkuLocks for PgSkuLocks {
    fn lock(&mut self, skus: Vec<Sku>) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>> {
        Box::pin(async move {
            let Some((mut connection, mut primary)) = self.connection.take() else {
                return Err(Unavailable("the locks of SKUs are lost".to_owned()));
            };
            let locked = self.database.spawn(async move {
                let locked = tokio::time::timeout(LOCK_TIMEOUT, relock(&mut connection, skus));
                let locked = tokio::select! {
                    // First: the former primary may still answer, and the other nodes lock at the new one.
                    biased;
                    () = primary.moved() => return Err(moved_error().into()),
                    locked = locked => locked.unwrap_or(Err(sqlx::Error::PoolTimedOut))?,
                };
                Ok(((connection, primary), locked))
            });
            let (connection, locked) = locked.await.map_err(|error| Unavailable(error.to_string()))?;
            self.connection = Some(connection);
            Ok(locked)
        })
    }
}

/// Two SKUs with one hash share a lock, which a connection may take twice.
async fn relock(connection: &mut PgConnection, skus: Vec<Sku>) -> Result<Vec<Sku>, sqlx::Error> {
    sqlx::query!(r#"SELECT pg_advisory_unlock_all() AS "unlocked!: ()""#)
        .execute(&mut *connection)
        .await?;
    if skus.is_empty() {
        return Ok(skus);
    }
    let names: Vec<String> = skus.iter().map(ToString::to_string).collect();
    let locked = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock($1, hashtext(name)) AS "is_locked!" FROM unnest($2::text[]) WITH ORDINALITY AS s (name, n)
            ORDER BY n"#,
        SKU_LOCKS,
        &names,
    );
    let locked = locked.fetch_all(connection).await?;
    let pairs = skus.into_iter().zip(locked);
    Ok(pairs
        .filter_map(|(sku, is_locked)| is_locked.then_some(sku))
        .collect())
}
