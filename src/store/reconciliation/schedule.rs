//! Which day of which vendor is to be compared now, and who does it?
//!
//! Rule: the database's clock decides, in UTC. A day is due once it is over for a while, as long as it is not too long
//! ago, and if something had been bought from the vendor by then; or when an operator has asked for it. Who takes it puts
//! it off in the same statement, so that one node does it; a node that dies leaves it to the next look after that.

use sqlx::PgPool;
use time::{Date, OffsetDateTime};

use super::super::audit::{self, AuditActor, AuditAction, NO_STATE};
use crate::store::PgStore;

/// How long after midnight a day is compared, when vendors have closed their books. Seconds.
const AFTER_MIDNIGHT_S: i32 = 2 * 60 * 60;

/// How many days back a day that was missed is caught up with: a long weekend and some days to notice.
const CATCH_UP_DAYS: i32 = 7;

/// How long what an operator asked for is tried. Seconds.
const REQUEST_VALID_S: i32 = 24 * 60 * 60;

/// How long a node may be silent about what it took before another one looks at it. Comparing itself has a turn of its
/// own, so that a longer one is not disturbed. Seconds.
const CLAIM_S: i32 = 10 * 60;

/// The pause after a first failure, doubled with each; and the longest one. Seconds.
const RETRY_DELAY_S: (i32, i32) = (60, 60 * 60);

/// A day that this node compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDay {
    pub vendor: String,
    pub day: Date,
    /// When it was taken.
    pub claimed_at: OffsetDateTime,
}

/// Where a vendor stands.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ReconciliationStatus {
    pub vendor: String,
    /// Drifts that are not resolved.
    pub open: i64,
    /// The last whole day that was compared.
    pub last_day: Option<Date>,
}

impl PgStore {
    /// Takes the oldest day that is due with a vendor that is asked over HTTP, but for these vendors.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn claim_reconciliation(&self, but_for: Vec<String>) -> Result<Option<ClaimedDay>, sqlx::Error> {
        let found: Option<(String, Date, OffsetDateTime)> = self
            .run(move |pool| async move { claim(&pool, but_for).await })
            .await?;
        Ok(found.map(|(vendor, day, at)| ClaimedDay { vendor, day, claimed_at: at }))
    }

    /// An operator wants these days compared as soon as may be. Tells the trail.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn request_reconciliation(
        &self,
        day: Date,
        vendors: Vec<String>,
        by: AuditActor,
    ) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            for vendor in vendors {
                sqlx::query(
                    "INSERT INTO reconciliations (vendor, day, wanted_until)
                     VALUES ($1, $2, now() + make_interval(secs => $3))
                     ON CONFLICT (vendor, day) DO UPDATE
                        SET wanted_until = EXCLUDED.wanted_until, next_at = now()",
                )
                .bind(&vendor)
                .bind(day)
                .bind(f64::from(REQUEST_VALID_S))
                .execute(&mut *transaction)
                .await?;
                let subject = format!("{vendor} {day}");
                let deed = AuditAction {
                    name: "reconciliation.run",
                    subject: &subject,
                };
                audit::write(&mut transaction, &by, deed, NO_STATE, NO_STATE).await?;
            }
            transaction.commit().await
        })
        .await
    }

    /// Notes that a day could not be compared, and why: it is tried again later, the later the more often it failed.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn record_reconciliation_failure(
        &self,
        vendor: String,
        day: Date,
        last_word: String,
    ) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE reconciliations
                    SET attempts = attempts + 1,
                        last_word = $3,
                        next_at = now() + make_interval(secs => least($5, $4 * 2 ^ least(attempts, 20)))
                  WHERE vendor = $1 AND day = $2",
            )
            .bind(vendor)
            .bind(day)
            .bind(last_word)
            .bind(f64::from(RETRY_DELAY_S.0))
            .bind(f64::from(RETRY_DELAY_S.1))
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
    }

    /// Where each vendor stands that was ever compared with.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_reconciliation_statuses(&self) -> Result<Vec<ReconciliationStatus>, sqlx::Error> {
        self.run(|pool| async move {
            sqlx::query_as(
                "SELECT v.vendor_id AS vendor,
                        (SELECT count(*) FROM drifts AS d WHERE d.vendor = v.vendor_id AND d.resolution <> 'resolved') AS open,
                        r.day AS last_day
                   FROM vendors AS v
                  CROSS JOIN LATERAL (
                        SELECT max(day) FILTER (WHERE begun_at >= (day + 1)::timestamp AT TIME ZONE 'UTC') AS day, count(*) AS days
                          FROM reconciliations
                         WHERE vendor = v.vendor_id
                        ) AS r
                  WHERE r.days > 0",
            )
            .fetch_all(&pool)
            .await
        })
        .await
    }
}

async fn claim(
    pool: &PgPool,
    but_for: Vec<String>,
) -> Result<Option<(String, Date, OffsetDateTime)>, sqlx::Error> {
    sqlx::query_as(
        "WITH over AS (
            SELECT ((now() - make_interval(secs => $2)) AT TIME ZONE 'UTC')::date - 1 AS day
         ),
         meant AS (
            SELECT v.vendor_id AS vendor, w.day
              FROM vendors AS v
              JOIN reconciliations AS w ON w.vendor = v.vendor_id AND w.wanted_until > now()
             WHERE v.adapter = 'http'
             UNION
            SELECT v.vendor_id, o.day - ago
              FROM vendors AS v
             CROSS JOIN over AS o
             CROSS JOIN generate_series(0, $3 - 1) AS ago
             WHERE v.adapter = 'http'
               AND EXISTS (
                    SELECT
                      FROM purchases AS p
                     WHERE p.vendor = v.vendor_id
                       AND p.requested_at < (o.day - ago + 1)::timestamp AT TIME ZONE 'UTC'
               )
               AND NOT EXISTS (
                    SELECT
                      FROM reconciliations AS r
                     WHERE r.vendor = v.vendor_id
                       AND r.day = o.day - ago
                       AND r.begun_at >= (r.day + 1)::timestamp AT TIME ZONE 'UTC'
               )
         ),
         due AS (
            SELECT m.vendor, m.day
              FROM meant AS m
              LEFT JOIN reconciliations AS r ON r.vendor = m.vendor AND r.day = m.day
             WHERE m.vendor <> ALL ($1)
               AND (r.next_at IS NULL OR r.next_at <= now())
             ORDER BY m.day, m.vendor
             LIMIT 1
         )
         INSERT INTO reconciliations AS r (vendor, day, next_at)
         SELECT vendor, day, now() + make_interval(secs => $4)
           FROM due
         ON CONFLICT (vendor, day) DO UPDATE
            SET next_at = EXCLUDED.next_at
          WHERE r.next_at <= now()
         RETURNING r.vendor, r.day, now()",
    )
    .bind(but_for)
    .bind(f64::from(AFTER_MIDNIGHT_S))
    .bind(CATCH_UP_DAYS)
    .bind(f64::from(CLAIM_S))
    .fetch_optional(pool)
    .await
}
