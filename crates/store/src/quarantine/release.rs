//! Release of quarantined stock, a part at a time.

use serde::Serialize;
use sqlx::PgConnection;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::product::Sku;

use super::Quarantine;
use crate::continuity;

/// Chunks per transaction: an order that returns vouchers waits for it, about a quarter of a second on a busy
/// machine.
const MAX_CHUNKS: usize = 1_000;

/// Why quarantined stock may be sold again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseGround {
    /// The database was restored, and the stock was compared with what was sold.
    Compared,
    /// The database lost nothing: a synchronous standby was promoted, or the cluster was moved or upgraded.
    NothingLost,
}

/// A part of the quarantined stock was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleasedPart {
    pub vouchers: u64,
    /// More stock is to be released.
    pub has_more: bool,
    /// The number of the quarantine.
    pub quarantine: i64,
    /// Stock is still quarantined.
    pub is_active: bool,
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    Released(ReleasedPart),
    /// Rejected: no list of sold vouchers was compared since the quarantine.
    NotCompared,
    /// Rejected: the stock was quarantined again.
    AnotherQuarantine,
}

/// Which stock is released, and why.
#[derive(Debug, Clone)]
pub struct StockRelease {
    pub ground: ReleaseGround,
    /// The number of the quarantine, if a part of its stock was released before.
    pub quarantine: Option<i64>,
    /// SKUs whose stock stays quarantined.
    pub kept: Vec<Sku>,
    pub reason: String,
}

/// Audited state of a release.
#[derive(Serialize)]
struct ReleaseAuditState<'a> {
    vouchers: u64,
    reason: &'a str,
}

impl Quarantine {
    /// Releases a part of the quarantined stock, except that of the SKUs in `kept`: call it until nothing
    /// more is to be released. Stock of SKUs for which orders wait is reserved for them.
    ///
    /// # Errors
    /// The part may be released.
    #[boxed]
    pub async fn release(
        &self,
        request: StockRelease,
        actor: AuditActor,
    ) -> Result<ReleaseOutcome, StoreError> {
        transaction!(self.0, "stock.release", async |transaction| {
            let outcome = release(transaction, &request).await?;
            if let ReleaseOutcome::Released(part) = &outcome {
                let state = ReleaseAuditState {
                    vouchers: part.vouchers,
                    reason: &request.reason,
                };
                continuity::write_audit_entry(transaction, &actor, AuditAction::ReleaseStock, &state).await?;
            }
            Ok(outcome)
        })
    }
}

/// The lock on `continuity` keeps a quarantine and commits that return vouchers out until the transaction
/// ends.
async fn release(
    connection: &mut PgConnection,
    request: &StockRelease,
) -> Result<ReleaseOutcome, sqlx::Error> {
    let quarantine = sqlx::query!(
        r#"SELECT quarantine_epoch AS number, quarantined_at IS NULL OR compared_at IS NOT NULL AS "is_compared!"
             FROM continuity
              FOR UPDATE"#,
    );
    let (number, is_compared) = match quarantine.fetch_optional(&mut *connection).await? {
        Some(quarantine) => (quarantine.number, quarantine.is_compared),
        None => (0, true),
    };
    if request.quarantine.is_some_and(|expected| expected != number) {
        return Ok(ReleaseOutcome::AnotherQuarantine);
    }
    if request.ground == ReleaseGround::Compared && !is_compared {
        return Ok(ReleaseOutcome::NotCompared);
    }
    let (vouchers, has_more) = release_chunks(&mut *connection, number, &request.kept).await?;
    sqlx::query!(
        "UPDATE continuity
            SET quarantined_at = NULL, quarantine_reason = NULL, compared_at = NULL, last_code_id = NULL
          WHERE NOT EXISTS (SELECT FROM list_quarantined_chunks_v1($1, '{}', '{}', 1))",
        number,
    )
    .execute(&mut *connection)
    .await?;
    let active = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM continuity WHERE quarantined_at IS NOT NULL) AS "is_active!""#
    );
    Ok(ReleaseOutcome::Released(ReleasedPart {
        vouchers,
        has_more,
        quarantine: number,
        is_active: active.fetch_one(connection).await?,
    }))
}

/// Clears chunks for the epoch and takes them from their nodes. Returns the number of their free vouchers,
/// and whether more chunks are to be cleared.
async fn release_chunks(
    connection: &mut PgConnection,
    epoch: i64,
    kept: &[Sku],
) -> Result<(u64, bool), sqlx::Error> {
    let kept = kept
        .iter()
        .map(|sku| (sku.product_id.as_str(), sku.denomination.minor()));
    let (products, denominations): (Vec<&str>, Vec<i64>) = kept.unzip();
    // One reservation per SKU: waiting orders are served from it in one pass.
    let released = sqlx::query!(
        r#"WITH locked AS MATERIALIZED (
            SELECT c.chunk_id, c.product_id, c.denomination
              FROM chunks AS c
             WHERE c.chunk_id = ANY (ARRAY(SELECT list_quarantined_chunks_v1($1, $2, $3, $4)))
             ORDER BY c.chunk_id
               FOR NO KEY UPDATE
         ), reservations AS MATERIALIZED (
            SELECT s.product_id, s.denomination, gen_random_uuid() AS reservation_id
              FROM (SELECT DISTINCT l.product_id, l.denomination FROM locked AS l) AS s
             WHERE EXISTS (
                   SELECT
                     FROM order_demands AS d
                    WHERE d.product_id = s.product_id AND d.denomination = s.denomination
                   )
         ), released AS (
            UPDATE chunks AS c
               SET cleared_epoch = $1,
                   node = NULL,
                   incarnation = NULL,
                   reservation_id = COALESCE(
                       c.reservation_id,
                       (SELECT r.reservation_id
                          FROM reservations AS r
                         WHERE r.product_id = c.product_id AND r.denomination = c.denomination)
                   )
             WHERE c.chunk_id = ANY (ARRAY(SELECT l.chunk_id FROM locked AS l))
            RETURNING c.first_stock_id, c.last_stock_id
         )
         SELECT count(*) AS "chunks!", COALESCE(sum(r.last_stock_id - r.first_stock_id + 1 - a.allocated), 0)::bigint AS "vouchers!"
           FROM released AS r
          CROSS JOIN LATERAL (
                SELECT count(*) AS allocated
                  FROM allocations AS a
                 WHERE a.stock_id BETWEEN r.first_stock_id AND r.last_stock_id
                ) AS a"#,
        epoch,
        products as _,
        &denominations,
        to_bigint(MAX_CHUNKS),
    );
    let released = released.fetch_one(connection).await?;
    Ok((
        released.vouchers.unsigned_abs(),
        released.chunks == to_bigint(MAX_CHUNKS),
    ))
}
