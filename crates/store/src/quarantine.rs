//! Quarantine of stock, and withdrawal of what was sold on a lost timeline of the database.

mod release;

use serde::Serialize;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::VoucherId;

use super::continuity;
use super::stock::{CodeMatch, void_rows};
use vouchsafe_database::database::Database;

pub use self::release::{ReleaseGround, ReleaseOutcome, ReleasedPart, StockRelease};

/// Audited state of a comparison with the sold vouchers.
#[derive(Serialize)]
struct ComparisonAuditState<'a> {
    /// Leaves out those that were out of sale before.
    withdrawn: usize,
    kept: usize,
    reason: &'a str,
}

/// A voucher that was sold on the lost timeline.
#[derive(Debug, Clone)]
pub enum SoldVoucher {
    /// Named by the id that partners know, which says only whether this database has the sale.
    Voucher(VoucherId),
    /// Named by the row of its code in the lost database, and its public id there.
    CodeRow(i64, Option<VoucherId>),
    /// Named by its code.
    Code(CodeMatch),
}

/// The result of the comparison for one voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoldVoucherOutcome {
    /// This database has the sale.
    Known,
    /// It belongs to no order and is out of sale: since this comparison, or before it.
    Withdrawn,
    /// It belongs to an order; if the order returns it, it is not sold again.
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
    /// Quarantines all free stock, at the same cost whatever its amount. Repeating it changes only what is
    /// free since.
    ///
    /// # Errors
    /// The stock may be quarantined.
    #[boxed]
    pub async fn start(&self, reason: String, actor: AuditActor) -> Result<(), StoreError> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                continuity::quarantine(&mut connection, Some(&reason), &actor).await
            })
            .await
    }

    /// Whether stock is quarantined.
    #[boxed]
    pub async fn is_active(&self) -> Result<bool, StoreError> {
        let active = sqlx::query!("SELECT only_row FROM continuity WHERE quarantined_at IS NOT NULL");
        let active = self.0.fetch_optional(active.map(|row| row.only_row)).await?;
        Ok(active.is_some())
    }

    /// Takes vouchers out of sale that were sold on the lost timeline. Returns a result per voucher.
    /// Idempotent.
    ///
    /// # Errors
    /// The vouchers may be out of sale.
    #[boxed]
    pub async fn withdraw_sold(
        &self,
        sold: Vec<SoldVoucher>,
        reason: String,
        actor: AuditActor,
    ) -> Result<Vec<SoldVoucherOutcome>, StoreError> {
        transaction!(self.0, "stock.compare", async |transaction| {
            // Before the first lock: it reads many rows, and commits would wait for it.
            let is_known = find_known(transaction, &sold).await?;
            sqlx::query!(
                "UPDATE continuity SET compared_at = clock_timestamp() WHERE quarantined_at IS NOT NULL"
            )
            .execute(&mut **transaction)
            .await?;
            let (outcomes, withdrawn) = withdraw_sold(transaction, &sold, &is_known).await?;
            let kept = outcomes
                .iter()
                .filter(|outcome| **outcome == SoldVoucherOutcome::Kept);
            let state = ComparisonAuditState {
                withdrawn,
                kept: kept.count(),
                reason: &reason,
            };
            continuity::write_audit_entry(transaction, &actor, AuditAction::CompareStock, &state).await?;
            Ok(outcomes)
        })
    }
}

/// The newest stock row of a sold voucher's code, and the order that has it.
#[derive(PartialEq, Eq)]
struct NewestRow {
    stock_id: Option<i64>,
    partner_id: Option<Uuid>,
    order_id: Option<Uuid>,
}

/// Withdraws the vouchers that this database does not know as sold: voids the free ones, and keeps those of
/// orders from coming back. Returns a result per voucher and the number of vouchers that were free.
///
/// Locks orders, sorted, before their allocations, as commits and retrievals do: a cancellation that has
/// checked an allocation is waited for, and a later one finds it read.
async fn withdraw_sold(
    connection: &mut PgConnection,
    sold: &[SoldVoucher],
    is_known: &[bool],
) -> Result<(Vec<SoldVoucherOutcome>, usize), sqlx::Error> {
    loop {
        let mut attempt = connection.begin().await?;
        let rows = find_newest_rows(&mut attempt, sold).await?;
        let unknown = || {
            rows.iter()
                .zip(is_known)
                .filter_map(|(row, known)| (!known).then_some(row))
        };
        let stock_ids: Vec<i64> = unknown().filter_map(|row| row.stock_id).collect();
        lock_orders(&mut attempt, unknown()).await?;
        let withdrawn = void_rows(&mut attempt, stock_ids.clone()).await?;
        // An order may have sold or returned a voucher between look and lock. Its lock would now come after
        // those of vouchers, so all locks are released and the next attempt takes them in order.
        if find_newest_rows(&mut attempt, sold).await? != rows {
            attempt.rollback().await?;
            continue;
        }
        // Sold to an order here, and to another one on the lost timeline: an order whose code was retrieved
        // cannot return it. The time is that of the audit entry, by which `verify` knows that the code was
        // not read.
        let kept = sqlx::query!(
            "UPDATE allocations
                SET first_retrieved_at = COALESCE(first_retrieved_at, now())
              WHERE stock_id = ANY ($1) AND order_id IS NOT NULL AND returned_at IS NULL",
            &stock_ids,
        );
        kept.execute(&mut *attempt).await?;
        attempt.commit().await?;
        let outcomes = sold.iter().zip(&rows).zip(is_known);
        let outcome = |((voucher, row), is_known): ((&SoldVoucher, &NewestRow), &bool)| match row.stock_id {
            _ if *is_known => SoldVoucherOutcome::Known,
            Some(_) if row.order_id.is_none() => SoldVoucherOutcome::Withdrawn,
            Some(_) => SoldVoucherOutcome::Kept,
            None if matches!(voucher, SoldVoucher::Voucher(_)) => SoldVoucherOutcome::Unidentified,
            None => SoldVoucherOutcome::Absent,
        };
        return Ok((outcomes.map(outcome).collect(), withdrawn.len()));
    }
}

async fn lock_orders(
    connection: &mut PgConnection,
    rows: impl Iterator<Item = &NewestRow>,
) -> Result<(), sqlx::Error> {
    let (partners, orders): (Vec<_>, Vec<_>) = rows.map(|row| (row.partner_id, row.order_id)).unzip();
    sqlx::query!(
        "SELECT
           FROM unnest($1::uuid[], $2::uuid[]) AS n (partner_id, order_id)
           JOIN orders AS o ON o.partner_id = n.partner_id AND o.order_id = n.order_id
          ORDER BY o.partner_id, o.order_id
            FOR NO KEY UPDATE OF o /* guard: compared-order */",
        partners as _,
        orders as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Whether this database has the sale, per voucher.
///
/// A sale that this database has was made before the backup, when the row of its code was the same: the
/// code's allocations are probed. A voucher without a code is searched among those that were sold between the
/// first and the last one of the list, because an id begins with the time of the sale and the index of
/// vouchers covers ranges of pages.
async fn find_known(connection: &mut PgConnection, sold: &[SoldVoucher]) -> Result<Vec<bool>, sqlx::Error> {
    let names = sold.iter().map(|voucher| match voucher {
        SoldVoucher::Voucher(voucher_id) => (None, Some(voucher_id.as_uuid())),
        SoldVoucher::CodeRow(code_id, voucher_id) => (Some(*code_id), voucher_id.map(|id| id.as_uuid())),
        SoldVoucher::Code(_) => (None, None),
    });
    let (code_ids, voucher_ids): (Vec<Option<i64>>, Vec<Option<Uuid>>) = names.unzip();
    let unnamed = code_ids.iter().zip(&voucher_ids);
    let unnamed: Vec<Uuid> = unnamed
        .filter_map(|(code_id, voucher_id)| voucher_id.filter(|_| code_id.is_none()))
        .collect();
    sqlx::query_scalar!(
        r#"WITH sold AS MATERIALIZED (
            SELECT a.voucher_id
              -- OFFSET 0: the planner would else search the index once for each voucher.
              FROM (SELECT a.voucher_id FROM allocations AS a WHERE a.voucher_id BETWEEN $3 AND $4 OFFSET 0) AS a
             WHERE a.voucher_id = ANY ($5)
         )
         SELECT CASE
                WHEN n.code_id IS NULL THEN n.voucher_id IS NOT NULL AND n.voucher_id IN (SELECT s.voucher_id FROM sold AS s)
                ELSE EXISTS (
                     SELECT
                       FROM stock AS s
                       JOIN allocations AS a ON a.stock_id = s.stock_id
                      WHERE s.code_id = n.code_id AND a.voucher_id = n.voucher_id
                     OFFSET 0
                    )
                END AS "is_known!"
           FROM unnest($1::bigint[], $2::uuid[]) WITH ORDINALITY AS n (code_id, voucher_id, position)
          ORDER BY n.position"#,
        code_ids as _,
        voucher_ids as _,
        unnamed.iter().min().copied(),
        unnamed.iter().max().copied(),
        &unnamed,
    )
    .fetch_all(connection)
    .await
}

/// Finds the newest stock row of each voucher's code. A code row above the highest one of the backup names
/// another code here.
async fn find_newest_rows(
    connection: &mut PgConnection,
    sold: &[SoldVoucher],
) -> Result<Vec<NewestRow>, sqlx::Error> {
    let code_ids = sold.iter().map(|voucher| match voucher {
        SoldVoucher::Voucher(_) | SoldVoucher::Code(_) => None,
        SoldVoucher::CodeRow(code_id, _) => Some(*code_id),
    });
    let code_ids: Vec<Option<i64>> = code_ids.collect();
    let (blind_indexes, code_indexes) = CodeMatch::columns(sold.iter().map(|voucher| match voucher {
        SoldVoucher::Voucher(_) | SoldVoucher::CodeRow(..) => None,
        SoldVoucher::Code(found) => Some(found),
    }));
    sqlx::query_as!(
        NewestRow,
        r#"SELECT s.stock_id, a.partner_id AS "partner_id?", a.order_id AS "order_id?"
             FROM (
                  SELECT n.position, COALESCE(
                         -- OFFSET 0: the planner would else search the newest row from the end of the table.
                         (SELECT max(s.stock_id)
                            FROM (SELECT c.code_id FROM codes AS c WHERE c.blind_index = n.blind_index OFFSET 0) AS c
                           CROSS JOIN LATERAL (SELECT s.stock_id FROM stock AS s WHERE s.code_id = c.code_id OFFSET 0) AS s),
                         (SELECT max(s.stock_id)
                            FROM (SELECT c.code_id FROM codes AS c WHERE c.code_index = n.code_index OFFSET 0) AS c
                           CROSS JOIN LATERAL (SELECT s.stock_id FROM stock AS s WHERE s.code_id = c.code_id OFFSET 0) AS s),
                         (SELECT max(s.stock_id)
                            FROM (
                                  SELECT s.stock_id
                                    FROM stock AS s
                                   WHERE s.code_id = n.code_id
                                     AND s.code_id <= (SELECT q.last_code_id FROM continuity AS q)
                                  OFFSET 0
                                 ) AS s)) AS stock_id
                    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY
                         AS n (code_id, blind_index, code_index, position)
                  ) AS s
             LEFT JOIN LATERAL (
                  SELECT a.partner_id, a.order_id
                    FROM allocations AS a
                   WHERE a.stock_id = s.stock_id AND a.returned_at IS NULL
                  OFFSET 0
                 ) AS a ON true
            ORDER BY s.position"#,
        &code_ids as _,
        blind_indexes as _,
        code_indexes as _,
    )
    .fetch_all(connection)
    .await
}
