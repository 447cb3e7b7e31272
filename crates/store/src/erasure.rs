//! Erasure of personal data of orders and payouts: references, metadata, destinations and reasons. Money,
//! vouchers and the audit trail stay. Triggers of the database remove the texts of a row once it has
//! `erased_at`; events of such an order are read without them.

use std::fmt::Display;

use serde::Serialize;
use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{OrderId, PartnerId, PayoutId};

use vouchsafe_database::database::Database;

/// Orders per transaction: a cancellation of one of them waits for it.
const MAX_ORDERS: usize = 1_000;

/// The result of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureOutcome {
    Erased(ErasedCount),
    /// Rejected: the order is open, or the payout is not decided.
    Open,
    NotFound,
}

/// Rows whose personal data an erasure has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ErasedCount {
    pub orders: u64,
    pub payouts: u64,
}

/// Audited state of an erasure.
#[derive(Serialize)]
struct ErasureAuditState {
    #[serde(flatten)]
    erased: ErasedCount,
    reason: String,
}

impl ErasureAuditState {
    async fn write(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        partner_id: PartnerId,
        action: AuditAction,
        subject: &(impl Display + Sync),
    ) -> Result<(), sqlx::Error> {
        audit::write_of_partner(
            connection,
            actor,
            partner_id,
            action,
            subject,
            NO_STATE,
            Some(self),
        )
        .await
    }
}

/// Erasure of personal data.
#[derive(Debug, Clone)]
pub struct Erasures(pub(super) Database);

impl Erasures {
    /// Erases the personal data of a closed order. Repeating it changes nothing.
    #[boxed]
    pub async fn erase_order(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        reason: String,
        actor: AuditActor,
    ) -> Result<ErasureOutcome, StoreError> {
        transaction!(self.0, "order.erase", async |transaction| {
            let order = sqlx::query!(
                r#"SELECT closed, erased_at IS NOT NULL AS "is_erased!"
                     FROM orders
                    WHERE partner_id = $1 AND order_id = $2
                      FOR UPDATE"#,
                partner_id as _,
                order_id as _,
            );
            let Some(order) = order.fetch_optional(&mut **transaction).await? else {
                return Ok(ErasureOutcome::NotFound);
            };
            if !order.closed {
                return Ok(ErasureOutcome::Open);
            }
            if order.is_erased {
                return Ok(ErasureOutcome::Erased(ErasedCount::default()));
            }
            let statement = sqlx::query!(
                "UPDATE orders SET erased_at = now() WHERE partner_id = $1 AND order_id = $2",
                partner_id as _,
                order_id as _,
            );
            let erased = ErasedCount {
                orders: statement.execute(&mut **transaction).await?.rows_affected(),
                payouts: 0,
            };
            erase_requests(transaction, std::iter::once(order_id.to_string())).await?;
            let state = ErasureAuditState { erased, reason };
            state
                .write(
                    transaction,
                    &actor,
                    partner_id,
                    AuditAction::EraseOrder,
                    &order_id,
                )
                .await?;
            Ok(ErasureOutcome::Erased(erased))
        })
    }

    /// Erases the personal data of a payout that is decided. Repeating it changes nothing.
    #[boxed]
    pub async fn erase_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
        reason: String,
        actor: AuditActor,
    ) -> Result<ErasureOutcome, StoreError> {
        transaction!(self.0, "payout.erase", async |transaction| {
            let payout = sqlx::query!(
                r#"SELECT status <> 'PENDING' AS "is_decided!", erased_at IS NOT NULL AS "is_erased!"
                     FROM payouts
                    WHERE partner_id = $1 AND payout_id = $2
                      FOR UPDATE"#,
                partner_id as _,
                payout_id as _,
            );
            let Some(payout) = payout.fetch_optional(&mut **transaction).await? else {
                return Ok(ErasureOutcome::NotFound);
            };
            if !payout.is_decided {
                return Ok(ErasureOutcome::Open);
            }
            if payout.is_erased {
                return Ok(ErasureOutcome::Erased(ErasedCount::default()));
            }
            let statement = sqlx::query!(
                "UPDATE payouts SET erased_at = now() WHERE partner_id = $1 AND payout_id = $2",
                partner_id as _,
                payout_id as _,
            );
            let erased = ErasedCount {
                orders: 0,
                payouts: statement.execute(&mut **transaction).await?.rows_affected(),
            };
            erase_requests(transaction, std::iter::once(payout_id.to_string())).await?;
            let state = ErasureAuditState { erased, reason };
            state
                .write(
                    transaction,
                    &actor,
                    partner_id,
                    AuditAction::ErasePayout,
                    &payout_id,
                )
                .await?;
            Ok(ErasureOutcome::Erased(erased))
        })
    }

    /// Erases the personal data of the closed ones of the next orders of a partner after `after`; with the
    /// first part also of its decided payouts. Returns what was erased, and the last order of the part;
    /// `None` after the last part.
    #[boxed]
    pub async fn erase_part_of_partner(
        &self,
        partner_id: PartnerId,
        after: Option<OrderId>,
        reason: String,
        actor: AuditActor,
    ) -> Result<(ErasedCount, Option<OrderId>), StoreError> {
        transaction!(self.0, "partner.erase", async |transaction| {
            // However few orders have texts: the part ends after so many orders of the partner.
            let last = sqlx::query_scalar!(
                r#"SELECT order_id AS "order_id: OrderId"
                     FROM orders
                    WHERE partner_id = $1 AND ($2::uuid IS NULL OR order_id > $2)
                    ORDER BY order_id
                   OFFSET $3::bigint - 1
                    LIMIT 1"#,
                partner_id as _,
                after as _,
                to_bigint(MAX_ORDERS),
            );
            let last = last.fetch_optional(&mut **transaction).await?;
            let orders = sqlx::query_scalar!(
                r#"WITH locked AS MATERIALIZED (
                    SELECT o.partner_id, o.order_id
                      FROM orders AS o
                     WHERE o.partner_id = $1
                       AND ($2::uuid IS NULL OR o.order_id > $2)
                       AND ($3::uuid IS NULL OR o.order_id <= $3)
                       AND o.closed
                       AND o.erased_at IS NULL
                       AND num_nonnulls(o.reference, o.metadata, o.timeline) > 0
                     ORDER BY o.partner_id, o.order_id
                       FOR UPDATE
                )
                UPDATE orders AS o
                   SET erased_at = now()
                  FROM locked AS l
                 WHERE o.partner_id = l.partner_id AND o.order_id = l.order_id
                RETURNING o.order_id AS "order_id: OrderId""#,
                partner_id as _,
                after as _,
                last as _,
            );
            let orders = orders.fetch_all(&mut **transaction).await?;
            erase_requests(transaction, orders.iter().map(ToString::to_string)).await?;
            let payouts = if after.is_none() {
                erase_payouts(transaction, partner_id).await?
            } else {
                0
            };
            let erased = ErasedCount {
                orders: orders.len() as u64,
                payouts,
            };
            if erased != ErasedCount::default() {
                let state = ErasureAuditState { erased, reason };
                let action = AuditAction::ErasePersonalData;
                state
                    .write(transaction, &actor, partner_id, action, &partner_id)
                    .await?;
            }
            Ok((erased, last))
        })
    }
}

async fn erase_payouts(connection: &mut PgConnection, partner_id: PartnerId) -> Result<u64, sqlx::Error> {
    let statement = sqlx::query_scalar!(
        r#"WITH locked AS MATERIALIZED (
            SELECT y.partner_id, y.payout_id
              FROM payouts AS y
             WHERE y.partner_id = $1 AND y.status <> 'PENDING' AND y.erased_at IS NULL
             ORDER BY y.partner_id, y.payout_id
               FOR UPDATE
         )
         UPDATE payouts AS y
            SET erased_at = now()
           FROM locked AS l
          WHERE y.partner_id = l.partner_id AND y.payout_id = l.payout_id
         RETURNING y.payout_id AS "payout_id: PayoutId""#,
        partner_id as _,
    );
    let payouts = statement.fetch_all(&mut *connection).await?;
    erase_requests(connection, payouts.iter().map(ToString::to_string)).await?;
    Ok(payouts.len() as u64)
}

/// Removes what second operators see of these orders and payouts. A request that still waits cannot be
/// carried out any more: they are closed and decided.
async fn erase_requests(
    connection: &mut PgConnection,
    objects: impl Iterator<Item = String>,
) -> Result<(), sqlx::Error> {
    let objects: Vec<String> = objects.collect();
    let statement = sqlx::query!(
        "UPDATE change_requests SET details = '{}', reason = NULL WHERE object = ANY ($1)",
        &objects,
    );
    statement.execute(connection).await.map(drop)
}
