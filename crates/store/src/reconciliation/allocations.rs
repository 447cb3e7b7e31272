//! Allocations of a day: counts of the vouchers of all orders that were settled on it, by partner and by
//! vendor and batch.
//!
//! An order is settled when it is delivered, or closed with a part of it. Every settlement leaves an event,
//! so the events of the day name the candidates; the timeline of the order decides. Bought vouchers are
//! looked up in the vendor's records and drifts.
//!
//! The database's clock decides, in UTC, as for the comparisons with vendors.

use sqlx::{Connection as _, PgConnection, PgPool};
use time::{Date, OffsetDateTime};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, open};
use vouchsafe_domain::reconciliation::allocations::{
    BatchAllocations, DayAllocations, RecordsAvailability, VoucherSource,
};
use vouchsafe_domain::reconciliation::day::{CLOCK_ALLOWANCE, midnight};
use vouchsafe_domain::vendor::AdapterKind;

use super::SESSION_SETTINGS;
use super::schedule::{AFTER_MIDNIGHT_S, CATCH_UP_DAYS};
use crate::reconciliation::Reconciliations;

/// Key of the advisory lock under which a day is counted. Any otherwise unused number.
const ALLOCATIONS_LOCK: i64 = 0x5653_616c_6c6f_6300;

impl Reconciliations {
    /// Counts the allocations of the oldest due day, and returns the day. `None` if no day is due, or another
    /// node counts one.
    ///
    /// # Errors
    /// The day stays due.
    #[boxed]
    pub async fn count_due_day(&self) -> Result<Option<Date>, StoreError> {
        if self
            .0
            .run(|pool| async move { find_due_day(&pool).await })
            .await?
            .is_none()
        {
            return Ok(None);
        }
        let options = self.0.find_primary().await?.options(SESSION_SETTINGS);
        self.0
            .run_detached(async move {
                let mut connection = open(&options).await?;
                let counted = count_due_day(&mut connection).await?;
                connection.close().await?;
                Ok(counted)
            })
            .await
    }

    /// Finds the allocations of a day; `None` if they were not counted yet.
    #[boxed]
    pub async fn find_allocations(&self, day: Date) -> Result<Option<DayAllocations>, StoreError> {
        self.0
            .run(move |pool| async move { find_allocations(&pool, day).await })
            .await
    }
}

/// The oldest day that was requested, or that is over and was not counted since.
async fn find_due_day<'c>(executor: impl sqlx::PgExecutor<'c>) -> Result<Option<Date>, sqlx::Error> {
    let due = sqlx::query_scalar!(
        r#"WITH last_over AS (
            SELECT ((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC')::date - 1 AS day
         )
         SELECT min(d.day) AS day
           FROM (
                SELECT day FROM reconciled_days WHERE requested_until > now()
                 UNION ALL
                SELECT o.day - ago
                  FROM last_over AS o
                 CROSS JOIN generate_series(0, $2 - 1) AS ago
                 WHERE (SELECT created_at FROM deployment) < (o.day - ago + 1)::timestamp AT TIME ZONE 'UTC'
                   AND NOT EXISTS (
                        SELECT
                          FROM reconciled_days AS r
                         WHERE r.day = o.day - ago
                           AND r.started_at >= (r.day + 1)::timestamp AT TIME ZONE 'UTC'
                   )
                ) AS d"#,
        f64::from(AFTER_MIDNIGHT_S),
        CATCH_UP_DAYS,
    );
    due.fetch_one(executor).await
}

async fn count_due_day(connection: &mut PgConnection) -> Result<Option<Date>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let is_locked = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock($1) AS "is_locked!""#,
        ALLOCATIONS_LOCK,
    );
    if !is_locked.fetch_one(&mut *transaction).await? {
        return Ok(None);
    }
    let due = find_due_day(&mut *transaction).await?;
    if let Some(day) = due {
        write_day(&mut transaction, day).await?;
    }
    transaction.commit().await?;
    Ok(due)
}

/// Whether events of the day, which may be in the month before, or its counts may be archived and removed.
async fn is_archived(connection: &mut PgConnection, day: Date) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT
                 FROM log_archives AS a
                WHERE a.log IN ('events', 'reconciliation') AND a.removal_began_at IS NOT NULL AND $1 <= (a.month + interval '1 month')::date
              ) AS "is_archived!""#,
        day,
    )
    .fetch_one(connection)
    .await
}

/// Counts the allocations of a day, in place of the previous counts. Waits for another node that counts a
/// day.
pub(super) async fn write_day(connection: &mut PgConnection, day: Date) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", ALLOCATIONS_LOCK)
        .execute(&mut *connection)
        .await?;
    if is_archived(&mut *connection, day).await? {
        // The day keeps its counts: it cannot be counted again.
        return sqlx::query!(
            "UPDATE reconciled_days SET requested_until = NULL WHERE day = $1",
            day
        )
        .execute(connection)
        .await
        .map(drop);
    }
    sqlx::query!("DELETE FROM reconciled_partners WHERE day = $1", day)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("DELETE FROM reconciled_batches WHERE day = $1", day)
        .execute(&mut *connection)
        .await?;
    let (from, to) = (midnight(day), midnight(day.next_day().unwrap_or(day)));
    // An event is written some time after the timestamp in the order's timeline, by another clock.
    sqlx::query!(
        r#"WITH candidates AS MATERIALIZED (
            SELECT DISTINCT e.partner_id, e.order_id
              FROM feeds AS f
             CROSS JOIN LATERAL (
                    SELECT last_event_before_v2(f.partner_id, $4) AS before_first,
                           last_event_before_v2(f.partner_id, $5) AS last
                   ) AS r
              JOIN events AS e
                ON e.partner_id = f.partner_id
               AND e.number > r.before_first
               AND e.number <= r.last
         ), settled AS MATERIALIZED (
            SELECT o.partner_id, o.order_id
              FROM candidates AS c
              JOIN orders AS o ON o.partner_id = c.partner_id AND o.order_id = c.order_id
             CROSS JOIN LATERAL (
                    SELECT min((t ->> 'at')::timestamptz) FILTER (WHERE t ->> 'status' = 'DELIVERED') AS delivered_at,
                           max((t ->> 'at')::timestamptz) FILTER (WHERE t ->> 'status' = 'PARTIALLY_DELIVERED') AS closed_at
                      FROM jsonb_array_elements(order_timeline_v1(o)) AS t
                   ) AS t
             WHERE o.closed
               AND o.status IN ('DELIVERED', 'PARTIALLY_DELIVERED')
               AND COALESCE(t.delivered_at, t.closed_at) >= $2
               AND COALESCE(t.delivered_at, t.closed_at) < $3
         ), drifted AS MATERIALIZED (
            SELECT DISTINCT ON (vendor, reference) vendor, reference, kind
              FROM drifts
             WHERE kind <> 'UNKNOWN'
             ORDER BY vendor, reference, day DESC, kind
         ), held AS MATERIALIZED (
            SELECT s.partner_id,
                   s.order_id,
                   COALESCE(p.vendor, i.vendor, r.vendor) AS vendor,
                   CASE WHEN p.purchase_id IS NULL THEN 'import' ELSE 'purchase' END AS source,
                   COALESCE(i.batch, '') AS batch,
                   CASE
                       WHEN p.purchase_id IS NULL THEN NULL
                       WHEN d.kind IN ('DIFFERS', 'REPEATED') THEN 'drifted'
                       WHEN d.kind = 'MISSING' THEN 'unmatched'
                       WHEN EXISTS (
                            SELECT
                              FROM vendor_records AS v
                             WHERE v.vendor = p.vendor AND v.reference = c.vendor_reference
                            ) THEN 'matched'
                   END AS verdict
              FROM settled AS s
              JOIN allocations AS a
                ON a.partner_id = s.partner_id
               AND a.order_id = s.order_id
               AND a.returned_at IS NULL
              JOIN stock AS k ON k.stock_id = a.stock_id
              JOIN codes AS c ON c.code_id = k.code_id
              JOIN products AS r ON r.product_id = c.product_id
              LEFT JOIN purchases AS p ON p.purchase_id = c.purchase_id
              LEFT JOIN stock_imports AS i ON i.import_id = c.import_id
              LEFT JOIN drifted AS d ON d.vendor = p.vendor AND d.reference = c.vendor_reference
         ), by_partner AS (
            INSERT INTO reconciled_partners (day, partner_id, orders_total, vouchers_allocated)
            SELECT $1, partner_id, count(DISTINCT order_id), count(*)
              FROM held
             GROUP BY partner_id
         )
         INSERT INTO reconciled_batches (day, vendor, source, batch, orders, vouchers, matched, drifted, unmatched)
         SELECT $1,
                vendor,
                source,
                batch,
                count(DISTINCT order_id),
                count(*),
                count(*) FILTER (WHERE verdict = 'matched'),
                count(*) FILTER (WHERE verdict = 'drifted'),
                count(*) FILTER (WHERE verdict = 'unmatched')
           FROM held
          GROUP BY vendor, source, batch"#,
        day,
        from,
        to,
        from.saturating_sub(CLOCK_ALLOWANCE),
        to.saturating_add(CLOCK_ALLOWANCE),
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "INSERT INTO reconciled_days (day, started_at, generated_at)
         VALUES ($1, now(), clock_timestamp())
         ON CONFLICT (day) DO UPDATE
            SET requested_until = NULL,
                started_at = EXCLUDED.started_at,
                generated_at = EXCLUDED.generated_at",
        day,
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn find_allocations(pool: &PgPool, day: Date) -> Result<Option<DayAllocations>, sqlx::Error> {
    // One snapshot, so that totals and batches belong to the same result.
    let mut snapshot = pool
        .begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let totals = sqlx::query!(
        r#"SELECT d.generated_at AS "generated_at: OffsetDateTime",
                  COALESCE((SELECT sum(orders_total) FROM reconciled_partners WHERE day = d.day), 0)::bigint
                    AS "orders_total!",
                  COALESCE((SELECT sum(vouchers_allocated) FROM reconciled_partners WHERE day = d.day), 0)::bigint
                    AS "vouchers_allocated!"
             FROM reconciled_days AS d
            WHERE d.day = $1
              AND NOT EXISTS (
                  SELECT
                    FROM log_archives AS a
                   WHERE a.log = 'reconciliation'
                     AND a.month = date_trunc('month', d.day::timestamp)::date
                     AND a.removal_began_at IS NOT NULL
                  )"#,
        day,
    );
    let totals = totals.fetch_optional(&mut *snapshot).await?;
    let Some((totals, generated_at)) = totals.and_then(|totals| {
        let generated_at = totals.generated_at?;
        Some((totals, generated_at))
    }) else {
        return Ok(None);
    };
    let adapters: Vec<AdapterKind> = AdapterKind::WITH_RECORDS.to_vec();
    let batches = sqlx::query!(
        r#"SELECT b.vendor, b.source AS "source: VoucherSource", b.batch, b.orders, b.vouchers, b.matched, b.drifted,
                  b.unmatched,
                  EXISTS (SELECT FROM vendors AS v WHERE v.vendor_id = b.vendor AND v.adapter = ANY ($2))
                  OR EXISTS (
                        SELECT
                          FROM reconciliations AS r
                         WHERE r.vendor = b.vendor AND r.day = b.day AND r.generated_at IS NOT NULL
                        ) AS "has_records!"
             FROM reconciled_batches AS b
            WHERE b.day = $1
            ORDER BY b.vendor COLLATE "C", b.source COLLATE "C", b.batch COLLATE "C""#,
        day,
        adapters as _,
    )
    .map(|row| {
        let batch = BatchAllocations {
            vendor: row.vendor,
            source: row.source,
            batch: (!row.batch.is_empty()).then_some(row.batch),
            orders: row.orders,
            vouchers: row.vouchers,
            matched: row.matched,
            drifted: row.drifted,
            unmatched: row.unmatched,
            records: RecordsAvailability::None,
        };
        batch.with_records(row.has_records)
    });
    let batches = batches.fetch_all(&mut *snapshot).await?;
    snapshot.rollback().await?;
    Ok(Some(DayAllocations {
        orders_total: totals.orders_total,
        vouchers_allocated: totals.vouchers_allocated,
        batches,
        generated_at,
    }))
}
