//! Reconciliation results per vendor and day.

use sqlx::PgConnection;
use time::{Date, Duration, OffsetDateTime};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::reconciliation::day::{self, AdjacentDays, Span};
use vouchsafe_domain::reconciliation::merge::Tally;
use vouchsafe_domain::reconciliation::result::{
    ReconciledDay, Reconciliation, ReconciliationResult, ReconciliationSummary, RecordsSource,
};

use super::ReconciliationRun;
use crate::reconciliation::Reconciliations;

impl Reconciliations {
    /// Lists the reconciliations of a day by vendor. Not paginated: vendors are created by hand, so there are
    /// few.
    #[boxed]
    pub async fn list(&self, day: Date) -> Result<Vec<Reconciliation>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT vendor, COALESCE(requested_until > now(), false) AS "is_requested!", attempts, next_at,
                    last_error, source AS "source: RecordsSource", started_at, generated_at, recorded, matched,
                    drifted, unmatched, orders_total, vouchers_allocated
               FROM reconciliations
              WHERE day = $1
              ORDER BY vendor COLLATE "C""#,
            day,
        )
        .map(move |row| {
            let result = row.source.zip(row.started_at).zip(row.generated_at);
            let summary = ReconciliationSummary {
                orders_total: row.orders_total.unwrap_or_default(),
                vouchers_allocated: row.vouchers_allocated.unwrap_or_default(),
                matched: row.matched.unwrap_or_default(),
                drifted: row.drifted.unwrap_or_default(),
                unmatched: row.unmatched.unwrap_or_default(),
            };
            Reconciliation {
                vendor: row.vendor,
                day,
                next_attempt_at: (row.is_requested || row.attempts > 0).then_some(row.next_at),
                attempts: row.attempts,
                last_error: row.last_error,
                compared: result.map(|((source, started_at), generated_at)| ReconciliationResult {
                    source,
                    started_at,
                    generated_at,
                    recorded: row.recorded.unwrap_or_default(),
                    summary,
                }),
            }
        });
        self.0.fetch_all(statement).await
    }

    /// Lists up to `limit` days before `before`, newest first. Counts every day: there is a row per vendor
    /// and day.
    #[boxed]
    pub async fn list_days(
        &self,
        before: Option<Date>,
        limit: usize,
    ) -> Result<Vec<ReconciledDay>, StoreError> {
        let days = sqlx::query_as!(
            ReconciledDay,
            r#"SELECT d.day AS "day!",
                      count(r.vendor) AS "vendors!",
                      count(r.generated_at) AS "compared!",
                      count(*) FILTER (WHERE r.attempts > 0) AS "failed!",
                      COALESCE(sum(r.matched), 0)::bigint AS "matched!",
                      COALESCE(sum(r.drifted), 0)::bigint AS "drifted!",
                      COALESCE(sum(r.unmatched), 0)::bigint AS "unmatched!"
                 FROM (SELECT day FROM reconciliations UNION SELECT day FROM reconciled_days) AS d
                 LEFT JOIN reconciliations AS r USING (day)
                WHERE $1::date IS NULL OR d.day < $1
                GROUP BY d.day
                ORDER BY d.day DESC
                LIMIT $2"#,
            before,
            to_bigint(limit),
        );
        self.0
            .run(move |pool| async move { days.fetch_all(&pool).await })
            .await
    }
}

/// Computes the time span of our purchases that the day's records must contain. The previous day counts only
/// if its comparison began after its end.
pub(super) async fn load_span(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
) -> Result<Span, sqlx::Error> {
    let or_same_day = |day: Option<Date>| day.unwrap_or(run.day);
    let neighbours = sqlx::query_as!(
        AdjacentDays,
        "SELECT (SELECT bought_to FROM reconciliations WHERE vendor = $1 AND day = $2 AND started_at >= $4) AS previous_to,
                (SELECT bought_from FROM reconciliations WHERE vendor = $1 AND day = $3) AS next_from",
        run.vendor,
        or_same_day(run.day.previous_day()),
        or_same_day(run.day.next_day()),
        day::midnight(run.day),
    );
    let neighbours = neighbours.fetch_one(&mut *connection).await?;
    let known_until = records_known_until(connection, run).await?;
    Ok(day::comparison_span(run.day, neighbours, known_until))
}

/// Up to when the records are complete: for a file of a day that is not over, the time of its last sale.
async fn records_known_until(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
) -> Result<OffsetDateTime, sqlx::Error> {
    let is_over = run.started_at >= day::midnight(run.day).saturating_add(Duration::DAY);
    if run.source == RecordsSource::Http || is_over {
        return Ok(run.started_at);
    }
    // Not checked at compile time, when the temporary table does not exist.
    let last: Option<OffsetDateTime> = sqlx::query_scalar("SELECT max(sold_at) FROM pg_temp.incoming")
        .fetch_one(connection)
        .await?;
    Ok(last.unwrap_or(day::midnight(run.day)))
}

/// Writes the result, including the counts that the database computes.
pub(super) async fn write(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
    span: Span,
    tally: Tally,
) -> Result<ReconciliationSummary, sqlx::Error> {
    // Not checked at compile time, when the temporary table does not exist.
    let (recorded, orders_total, vouchers_allocated): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM pg_temp.incoming),
                (SELECT count(DISTINCT order_id) FROM pg_temp.found),
                (SELECT count(*) FROM pg_temp.found AS f JOIN pg_temp.allocated AS g ON g.code_id = f.code_id)",
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query!(
        "INSERT INTO reconciliations AS r (vendor, day, source, started_at, generated_at, bought_from, bought_to, recorded, compared,
                                           matched, drifted, unmatched, orders_total, vouchers_allocated)
         VALUES ($1, $2, $3, $4, clock_timestamp(), $5, $6, $7, $8, $9, $10, $11, $12, $13)
         ON CONFLICT (vendor, day) DO UPDATE
            SET requested_until = NULL,
                attempts = 0,
                last_error = NULL,
                source = EXCLUDED.source,
                started_at = EXCLUDED.started_at,
                generated_at = EXCLUDED.generated_at,
                bought_from = EXCLUDED.bought_from,
                bought_to = EXCLUDED.bought_to,
                recorded = EXCLUDED.recorded,
                compared = EXCLUDED.compared,
                matched = EXCLUDED.matched,
                drifted = EXCLUDED.drifted,
                unmatched = EXCLUDED.unmatched,
                orders_total = EXCLUDED.orders_total,
                vouchers_allocated = EXCLUDED.vouchers_allocated",
        run.vendor,
        run.day,
        run.source as _,
        run.started_at,
        span.from,
        span.to,
        recorded,
        tally.compared(),
        tally.matched,
        tally.drifted,
        tally.unmatched,
        orders_total,
        vouchers_allocated,
    )
    .execute(connection)
    .await?;
    Ok(ReconciliationSummary {
        orders_total,
        vouchers_allocated,
        matched: tally.matched,
        drifted: tally.drifted,
        unmatched: tally.unmatched,
    })
}
