//! Findings of a comparison: buffered, spooled to a temporary table, and written in place of the previous
//! result.
//!
//! Lock order: reconciliations, reconciled_orders, drifts. A drift that is found again with the same terms on
//! both sides keeps its id and its resolution.

use sqlx::types::Json;
use sqlx::{Executor as _, PgConnection};
use vouchsafe_domain::ids::{DriftId, OrderId, PartnerId};
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::day::Span;
use vouchsafe_domain::reconciliation::merge::{Comparison, Tally};
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use super::row::{HeldVoucher, RecordedVoucher, StoredTerms};
use super::{ReconciliationRun, results};

/// Buffered findings, one array per column.
#[derive(Default)]
pub(super) struct Findings {
    references: Vec<String>,
    kinds: Vec<Option<DriftKind>>,
    drifts: Vec<Option<DriftId>>,
    codes: Vec<Option<i64>>,
    partners: Vec<Option<PartnerId>>,
    orders: Vec<Option<OrderId>>,
    ours: Vec<Option<Json<StoredTerms>>>,
    theirs: Vec<Option<Json<StoredTerms>>>,
}

impl Findings {
    pub(super) const fn len(&self) -> usize {
        self.references.len()
    }

    /// Adds a finding, attributed to the order that the voucher was bought for.
    pub(super) fn push(
        &mut self,
        comparison: Comparison,
        held: Option<HeldVoucher>,
        recorded: Option<RecordedVoucher>,
    ) {
        let kind = match comparison {
            Comparison::Matched => None,
            Comparison::Drift(kind) => Some(kind),
        };
        let ours = held.as_ref().map(|held| Json((&held.voucher.terms).into()));
        let theirs = recorded
            .as_ref()
            .map(|recorded| Json((&recorded.entry.terms).into()));
        let order = match (&held, &recorded) {
            (Some(held), _) => Some(held.order),
            (None, recorded) => recorded.as_ref().and_then(|recorded| recorded.order),
        };
        self.kinds.push(kind);
        self.drifts.push(kind.map(|_| DriftId::generate()));
        self.codes.push(held.as_ref().map(|held| held.code_id));
        self.partners.push(order.map(|(partner_id, _)| partner_id));
        self.orders.push(order.map(|(_, order_id)| order_id));
        // A matched voucher is not stored, so neither are its terms.
        self.ours.push(ours.filter(|_| kind.is_some()));
        self.theirs.push(theirs.filter(|_| kind.is_some()));
        let reference = held.map(|held| held.voucher.reference);
        let reference = reference.or_else(|| recorded.map(|recorded| recorded.entry.reference));
        self.references.push(reference.unwrap_or_default());
    }

    /// Writes the buffer to the temporary table.
    pub(super) async fn flush(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.len() == 0 {
            return Ok(());
        }
        // Not checked at compile time, when the temporary table does not exist.
        sqlx::query(
            "INSERT INTO pg_temp.found (reference, kind, drift_id, code_id, partner_id, order_id, ours, theirs)
             SELECT *
               FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::uuid[], $6::uuid[], $7::jsonb[], $8::jsonb[])",
        )
        .bind(self.references)
        .bind(self.kinds)
        .bind(self.drifts)
        .bind(self.codes)
        .bind(self.partners)
        .bind(self.orders)
        .bind(self.ours)
        .bind(self.theirs)
        .execute(connection)
        .await
        .map(drop)
    }
}

/// Replaces the previous result.
pub(super) async fn write(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
    span: Span,
    tally: Tally,
) -> Result<ReconciliationSummary, sqlx::Error> {
    load_allocated_vouchers(connection).await?;
    let summary = results::write(connection, run, span, tally).await?;
    write_orders(connection, run).await?;
    write_drifts(connection, run).await?;
    Ok(summary)
}

/// Collects the vouchers that the orders hold, by code.
async fn load_allocated_vouchers(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute("ANALYZE pg_temp.found").await?;
    connection
        .execute(
            "WITH affected_orders AS MATERIALIZED (
                SELECT DISTINCT partner_id, order_id
                  FROM pg_temp.found
                 WHERE order_id IS NOT NULL
             )
             INSERT INTO pg_temp.allocated (code_id, voucher_id)
             SELECT s.code_id, a.voucher_id
               FROM affected_orders AS m
               JOIN allocations AS a ON a.partner_id = m.partner_id AND a.order_id = m.order_id
               JOIN stock AS s ON s.stock_id = a.stock_id
              WHERE a.returned_at IS NULL
             ON CONFLICT (code_id) DO NOTHING",
        )
        .await?;
    connection.execute("ANALYZE pg_temp.allocated").await.map(drop)
}

async fn write_orders(connection: &mut PgConnection, run: &ReconciliationRun) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM reconciled_orders WHERE vendor = $1 AND day = $2",
        run.vendor,
        run.day,
    )
    .execute(&mut *connection)
    .await?;
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query(
        "INSERT INTO reconciled_orders (partner_id, day, vendor, order_id, allocated, matched, drifted, unmatched)
         SELECT f.partner_id,
                $2,
                $1,
                f.order_id,
                count(g.voucher_id),
                count(*) FILTER (WHERE f.kind IS NULL),
                count(*) FILTER (WHERE f.kind IN ('DIFFERS', 'REPEATED')),
                count(*) FILTER (WHERE f.kind IN ('MISSING', 'UNKNOWN'))
           FROM pg_temp.found AS f
           LEFT JOIN pg_temp.allocated AS g ON g.code_id = f.code_id
          WHERE f.order_id IS NOT NULL
          GROUP BY f.partner_id, f.order_id",
    )
    .bind(&run.vendor)
    .bind(run.day)
    .execute(connection)
    .await
    .map(drop)
}

/// A drift whose terms changed on either side is a new drift: the earlier resolution does not apply to it.
async fn write_drifts(connection: &mut PgConnection, run: &ReconciliationRun) -> Result<(), sqlx::Error> {
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query(
        "WITH numbered AS (
            SELECT *, row_number() OVER (PARTITION BY reference, kind ORDER BY code_id) AS occurrence
              FROM pg_temp.found
             WHERE kind IS NOT NULL
         )
         DELETE FROM drifts AS d
          WHERE d.vendor = $1
            AND d.day = $2
            AND NOT EXISTS (
                SELECT
                  FROM numbered AS n
                 WHERE n.reference = d.reference
                   AND n.kind = d.kind
                   AND n.occurrence = d.occurrence
                   AND n.ours IS NOT DISTINCT FROM d.ours
                   AND n.theirs IS NOT DISTINCT FROM d.theirs
            )",
    )
    .bind(&run.vendor)
    .bind(run.day)
    .execute(&mut *connection)
    .await?;
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query(
        "INSERT INTO drifts (drift_id, vendor, day, reference, kind, occurrence, partner_id, order_id, voucher_id, ours, theirs)
         SELECT f.drift_id,
                $1,
                $2,
                f.reference,
                f.kind,
                row_number() OVER (PARTITION BY f.reference, f.kind ORDER BY f.code_id),
                f.partner_id,
                f.order_id,
                g.voucher_id,
                f.ours,
                f.theirs
           FROM pg_temp.found AS f
           LEFT JOIN pg_temp.allocated AS g ON g.code_id = f.code_id
          WHERE f.kind IS NOT NULL
         ON CONFLICT (vendor, day, reference, kind, occurrence) DO UPDATE
            SET partner_id = EXCLUDED.partner_id,
                order_id = EXCLUDED.order_id,
                voucher_id = EXCLUDED.voucher_id",
    )
    .bind(&run.vendor)
    .bind(run.day)
    .execute(connection)
    .await
    .map(drop)
}
