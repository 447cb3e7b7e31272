//! What did a vendor say of a purchase? Its last answer in a word and a sentence, what it sold, and what of it was sold
//! before.
//!
//! Rule: no text here quotes a vendor: what it says may hold a code.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::product::Sku;

use crate::store::PgStore;
use crate::store::kept::sku_of;
use crate::vendor::PurchaseKey;

/// What an answer about a purchase came to, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LastAnswer {
    /// All was sold.
    Sold,
    /// More may come.
    Waiting,
    /// A part was sold, and no more will be.
    NoMore,
    /// Nothing was sold, nor will be.
    NotSold,
    /// Nothing was sold, since the vendor has none.
    OutOfStock,
    /// Nothing was sold for now.
    NotNow,
    /// Nobody knows.
    Unknown,
    /// What the vendor said will not do. Nothing of it was taken.
    Refused,
    /// The vendor cannot be asked, or its vouchers cannot be taken in, for a reason of ours.
    Stuck,
    /// An operator has ended it.
    Ended,
}

impl LastAnswer {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Sold,
        Self::Waiting,
        Self::NoMore,
        Self::NotSold,
        Self::OutOfStock,
        Self::NotNow,
        Self::Unknown,
        Self::Refused,
        Self::Stuck,
        Self::Ended,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sold => "SOLD",
            Self::Waiting => "WAITING",
            Self::NoMore => "NO_MORE",
            Self::NotSold => "NOT_SOLD",
            Self::OutOfStock => "OUT_OF_STOCK",
            Self::NotNow => "NOT_NOW",
            Self::Unknown => "UNKNOWN",
            Self::Refused => "REFUSED",
            Self::Stuck => "STUCK",
            Self::Ended => "ENDED",
        }
    }
}

/// What was said of a purchase.
#[derive(Debug, Clone)]
pub struct Said {
    pub key: PurchaseKey,
    pub answer: LastAnswer,
    /// Why it is not all bought. No code: it never quotes the vendor.
    pub last_word: Option<String>,
    /// How many are sold so far, where that was said.
    pub sold: Option<u32>,
    /// The vendor's names of those that were sold before, and are not taken.
    pub quarantined: Vec<String>,
}

impl PgStore {
    /// The vendor's names of the vouchers that were taken in under a purchase.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn bought_under(&self, key: PurchaseKey) -> Result<Vec<String>, sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query_scalar(
                "SELECT vendor_reference
                   FROM codes
                  WHERE purchase_id = $1 AND vendor_reference IS NOT NULL",
            )
            .bind(key.0)
            .fetch_all(&pool)
            .await
        })
        .await
    }

    /// Writes down what was said of a purchase, unless it was ended meanwhile.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn note_answer(&self, said: Said) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE purchases
                    SET answer = $2,
                        answered_at = clock_timestamp(),
                        last_word = $3,
                        sold = COALESCE($4, sold),
                        quarantined = CASE WHEN $4 IS NULL THEN quarantined ELSE $5 END
                  WHERE purchase_id = $1 AND NOT ended",
            )
            .bind(said.key.0)
            .bind(said.answer.as_str())
            .bind(said.last_word)
            .bind(said.sold.map(u32::cast_signed))
            .bind(said.quarantined)
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
    }

    /// The SKUs of which their vendor said last, and no longer ago than `age`, that it has none. A vendor or a product that
    /// was put since has said nothing.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn out_of_stock(&self, age: Duration) -> Result<Vec<Sku>, sqlx::Error> {
        let found: Vec<(String, i64)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT DISTINCT p.product_id, p.denomination
                       FROM purchases AS p
                       JOIN products AS d
                         ON d.product_id = p.product_id AND d.vendor = p.vendor AND d.updated_at < p.answered_at
                       JOIN vendors AS v ON v.vendor_id = p.vendor AND v.updated_at < p.answered_at
                      WHERE p.answer = 'OUT_OF_STOCK'
                        AND p.answered_at > clock_timestamp() - make_interval(secs => $1)
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS s
                             WHERE s.product_id = p.product_id
                               AND s.denomination = p.denomination
                               AND s.sold > 0
                               AND s.answered_at > p.answered_at
                            )",
                )
                .bind(age.as_secs_f64())
                .fetch_all(&pool)
                .await
            })
            .await?;
        let skus = found.into_iter();
        skus.map(|(product_id, face)| sku_of(&product_id, face)).collect()
    }
}
