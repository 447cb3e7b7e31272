//! Purchase views for operators, and ending a purchase by an operator's decision.
//!
//! An ended purchase is final: the service never contacts the vendor about it again. The operator settles
//! with the vendor what it sold nevertheless.

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use uuid::Uuid;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::purchase::view::{LastResponse, PurchaseFilter, PurchaseState, PurchaseView};

use crate::purchases::Purchases;
use vouchsafe_database::database::Statement;

/// Result of ending a purchase.
#[derive(Debug, Clone, PartialEq)]
pub enum EndPurchaseOutcome {
    /// The purchase has ended, now or earlier.
    Ended(Box<PurchaseView>),
    NotFound,
}

/// Audited state. Contains no code, since no stored text quotes the vendor.
#[derive(Serialize)]
struct PurchaseAuditState<'a> {
    order_id: OrderId,
    vendor: &'a str,
    state: PurchaseState,
    last_response: Option<LastResponse>,
    quantity: u32,
    imported: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Selects [`PurchaseView`]s under a condition.
macro_rules! select_views {
    ($condition:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            r#"SELECT p.purchase_id, p.partner_id AS "partner_id: PartnerId", p.order_id AS "order_id: OrderId", p.line,
                      p.vendor, p.product_id, p.denomination AS "denomination: Amount",
                      p.currency AS "currency: Currency", p.quantity, p.ended,
                      p.last_response AS "last_response: LastResponse", p.last_message, p.sold,
                      (SELECT count(*) FROM codes AS c WHERE c.purchase_id = p.purchase_id) AS "kept!", p.quarantined,
                      p.requested_at, p.last_response_at, p.next_at
                 FROM purchases AS p
                WHERE "# + $condition,
            $($argument),+
        )
        .map(|row| PurchaseView {
            purchase_id: row.purchase_id,
            partner_id: row.partner_id,
            order_id: row.order_id,
            item: row.line.cast_unsigned(),
            vendor: row.vendor,
            product_id: row.product_id,
            denomination: row.denomination.of(row.currency),
            currency: row.currency,
            quantity: row.quantity.cast_unsigned(),
            state: match (row.ended, row.last_response) {
                (true, _) => PurchaseState::Ended,
                (false, Some(LastResponse::Refused)) => PurchaseState::Refused,
                (false, _) => PurchaseState::Open,
            },
            last_response: row.last_response,
            last_message: row.last_message,
            sold: row.sold.cast_unsigned(),
            imported: u32::try_from(row.kept).unwrap_or(u32::MAX),
            quarantined: row.quarantined,
            requested_at: row.requested_at,
            last_response_at: row.last_response_at,
            next_attempt_at: (!row.ended).then_some(row.next_at),
        })
    };
}

impl Purchases {
    /// Finds a purchase.
    #[boxed]
    pub async fn find_view(&self, purchase_id: Uuid) -> Result<Option<PurchaseView>, StoreError> {
        self.0.fetch_optional(find(purchase_id)).await
    }

    /// Lists up to `limit` purchases older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: PurchaseFilter,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<PurchaseView>, StoreError> {
        let statement = select_views!(
            "($1::text IS NULL OR p.vendor = $1)
                AND ($2::text IS NULL OR p.ended = ($2 = 'ended'))
                AND ($2 IS DISTINCT FROM 'refused' OR p.last_response = 'REFUSED')
                AND ($3::uuid IS NULL OR p.order_id = $3)
                AND ($4::uuid IS NULL OR p.purchase_id < $4)
              ORDER BY p.purchase_id DESC
              LIMIT $5",
            filter.vendor,
            filter.state.map(|state| state.into_str()),
            filter.order_id as _,
            before,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Ends a purchase on behalf of an operator. Idempotent.
    #[boxed]
    pub async fn end(
        &self,
        purchase_id: Uuid,
        reason: String,
        actor: AuditActor,
    ) -> Result<EndPurchaseOutcome, StoreError> {
        transaction!(self.0, "purchase.end", async |transaction| {
            end(transaction, purchase_id, &reason, &actor).await
        })
    }
}

async fn end(
    transaction: &mut PgConnection,
    purchase_id: Uuid,
    reason: &str,
    actor: &AuditActor,
) -> Result<EndPurchaseOutcome, sqlx::Error> {
    let locked = sqlx::query_scalar!(
        "SELECT p.ended FROM purchases AS p WHERE p.purchase_id = $1 FOR UPDATE",
        purchase_id,
    );
    let Some(ended) = locked.fetch_optional(&mut *transaction).await? else {
        return Ok(EndPurchaseOutcome::NotFound);
    };
    let before = find(purchase_id).fetch_one(&mut *transaction).await?;
    if ended {
        return Ok(EndPurchaseOutcome::Ended(Box::new(before)));
    }
    sqlx::query!(
        "UPDATE purchases
            SET ended = true,
                last_response = 'ENDED',
                last_message = $2,
                claimed_until = NULL
          WHERE purchase_id = $1",
        purchase_id,
        format!("ended by an operator: {reason}"),
    )
    .execute(&mut *transaction)
    .await?;
    let after = find(purchase_id).fetch_one(&mut *transaction).await?;
    let state_before = PurchaseAuditState::of(&before, None);
    let state_after = PurchaseAuditState::of(&after, Some(reason));
    audit::write_of_partner(
        transaction,
        actor,
        after.partner_id,
        AuditAction::EndPurchase,
        &purchase_id,
        Some(&state_before),
        Some(&state_after),
    )
    .await?;
    Ok(EndPurchaseOutcome::Ended(Box::new(after)))
}

fn find(
    purchase_id: Uuid,
) -> Statement<impl FnMut(PgRow) -> Result<PurchaseView, sqlx::Error> + Send + use<>> {
    select_views!("p.purchase_id = $1", purchase_id)
}

impl<'a> PurchaseAuditState<'a> {
    fn of(purchase: &'a PurchaseView, reason: Option<&'a str>) -> Self {
        Self {
            order_id: purchase.order_id,
            vendor: &purchase.vendor,
            state: purchase.state,
            last_response: purchase.last_response,
            quantity: purchase.quantity,
            imported: purchase.imported,
            reason,
        }
    }
}
