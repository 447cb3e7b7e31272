//! What came of comparing a day with a vendor?

use serde::Serialize;
use sqlx::PgConnection;
use time::{Date, Duration, OffsetDateTime};
use utoipa::ToSchema;

use super::ReconciliationRun;
use crate::reconciliation::day::{self, AdjacentDays, Span};
use crate::reconciliation::merge::Tally;
use crate::store::PgStore;

/// How books come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    as = RecordsSource,
    description = "How the vendor's books came: `http` (the vendor protocol) or `csv` (a file of an operator)."
)]
pub enum RecordsSource {
    /// By the vendor protocol.
    Http,
    Csv,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReconciliationSummary)]
pub struct ReconciliationSummary {
    /// Orders that the vouchers were bought for.
    #[schema(minimum = 0)]
    pub orders_total: i64,
    /// Vouchers that these orders have.
    #[schema(minimum = 0)]
    pub vouchers_allocated: i64,
    /// Vouchers of which both sides say the same.
    #[schema(minimum = 0)]
    pub matched: i64,
    /// Vouchers that both sides have, and do not agree on.
    #[schema(minimum = 0)]
    pub drifted: i64,
    /// Vouchers that one side alone has.
    #[schema(minimum = 0)]
    pub unmatched: i64,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationResult {
    /// How the books came.
    pub source: RecordsSource,
    /// Before when they were asked for: a day that was not over then was compared as far as it had come.
    pub begun_at: OffsetDateTime,
    /// When it was written.
    pub generated_at: OffsetDateTime,
    /// How many records the books have.
    pub recorded: i64,
    pub summary: ReconciliationSummary,
}

/// A day with a vendor: its result, and what stands in the way of a newer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    pub vendor: String,
    pub day: Date,
    /// Whether it is going to be tried again, and not before when.
    pub next_at: Option<OffsetDateTime>,
    /// How often it was tried in vain since it last succeeded.
    pub attempts: i32,
    /// Why the last attempt failed.
    pub last_word: Option<String>,
    pub compared: Option<ReconciliationResult>,
}

#[derive(sqlx::FromRow)]
pub(super) struct ReconciliationRow {
    vendor: String,
    day: Date,
    wanted: bool,
    attempts: i32,
    next_at: OffsetDateTime,
    last_word: Option<String>,
    source: Option<String>,
    begun_at: Option<OffsetDateTime>,
    generated_at: Option<OffsetDateTime>,
    recorded: Option<i64>,
    matched: Option<i64>,
    drifted: Option<i64>,
    unmatched: Option<i64>,
    orders_total: Option<i64>,
    vouchers_allocated: Option<i64>,
}

impl ReconciliationSummary {
    /// Both together.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self {
            orders_total: self.orders_total + other.orders_total,
            vouchers_allocated: self.vouchers_allocated + other.vouchers_allocated,
            matched: self.matched + other.matched,
            drifted: self.drifted + other.drifted,
            unmatched: self.unmatched + other.unmatched,
        }
    }
}

impl RecordsSource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Csv => "csv",
        }
    }
}

impl PgStore {
    /// What is known of a day, by vendor. Each is made by hand, so they are few.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_reconciliations(&self, day: Date) -> Result<Vec<Reconciliation>, sqlx::Error> {
        let found: Vec<ReconciliationRow> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT *, COALESCE(wanted_until > now(), false) AS wanted
                       FROM reconciliations
                      WHERE day = $1
                      ORDER BY vendor COLLATE \"C\"",
                )
                .bind(day)
                .fetch_all(&pool)
                .await
            })
            .await?;
        Ok(found.into_iter().map(Reconciliation::from).collect())
    }
}

/// Which of ours the books of this day must have. The day before counts where the whole of its books is known.
pub(super) async fn load_span(connection: &mut PgConnection, books: &ReconciliationRun) -> Result<Span, sqlx::Error> {
    let beside = |day: Option<Date>| day.unwrap_or(books.day);
    let (before_to, after_from): (Option<OffsetDateTime>, Option<OffsetDateTime>) = sqlx::query_as(
        "SELECT (SELECT ours_to FROM reconciliations WHERE vendor = $1 AND day = $2 AND begun_at >= $4),
                (SELECT ours_from FROM reconciliations WHERE vendor = $1 AND day = $3)",
    )
    .bind(&books.vendor)
    .bind(beside(books.day.previous_day()))
    .bind(beside(books.day.next_day()))
    .bind(day::midnight(books.day))
    .fetch_one(&mut *connection)
    .await?;
    let known_to = records_known_until(connection, books).await?;
    let neighbours = AdjacentDays {
        previous_to: before_to,
        next_from: after_from,
    };
    Ok(day::comparison_span(books.day, neighbours, known_to))
}

/// Up to when the books are known: a file of a day that is not over is as old as its last sale.
async fn records_known_until(connection: &mut PgConnection, books: &ReconciliationRun) -> Result<OffsetDateTime, sqlx::Error> {
    let is_over = books.begun_at >= day::midnight(books.day).saturating_add(Duration::DAY);
    if books.source == RecordsSource::Http || is_over {
        return Ok(books.begun_at);
    }
    let last: Option<OffsetDateTime> = sqlx::query_scalar("SELECT max(sold_at) FROM pg_temp.incoming")
        .fetch_one(connection)
        .await?;
    Ok(last.unwrap_or(day::midnight(books.day)))
}

/// Writes the result in the place of the earlier one, with what the database counts itself.
pub(super) async fn write(
    connection: &mut PgConnection,
    books: &ReconciliationRun,
    span: Span,
    tally: Tally,
) -> Result<ReconciliationSummary, sqlx::Error> {
    let (recorded, orders_total, vouchers_allocated): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM pg_temp.incoming),
                (SELECT count(DISTINCT order_id) FROM pg_temp.found),
                (SELECT count(*) FROM pg_temp.found AS f JOIN pg_temp.given AS g ON g.code_id = f.code_id)",
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO reconciliations AS r (vendor, day, source, begun_at, generated_at, ours_from, ours_to, recorded, compared,
                                           matched, drifted, unmatched, orders_total, vouchers_allocated)
         VALUES ($1, $2, $3, $4, clock_timestamp(), $5, $6, $7, $8, $9, $10, $11, $12, $13)
         ON CONFLICT (vendor, day) DO UPDATE
            SET wanted_until = NULL,
                attempts = 0,
                last_word = NULL,
                source = EXCLUDED.source,
                begun_at = EXCLUDED.begun_at,
                generated_at = EXCLUDED.generated_at,
                ours_from = EXCLUDED.ours_from,
                ours_to = EXCLUDED.ours_to,
                recorded = EXCLUDED.recorded,
                compared = EXCLUDED.compared,
                matched = EXCLUDED.matched,
                drifted = EXCLUDED.drifted,
                unmatched = EXCLUDED.unmatched,
                orders_total = EXCLUDED.orders_total,
                vouchers_allocated = EXCLUDED.vouchers_allocated",
    )
    .bind(&books.vendor)
    .bind(books.day)
    .bind(books.source.as_str())
    .bind(books.begun_at)
    .bind(span.from)
    .bind(span.to)
    .bind(recorded)
    .bind(tally.compared())
    .bind(tally.matched)
    .bind(tally.drifted)
    .bind(tally.unmatched)
    .bind(orders_total)
    .bind(vouchers_allocated)
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

impl From<ReconciliationRow> for Reconciliation {
    fn from(row: ReconciliationRow) -> Self {
        let summary = ReconciliationSummary {
            orders_total: row.orders_total.unwrap_or_default(),
            vouchers_allocated: row.vouchers_allocated.unwrap_or_default(),
            matched: row.matched.unwrap_or_default(),
            drifted: row.drifted.unwrap_or_default(),
            unmatched: row.unmatched.unwrap_or_default(),
        };
        let source = row.source.map(|word| {
            if word == RecordsSource::Http.as_str() {
                RecordsSource::Http
            } else {
                RecordsSource::Csv
            }
        });
        let known = source.zip(row.begun_at).zip(row.generated_at).zip(row.recorded);
        Self {
            vendor: row.vendor,
            day: row.day,
            next_at: (row.wanted || row.attempts > 0).then_some(row.next_at),
            attempts: row.attempts,
            last_word: row.last_word,
            compared: known.map(|(((source, begun_at), generated_at), recorded)| ReconciliationResult {
                source,
                begun_at,
                generated_at,
                recorded,
                summary,
            }),
        }
    }
}
