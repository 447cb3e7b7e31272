//! Reconciliation of a day as its partner sees it: vouchers bought for its own orders, from all vendors.

use sqlx::PgPool;
use time::Date;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::reconciliation::partner_day::PartnerDay;
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use super::drifts;
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
    let generated_at = sqlx::query_scalar!(
        "SELECT max(generated_at) FROM reconciliations WHERE day = $1",
        day,
    );
    let Some(generated_at) = generated_at.fetch_one(&mut *snapshot).await? else {
        return Ok(None);
    };
    let summary = sqlx::query_as!(
        ReconciliationSummary,
        r#"SELECT count(DISTINCT order_id) AS "orders_total!",
                COALESCE(sum(allocated), 0) AS "vouchers_allocated!",
                COALESCE(sum(matched), 0) AS "matched!",
                COALESCE(sum(drifted), 0) AS "drifted!",
                COALESCE(sum(unmatched), 0) AS "unmatched!"
           FROM reconciled_orders
          WHERE partner_id = $1 AND day = $2"#,
        partner_id as _,
        day,
    );
    let summary = summary.fetch_one(&mut *snapshot).await?;
    let drifts = drifts::list_of_partner(&mut snapshot, partner_id, day, limit).await?;
    snapshot.rollback().await?;
    Ok(Some(PartnerDay {
        summary,
        drifts,
        generated_at,
    }))
}
