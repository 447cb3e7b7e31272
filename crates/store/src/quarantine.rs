//! Quarantine of stock: withdrawal of what was sold on a lost timeline of the database, and release of the rest.

use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_domain::product::Sku;
use vouchsafe_security::vault::blind_index::BlindIndex;

use super::audit::{self, AuditActor, NO_STATE};
use super::continuity::{self, QuarantineAuditState, SUBJECT};
use super::database::Database;

/// Why quarantined stock may be sold again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseGround {
    /// The database was restored, and the stock was compared with what was sold.
    Compared,
    /// The database lost nothing: a synchronous standby was promoted, or the cluster was moved or upgraded.
    NothingLost,
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    Released,
    /// Rejected: no list of sold vouchers was compared since the quarantine.
    NotCompared,
}

/// Audited state of a comparison with the sold vouchers.
#[derive(Serialize)]
struct ComparisonAuditState<'a> {
    withdrawn: usize,
    kept: usize,
    reason: &'a str,
}

/// A voucher that was sold on the lost timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoldVoucher {
    /// By the id that partners know, which says only whether this database has the sale.
    Voucher(VoucherId),
    /// By the row of its code in the lost database, and its public id there.
    CodeRow(i64, Option<VoucherId>),
    /// By its code.
    Code(BlindIndex),
}

/// The result of the comparison for one voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoldVoucherOutcome {
    /// This database has the sale.
    Known,
    /// It was free and is taken out of sale now.
    Withdrawn,
    /// It belongs to an order or is out of sale; if an order returns it, it is not sold again.
    Kept,
    /// It is not in this database: it was imported after the backup.
    Absent,
    /// This database cannot tell which voucher it is.
    Unidentified,
}

/// The quarantine of stock after a restore or a failover.
#[derive(Debug, Clone)]
pub struct Quarantine(pub(super) Database);

impl Quarantine {
    /// Quarantines all free stock. Repeating it changes only what is free since.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The stock may be quarantined.
    pub async fn start(&self, reason: String, actor: AuditActor) -> Result<(), sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                continuity::quarantine(&mut connection, Some(&reason), &actor).await
            })
            .await
    }

    /// Counts the quarantined vouchers.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn count(&self) -> Result<u64, sqlx::Error> {
        let count = sqlx::query!(
            r#"SELECT count(*) AS "vouchers!"
                 FROM chunks AS c
                CROSS JOIN LATERAL free_stock_v1(c.first_stock_id, c.last_stock_id, '-infinity')
                WHERE c.quarantined AND NOT c.emptied"#,
        );
        let count = self.0.fetch_optional(count.map(|row| row.vouchers)).await?;
        Ok(count.unwrap_or_default().unsigned_abs())
    }

    /// Whether stock is quarantined.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn is_active(&self) -> Result<bool, sqlx::Error> {
        let active = sqlx::query!("SELECT only_row FROM continuity WHERE quarantined_at IS NOT NULL");
        Ok(self
            .0
            .fetch_optional(active.map(|row| row.only_row))
            .await?
            .is_some())
    }

    /// Takes vouchers out of sale that were sold on the lost timeline. Returns a result per voucher. Idempotent.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The vouchers may be out of sale.
    pub async fn withdraw_sold(
        &self,
        sold: Vec<SoldVoucher>,
        reason: String,
        actor: AuditActor,
    ) -> Result<Vec<SoldVoucherOutcome>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                sqlx::query!(
                    "UPDATE continuity SET compared_at = clock_timestamp() WHERE quarantined_at IS NOT NULL"
                )
                .execute(&mut *transaction)
                .await?;
                let outcomes = withdraw_sold(&mut transaction, &sold).await?;
                let count = |outcome| outcomes.iter().filter(|o| **o == outcome).count();
                let state = ComparisonAuditState {
                    withdrawn: count(SoldVoucherOutcome::Withdrawn),
                    kept: count(SoldVoucherOutcome::Kept),
                    reason: &reason,
                };
                audit::write(
                    &mut transaction,
                    &actor,
                    "stock.compare",
                    SUBJECT,
                    NO_STATE,
                    Some(&state),
                )
                .await?;
                transaction.commit().await?;
                Ok(outcomes)
            })
            .await
    }

    /// Releases the quarantined stock except that of the SKUs in `kept`. Stock of SKUs for which orders wait is reserved for
    /// them.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The stock may be released.
    pub async fn release(
        &self,
        ground: ReleaseGround,
        kept: Vec<Sku>,
        reason: String,
        actor: AuditActor,
    ) -> Result<ReleaseOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                if ground == ReleaseGround::Compared && !is_compared(&mut transaction).await? {
                    return Ok(ReleaseOutcome::NotCompared);
                }
                let chunks = release(&mut transaction, &kept).await?;
                let state = QuarantineAuditState {
                    chunks,
                    reason: &reason,
                };
                audit::write(
                    &mut transaction,
                    &actor,
                    "stock.release",
                    SUBJECT,
                    NO_STATE,
                    Some(&state),
                )
                .await?;
                transaction.commit().await?;
                Ok(ReleaseOutcome::Released)
            })
            .await
    }
}

/// Whether the quarantined stock was compared. Locks the row against a quarantine until the transaction ends.
async fn is_compared(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let compared =
        sqlx::query_scalar!(r#"SELECT compared_at IS NOT NULL AS "is_compared!" FROM continuity FOR UPDATE"#);
    Ok(compared.fetch_optional(connection).await?.unwrap_or(true))
}

/// A listed voucher with the newest stock row of its code.
struct SoldRow {
    /// Position in the list, from 1.
    position: i64,
    is_known: bool,
    stock_id: Option<i64>,
}

async fn withdraw_sold(
    connection: &mut PgConnection,
    sold: &[SoldVoucher],
) -> Result<Vec<SoldVoucherOutcome>, sqlx::Error> {
    let rows = find_sold(connection, sold).await?;
    let unknown = rows.iter().filter(|row| !row.is_known);
    let mut stock_ids: Vec<i64> = unknown.filter_map(|row| row.stock_id).collect();
    stock_ids.sort_unstable();
    stock_ids.dedup();
    // In stock id order, the lock order of commits.
    let withdrawn = sqlx::query_scalar!(
        "INSERT INTO allocations (stock_id, withdrawal_reason)
         SELECT s.stock_id, 'void'
           FROM unnest($1::bigint[]) AS s (stock_id)
          ORDER BY s.stock_id
         ON CONFLICT (stock_id) DO NOTHING
         RETURNING stock_id",
        &stock_ids,
    );
    let withdrawn = withdrawn.fetch_all(&mut *connection).await?;
    // Sold to an order here, and to another one on the lost timeline: an order whose code was retrieved cannot return it.
    let kept = sqlx::query!(
        "UPDATE allocations
            SET first_retrieved_at = COALESCE(first_retrieved_at, clock_timestamp())
          WHERE stock_id = ANY ($1) AND order_id IS NOT NULL AND returned_at IS NULL",
        &stock_ids,
    );
    kept.execute(&mut *connection).await?;
    let outcome =
        |(position, voucher): (i64, &SoldVoucher)| match rows.iter().find(|row| row.position == position) {
            Some(row) if row.is_known => SoldVoucherOutcome::Known,
            Some(SoldRow {
                stock_id: Some(stock_id),
                ..
            }) => {
                if withdrawn.contains(stock_id) {
                    SoldVoucherOutcome::Withdrawn
                } else {
                    SoldVoucherOutcome::Kept
                }
            }
            _ if matches!(voucher, SoldVoucher::Voucher(_)) => SoldVoucherOutcome::Unidentified,
            _ => SoldVoucherOutcome::Absent,
        };
    Ok((1..).zip(sold).map(outcome).collect())
}

/// Finds the listed vouchers. A code row above the highest one of the backup names another code here.
async fn find_sold(connection: &mut PgConnection, sold: &[SoldVoucher]) -> Result<Vec<SoldRow>, sqlx::Error> {
    let (mut vouchers, mut code_ids, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for voucher in sold {
        let (voucher_id, code_id, index): (Option<Uuid>, Option<i64>, Option<&[u8]>) = match voucher {
            SoldVoucher::Voucher(voucher_id) => (Some(voucher_id.as_uuid()), None, None),
            SoldVoucher::CodeRow(code_id, voucher_id) => {
                (voucher_id.map(VoucherId::as_uuid), Some(*code_id), None)
            }
            SoldVoucher::Code(index) => (None, None, Some(&index.as_bytes()[..])),
        };
        vouchers.push(voucher_id);
        code_ids.push(code_id);
        indexes.push(index);
    }
    sqlx::query_as!(
        SoldRow,
        // One join with all vouchers: the index of vouchers by id is made for single lookups.
        r#"WITH known AS MATERIALIZED (
               SELECT a.voucher_id
                 FROM unnest($1::uuid[]) AS v (voucher_id)
                 JOIN allocations AS a ON a.voucher_id = v.voucher_id
           )
           SELECT n.position AS "position!",
                  EXISTS (SELECT FROM known AS k WHERE k.voucher_id = n.voucher_id) AS "is_known!",
                  GREATEST(
                      (SELECT max(s.stock_id)
                         FROM codes AS c
                         JOIN stock AS s ON s.code_id = c.code_id
                        WHERE c.blind_index = n.blind_index),
                      (SELECT max(s.stock_id)
                         FROM stock AS s
                        WHERE s.code_id = n.code_id
                          AND s.code_id <= (SELECT q.last_code_id FROM continuity AS q))
                  ) AS stock_id
             FROM unnest($1::uuid[], $2::bigint[], $3::bytea[])
                  WITH ORDINALITY AS n (voucher_id, code_id, blind_index, position)"#,
        vouchers as _,
        code_ids as _,
        indexes as _,
    )
    .fetch_all(connection)
    .await
}

async fn release(connection: &mut PgConnection, kept: &[Sku]) -> Result<u64, sqlx::Error> {
    let (products, denominations): (Vec<&str>, Vec<i64>) = kept
        .iter()
        .map(|sku| (sku.product_id.as_str(), sku.denomination.minor()))
        .unzip();
    // Serializes with a quarantine. One reservation per SKU: waiting orders are served from it in one pass.
    sqlx::query!("SELECT only_row FROM continuity FOR UPDATE")
        .fetch_optional(&mut *connection)
        .await?;
    let released = sqlx::query!(
        "WITH released AS MATERIALIZED (
            SELECT c.chunk_id
              FROM chunks AS c
             WHERE c.quarantined
               AND (c.product_id, c.denomination) NOT IN (SELECT * FROM unnest($1::text[], $2::bigint[]))
             ORDER BY c.chunk_id
               FOR NO KEY UPDATE
         ), reservations AS MATERIALIZED (
            SELECT d.product_id, d.denomination, gen_random_uuid() AS reservation_id
              FROM order_demands AS d
             GROUP BY d.product_id, d.denomination
         )
         UPDATE chunks AS c
            SET quarantined = false,
                reservation_id = COALESCE(
                    c.reservation_id,
                    (SELECT r.reservation_id
                       FROM reservations AS r
                      WHERE r.product_id = c.product_id AND r.denomination = c.denomination)
                )
           FROM released AS t
          WHERE c.chunk_id = t.chunk_id",
        products as _,
        &denominations,
    );
    let chunks = released.execute(&mut *connection).await?.rows_affected();
    sqlx::query!(
        "UPDATE continuity
            SET quarantined_at = NULL, quarantine_reason = NULL, compared_at = NULL, last_code_id = NULL
          WHERE NOT EXISTS (SELECT FROM chunks AS c WHERE c.quarantined)",
    )
    .execute(connection)
    .await?;
    Ok(chunks)
}
