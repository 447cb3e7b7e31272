//! Reconciliation of a day as its partner sees it: vouchers bought for its own orders, from all vendors.

use sqlx::PgPool;
use time::{Date, OffsetDateTime};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::reconciliation::drift::Drift;
use vouchsafe_domain::reconciliation::partner_day::PartnerDay;
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use super::drifts::DriftRow;
use crate::audit::to_bigint;
use crate::reconciliation::Reconciliations;

impl Reconciliations {
    /// Finds a partner's part of a day with up to `limit` drifts; `None` if no vendor was compared for the day.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_partner_day(
        &self,
        partner_id: PartnerId,
        day: Date,
        limit: usize,
    ) -> Result<Option<PartnerDay>, sqlx::Error> {
        self.0
            .run(move |pool| async move { find_partner_day(&pool, partner_id, day, limit).await })
            .await
    }
}

async fn find_partner_day(
    pool: &PgPool,
    partner_id: PartnerId,
    day: Date,
    limit: usize,
) -> Result<Option<PartnerDay>, sqlx::Error> {
    // One snapshot, so that summary and drifts belong to the same result.
    let mut snapshot = pool
        .begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let generated_at: Option<OffsetDateTime> =
        sqlx::query_scalar("SELECT max(generated_at) FROM reconciliations WHERE day = $1")
            .bind(day)
            .fetch_one(&mut *snapshot)
            .await?;
    let Some(generated_at) = generated_at else {
        return Ok(None);
    };
    let (orders_total, vouchers_allocated, matched, drifted, unmatched): (i64, i64, i64, i64, i64) =
        sqlx::query_as(
            "SELECT count(DISTINCT order_id),
                COALESCE(sum(allocated), 0),
                COALESCE(sum(matched), 0),
                COALESCE(sum(drifted), 0),
                COALESCE(sum(unmatched), 0)
           FROM reconciled_orders
          WHERE partner_id = $1 AND day = $2",
        )
        .bind(partner_id.as_uuid())
        .bind(day)
        .fetch_one(&mut *snapshot)
        .await?;
    let drifts: Vec<DriftRow> = sqlx::query_as(
        "SELECT *
           FROM drifts
          WHERE partner_id = $1 AND day = $2
          ORDER BY drift_id
          LIMIT $3",
    )
    .bind(partner_id.as_uuid())
    .bind(day)
    .bind(to_bigint(limit))
    .fetch_all(&mut *snapshot)
    .await?;
    snapshot.rollback().await?;
    Ok(Some(PartnerDay {
        summary: ReconciliationSummary {
            orders_total,
            vouchers_allocated,
            matched,
            drifted,
            unmatched,
        },
        drifts: drifts
            .into_iter()
            .map(Drift::try_from)
            .collect::<Result<_, _>>()?,
        generated_at,
    }))
}
