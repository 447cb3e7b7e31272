//! Reconciliation of a day as its partner sees it: the vouchers of its orders that were settled on the day,
//! and the comparison of those that were bought, from all vendors.

use sqlx::PgPool;
use time::Date;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::reconciliation::partner_day::PartnerDay;
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use super::drifts;
use crate::reconciliation::Reconciliations;

impl Reconciliations {
    /// Finds a partner's part of a day with up to `limit` drifts; `None` if the day was not reconciled.
    #[boxed]
    pub async fn find_partner_day(
        &self,
        partner_id: PartnerId,
        day: Date,
        limit: usize,
    ) -> Result<Option<PartnerDay>, StoreError> {
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
    // The partner's counts of an archived month are gone: none is better than a wrong one.
    let generated_at = sqlx::query_scalar!(
        "SELECT CASE
                    WHEN NOT EXISTS (
                         SELECT
                           FROM log_archives AS a
                          WHERE a.log = 'reconciliation'
                            AND a.month = date_trunc('month', $1::date::timestamp)::date
                            AND a.removal_began_at IS NOT NULL
                        )
                    THEN GREATEST((SELECT max(generated_at) FROM reconciliations WHERE day = $1),
                                  (SELECT generated_at FROM reconciled_days WHERE day = $1))
                END",
        day,
    );
    let Some(generated_at) = generated_at.fetch_one(&mut *snapshot).await? else {
        return Ok(None);
    };
    let summary = sqlx::query_as!(
        ReconciliationSummary,
        r#"SELECT CASE WHEN d.day IS NULL THEN c.orders ELSE COALESCE(p.orders_total, 0) END AS "orders_total!",
                CASE WHEN d.day IS NULL THEN c.allocated ELSE COALESCE(p.vouchers_allocated, 0) END
                    AS "vouchers_allocated!",
                c.matched AS "matched!",
                c.drifted AS "drifted!",
                c.unmatched AS "unmatched!"
           FROM (
                SELECT count(DISTINCT order_id) AS orders,
                       COALESCE(sum(allocated), 0) AS allocated,
                       COALESCE(sum(matched), 0) AS matched,
                       COALESCE(sum(drifted), 0) AS drifted,
                       COALESCE(sum(unmatched), 0) AS unmatched
                  FROM reconciled_orders
                 WHERE partner_id = $1 AND day = $2
                ) AS c
           -- Absent until the allocations of the day are counted.
           LEFT JOIN reconciled_days AS d ON d.day = $2 AND d.generated_at IS NOT NULL
           LEFT JOIN reconciled_partners AS p ON p.day = $2 AND p.partner_id = $1"#,
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
