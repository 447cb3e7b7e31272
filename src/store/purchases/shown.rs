//! Purchases as operators look at them, and the one word that they may say: nothing more comes of it.
//!
//! Rule: an operator's word is final for us. What the vendor sold all the same is between the two of them; nothing of it is
//! asked for again.

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::money::{Amount, Currency, Money};

use super::words::LastAnswer;
use crate::store::PgStore;
use crate::store::audit::{self, By, Deed, rows};

/// Where a purchase stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PurchaseState {
    /// It goes on.
    Open,
    /// It goes on, and the vendor's last answer was refused.
    Refused,
    /// Nothing more comes of it.
    Ended,
}

impl PurchaseState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Open, Self::Refused, Self::Ended];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Ended => "ended",
        }
    }
}

/// Which purchases a list shows; `None` is any.
#[derive(Debug, Clone, Default)]
pub struct PurchaseFilter {
    pub vendor: Option<String>,
    /// That stand here. What was refused is open, too.
    pub state: Option<PurchaseState>,
    pub order_id: Option<OrderId>,
}

/// A purchase, as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Purchase)]
pub struct ShownPurchase {
    /// Its id, which is the vendor's idempotency key.
    #[schema(value_type = String)]
    pub purchase_id: Uuid,
    /// Whose order it is for.
    pub partner_id: PartnerId,
    /// Which order.
    pub order_id: OrderId,
    /// Which item of the order, from 0.
    pub item: u16,
    /// From whom.
    pub vendor: String,
    /// What is bought.
    pub product_id: String,
    /// At which face value.
    pub denomination: Money,
    /// Of what.
    pub currency: Currency,
    /// How many were asked for.
    pub quantity: u32,
    /// Where it stands.
    pub state: PurchaseState,
    /// What the vendor said last, in a word; null before it said anything.
    #[schema(required)]
    pub answer: Option<LastAnswer>,
    /// Why it is not all bought, or was ended; null where there is nothing to say.
    #[schema(required)]
    pub last_word: Option<String>,
    /// How many the vendor says that it has sold.
    pub sold: u32,
    /// How many of them were taken in.
    pub kept: u32,
    /// The vendor's names of those that were sold before: they are never taken in.
    pub quarantined: Vec<String>,
    /// When it was written down.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    pub requested_at: OffsetDateTime,
    /// When the vendor was heard last.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub answered_at: Option<OffsetDateTime>,
    /// When it is asked about again; null once it has ended.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub next_at: Option<OffsetDateTime>,
}

/// What became of the wish to end a purchase.
#[derive(Debug, Clone, PartialEq)]
pub enum EndPurchase {
    /// Nothing more comes of it; that may have been so before.
    Ended(Box<ShownPurchase>),
    /// There is none with this id.
    NotFound,
}

/// What the trail says of one that was ended. No code: a vendor's word never has one.
#[derive(Serialize)]
struct Standing<'a> {
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
struct ShownRow {
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
    answer: Option<String>,
    last_word: Option<String>,
    sold: i32,
    kept: i64,
    quarantined: Vec<String>,
    requested_at: OffsetDateTime,
    answered_at: Option<OffsetDateTime>,
    next_at: OffsetDateTime,
}

impl PgStore {
    /// Up to `limit` purchases, newest first, of those before `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_purchases(
        &self,
        filter: PurchaseFilter,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ShownPurchase>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, filter, before, limit).await })
            .await
    }

    /// Ends a purchase by an operator's word. One that has ended stays as it is.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn end_purchase(
        &self,
        purchase_id: Uuid,
        reason: String,
        by: By,
    ) -> Result<EndPurchase, sqlx::Error> {
        self.run(move |pool| async move { end(&pool, purchase_id, &reason, &by).await })
            .await
    }
}

async fn list(
    pool: &PgPool,
    filter: PurchaseFilter,
    before: Option<Uuid>,
    limit: usize,
) -> Result<Vec<ShownPurchase>, sqlx::Error> {
    let found: Vec<ShownRow> = sqlx::query_as(
        "SELECT p.*,
                (SELECT count(*) FROM codes AS c WHERE c.purchase_id = p.purchase_id) AS kept
           FROM purchases AS p
          WHERE ($1::text IS NULL OR p.vendor = $1)
            AND ($2::text IS NULL OR p.ended = ($2 = 'ended'))
            AND ($2 IS DISTINCT FROM 'refused' OR p.answer = 'REFUSED')
            AND ($3::uuid IS NULL OR p.order_id = $3)
            AND ($4::uuid IS NULL OR p.purchase_id < $4)
          ORDER BY p.purchase_id DESC
          LIMIT $5",
    )
    .bind(filter.vendor)
    .bind(filter.state.map(PurchaseState::as_str))
    .bind(filter.order_id.map(OrderId::as_uuid))
    .bind(before)
    .bind(rows(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(ShownPurchase::try_from).collect()
}

async fn end(pool: &PgPool, purchase_id: Uuid, reason: &str, by: &By) -> Result<EndPurchase, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let locked: Option<bool> =
        sqlx::query_scalar("SELECT p.ended FROM purchases AS p WHERE p.purchase_id = $1 FOR UPDATE")
            .bind(purchase_id)
            .fetch_optional(&mut *transaction)
            .await?;
    let Some(ended) = locked else {
        return Ok(EndPurchase::NotFound);
    };
    let before = find(&mut transaction, purchase_id).await?;
    if ended {
        return Ok(EndPurchase::Ended(Box::new(before)));
    }
    sqlx::query(
        "UPDATE purchases
            SET ended = true,
                answer = 'ENDED',
                last_word = $2,
                claimed_until = NULL
          WHERE purchase_id = $1",
    )
    .bind(purchase_id)
    .bind(format!("ended by an operator: {reason}"))
    .execute(&mut *transaction)
    .await?;
    let after = find(&mut transaction, purchase_id).await?;
    let subject = purchase_id.to_string();
    let deed = Deed {
        action: "purchase.end",
        subject: &subject,
    };
    let (stood, stands) = (Standing::of(&before, None), Standing::of(&after, Some(reason)));
    audit::write(&mut transaction, by, deed, Some(&stood), Some(&stands)).await?;
    transaction.commit().await?;
    Ok(EndPurchase::Ended(Box::new(after)))
}

async fn find(connection: &mut PgConnection, purchase_id: Uuid) -> Result<ShownPurchase, sqlx::Error> {
    let row: ShownRow = sqlx::query_as(
        "SELECT p.*,
                (SELECT count(*) FROM codes AS c WHERE c.purchase_id = p.purchase_id) AS kept
           FROM purchases AS p
          WHERE p.purchase_id = $1",
    )
    .bind(purchase_id)
    .fetch_one(connection)
    .await?;
    ShownPurchase::try_from(row)
}

impl<'a> Standing<'a> {
    fn of(purchase: &'a ShownPurchase, reason: Option<&'a str>) -> Self {
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

impl TryFrom<ShownRow> for ShownPurchase {
    type Error = sqlx::Error;

    fn try_from(row: ShownRow) -> Result<Self, sqlx::Error> {
        let impossible = |what: &str| {
            sqlx::Error::Decode(format!("purchase {} has an impossible {what}", row.purchase_id).into())
        };
        let currency: Currency = row.currency.parse().map_err(|_| impossible("currency"))?;
        let known = |word: &str| {
            let mut all = LastAnswer::ALL.into_iter();
            all.find(|answer| answer.as_str() == word)
                .ok_or_else(|| impossible("answer"))
        };
        let answer = row.answer.as_deref().map(known).transpose()?;
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
            last_word: row.last_word,
            sold: row.sold.cast_unsigned(),
            kept: u32::try_from(row.kept).unwrap_or(u32::MAX),
            quarantined: row.quarantined,
            requested_at: row.requested_at,
            answered_at: row.answered_at,
            next_at: (!row.ended).then_some(row.next_at),
        })
    }
}
