//! Reconciliation schedule: due days and their claims by nodes.
//!
//! The database's clock decides, in UTC. A day is due [`AFTER_MIDNIGHT_S`] after its end for up to
//! [`CATCH_UP_DAYS`] days if the vendor had any purchase by then, or when an operator requests it. A claim
//! postpones the day in the same statement, so one node gets it; if that node dies, the day becomes due
//! again.

use time::{Date, OffsetDateTime};
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::vendor::AdapterKind;

use crate::reconciliation::Reconciliations;

/// Delay after midnight, so that vendors have completed their records. Seconds.
pub(super) const AFTER_MIDNIGHT_S: i32 = 2 * 60 * 60;

/// How many days back missed days are compared: a long weekend and some days of reaction.
pub(super) const CATCH_UP_DAYS: i32 = 7;

/// How long an operator's request is retried. Seconds.
const REQUEST_VALID_S: i32 = 24 * 60 * 60;

/// Lifetime of a claim. A longer comparison is safe, because it holds the vendor's lock. Seconds.
const CLAIM_S: i32 = 10 * 60;

/// Initial and maximum delay of the exponential backoff. Seconds.
const RETRY_DELAY_S: (i32, i32) = (60, 60 * 60);

/// A day of a vendor that this node has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDay {
    pub vendor: String,
    pub day: Date,
    pub claimed_at: OffsetDateTime,
}

/// Reconciliation status of a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationStatus {
    pub vendor: String,
    /// Number of unresolved drifts.
    pub open: i64,
    /// The last complete day that was compared.
    pub last_day: Option<Date>,
}

impl Reconciliations {
    /// Claims the oldest due day of a vendor whose adapter lists its sales, except for these vendors.
    #[boxed]
    pub async fn claim(&self, excluded: Vec<String>) -> Result<Option<ClaimedDay>, StoreError> {
        let adapters: Vec<AdapterKind> = AdapterKind::WITH_RECORDS.to_vec();
        let statement = sqlx::query_as!(
            ClaimedDay,
            r#"WITH last_over AS (
                SELECT ((now() - make_interval(secs => $2)) AT TIME ZONE 'UTC')::date - 1 AS day
             ),
             candidates AS (
                SELECT v.vendor_id AS vendor, w.day
                  FROM vendors AS v
                  JOIN reconciliations AS w ON w.vendor = v.vendor_id AND w.requested_until > now()
                 WHERE v.adapter = ANY ($5)
                 UNION
                SELECT v.vendor_id, o.day - ago
                  FROM vendors AS v
                 CROSS JOIN last_over AS o
                 CROSS JOIN generate_series(0, $3 - 1) AS ago
                 WHERE v.adapter = ANY ($5)
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
                           AND r.started_at >= (r.day + 1)::timestamp AT TIME ZONE 'UTC'
                   )
             ),
             due AS (
                SELECT m.vendor, m.day
                  FROM candidates AS m
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
             RETURNING r.vendor, r.day, now() AS "claimed_at!""#,
            &excluded,
            f64::from(AFTER_MIDNIGHT_S),
            CATCH_UP_DAYS,
            f64::from(CLAIM_S),
            adapters as _,
        );
        self.0.fetch_optional(statement).await
    }

    /// Requests the comparison of a day with these vendors and the count of its allocations as soon as
    /// possible, and writes audit entries.
    #[boxed]
    pub async fn request(
        &self,
        day: Date,
        vendors: Vec<String>,
        actor: AuditActor,
    ) -> Result<(), StoreError> {
        transaction!(self.0, "reconciliation.request", async |transaction| {
            for vendor in vendors {
                sqlx::query!(
                    "INSERT INTO reconciliations (vendor, day, requested_until)
                         VALUES ($1, $2, now() + make_interval(secs => $3))
                         ON CONFLICT (vendor, day) DO UPDATE
                            SET requested_until = EXCLUDED.requested_until, next_at = now()",
                    vendor,
                    day,
                    f64::from(REQUEST_VALID_S),
                )
                .execute(&mut **transaction)
                .await?;
                let subject = format!("{vendor} {day}");
                audit::write(
                    transaction,
                    &actor,
                    AuditAction::RunReconciliation,
                    &subject,
                    NO_STATE,
                    NO_STATE,
                )
                .await?;
            }
            // Last: a comparison locks its vendor's row before the row of the day, too.
            sqlx::query!(
                "INSERT INTO reconciled_days (day, requested_until)
                     VALUES ($1, now() + make_interval(secs => $2))
                     ON CONFLICT (day) DO UPDATE SET requested_until = EXCLUDED.requested_until",
                day,
                f64::from(REQUEST_VALID_S),
            )
            .execute(&mut **transaction)
            .await?;
            Ok(())
        })
    }

    /// Records why the comparison of a day failed, and schedules a retry with exponential backoff.
    #[boxed]
    pub async fn record_failure(&self, vendor: String, day: Date, reason: String) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE reconciliations
                SET attempts = attempts + 1,
                    last_error = $3,
                    next_at = now() + make_interval(secs => least($5, $4 * 2 ^ least(attempts, 20)))
              WHERE vendor = $1 AND day = $2",
            vendor,
            day,
            reason,
            f64::from(RETRY_DELAY_S.0),
            f64::from(RETRY_DELAY_S.1),
        );
        self.0.execute(statement).await
    }

    /// Lists the status of each vendor that was ever compared.
    #[boxed]
    pub async fn list_statuses(&self) -> Result<Vec<ReconciliationStatus>, StoreError> {
        let statement = sqlx::query_as!(
            ReconciliationStatus,
            r#"SELECT v.vendor_id AS vendor,
                    (SELECT count(*) FROM drifts AS d WHERE d.vendor = v.vendor_id AND d.resolution <> 'resolved')
                        AS "open!",
                    r.day AS last_day
               FROM vendors AS v
              CROSS JOIN LATERAL (
                    SELECT max(day) FILTER (WHERE started_at >= (day + 1)::timestamp AT TIME ZONE 'UTC') AS day,
                           count(*) AS days
                      FROM reconciliations
                     WHERE vendor = v.vendor_id
                    ) AS r
              WHERE r.days > 0"#,
        );
        self.0.fetch_all(statement).await
    }
}
