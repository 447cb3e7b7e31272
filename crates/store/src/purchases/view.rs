//! Purchase views for operators, and ending a purchase by an operator's decision.
//!
//! An ended purchase is final: the service never contacts the vendor about it again. The operator settles with the vendor what it
//! sold nevertheless.

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::purchase::view::{LastAnswer, PurchaseFilter, PurchaseState, PurchaseView};

use crate::audit::{self, AuditAction, AuditActor, to_bigint};
use crate::purchases::Purchases;

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
    answer: Option<LastAnswer>,
    quantity: u32,
    kept: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(FromRow)]
struct PurchaseViewRow {
    purchase_id: Uuid,
    partner_id: Uuid,
    order_id: Uuid,
    line: i16,
    vendor: String,
    product_id: String,
    denomination: i64,
    currency: String,
    quantity: i32,
    ended: bool,
    last_response: Option<String>,
    last_message: Option<String>,
    sold: i32,
    kept: i64,
    quarantined: Vec<String>,
    requested_at: OffsetDateTime,
    last_response_at: Option<OffsetDateTime>,
    next_at: OffsetDateTime,
}

impl Purchases {
    /// Lists up to `limit` purchases older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: PurchaseFilter,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<PurchaseView>, sqlx::Error> {
        self.0
            .run(move |pool| async move { list(&pool, filter, before, limit).await })
            .await
    }

    /// Ends a purchase on behalf of an operator. Idempotent.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn end(
        &self,
        purchase_id: Uuid,
        reason: String,
        actor: AuditActor,
    ) -> Result<EndPurchaseOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move { end(&pool, purchase_id, &reason, &actor).await })
            .await
    }
}

async fn list(
    pool: &PgPool,
    filter: PurchaseFilter,
    before: Option<Uuid>,
    limit: usize,
) -> Result<Vec<PurchaseView>, sqlx::Error> {
    let found: Vec<PurchaseViewRow> = sqlx::query_as(
        "SELECT p.*,
                (SELECT count(*) FROM codes AS c WHERE c.purchase_id = p.purchase_id) AS kept
           FROM purchases AS p
          WHERE ($1::text IS NULL OR p.vendor = $1)
            AND ($2::text IS NULL OR p.ended = ($2 = 'ended'))
            AND ($2 IS DISTINCT FROM 'refused' OR p.last_response = 'REFUSED')
            AND ($3::uuid IS NULL OR p.order_id = $3)
            AND ($4::uuid IS NULL OR p.purchase_id < $4)
          ORDER BY p.purchase_id DESC
          LIMIT $5",
    )
    .bind(filter.vendor)
    .bind(filter.state.map(PurchaseState::as_str))
    .bind(filter.order_id.map(OrderId::as_uuid))
    .bind(before)
    .bind(to_bigint(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(PurchaseView::try_from).collect()
}

async fn end(
    pool: &PgPool,
    purchase_id: Uuid,
    reason: &str,
    actor: &AuditActor,
) -> Result<EndPurchaseOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let locked: Option<bool> =
        sqlx::query_scalar("SELECT p.ended FROM purchases AS p WHERE p.purchase_id = $1 FOR UPDATE")
            .bind(purchase_id)
            .fetch_optional(&mut *transaction)
            .await?;
    let Some(ended) = locked else {
        return Ok(EndPurchaseOutcome::NotFound);
    };
    let before = find(&mut transaction, purchase_id).await?;
    if ended {
        return Ok(EndPurchaseOutcome::Ended(Box::new(before)));
    }
    sqlx::query(
        "UPDATE purchases
            SET ended = true,
                last_response = 'ENDED',
                last_message = $2,
                claimed_until = NULL
          WHERE purchase_id = $1",
    )
    .bind(purchase_id)
    .bind(format!("ended by an operator: {reason}"))
    .execute(&mut *transaction)
    .await?;
    let after = find(&mut transaction, purchase_id).await?;
    let subject = purchase_id.to_string();
    let action = AuditAction {
        name: "purchase.end",
        subject: &subject,
    };
    let state_before = PurchaseAuditState::of(&before, None);
    let state_after = PurchaseAuditState::of(&after, Some(reason));
    audit::write(
        &mut transaction,
        actor,
        action,
        Some(&state_before),
        Some(&state_after),
    )
    .await?;
    transaction.commit().await?;
    Ok(EndPurchaseOutcome::Ended(Box::new(after)))
}

async fn find(connection: &mut PgConnection, purchase_id: Uuid) -> Result<PurchaseView, sqlx::Error> {
    let row: PurchaseViewRow = sqlx::query_as(
        "SELECT p.*,
                (SELECT count(*) FROM codes AS c WHERE c.purchase_id = p.purchase_id) AS kept
           FROM purchases AS p
          WHERE p.purchase_id = $1",
    )
    .bind(purchase_id)
    .fetch_one(connection)
    .await?;
    PurchaseView::try_from(row)
}

impl<'a> PurchaseAuditState<'a> {
    fn of(purchase: &'a PurchaseView, reason: Option<&'a str>) -> Self {
        Self {
            order_id: purchase.order_id,
            vendor: &purchase.vendor,
            state: purchase.state,
            answer: purchase.answer,
            quantity: purchase.quantity,
            kept: purchase.kept,
            reason,
        }
    }
}

impl TryFrom<PurchaseViewRow> for PurchaseView {
    type Error = sqlx::Error;

    fn try_from(row: PurchaseViewRow) -> Result<Self, sqlx::Error> {
        let invalid = |column: &str| {
            sqlx::Error::Decode(format!("purchase {} has an invalid {column}", row.purchase_id).into())
        };
        let currency: Currency = row.currency.parse().map_err(|_| invalid("currency"))?;
        let parse_answer = |label: &str| {
            let mut all = LastAnswer::ALL.into_iter();
            all.find(|answer| answer.as_str() == label)
                .ok_or_else(|| invalid("last response"))
        };
        let answer = row.last_response.as_deref().map(parse_answer).transpose()?;
        let state = match (row.ended, answer) {
            (true, _) => PurchaseState::Ended,
            (false, Some(LastAnswer::Refused)) => PurchaseState::Refused,
            (false, _) => PurchaseState::Open,
        };
        Ok(Self {
            purchase_id: row.purchase_id,
            partner_id: PartnerId::from_uuid(row.partner_id),
            order_id: OrderId::from_uuid(row.order_id),
            item: row.line.cast_unsigned(),
            vendor: row.vendor,
            product_id: row.product_id,
            denomination: Amount::from_minor(row.denomination).of(currency),
            currency,
            quantity: row.quantity.cast_unsigned(),
            state,
            answer,
            last_word: row.last_message,
            sold: row.sold.cast_unsigned(),
            kept: u32::try_from(row.kept).unwrap_or(u32::MAX),
            quarantined: row.quarantined,
            requested_at: row.requested_at,
            answered_at: row.last_response_at,
            next_at: (!row.ended).then_some(row.next_at),
        })
    }
}
