//! Stock coming in: sealed codes, the rows that are sold, and the chunks that nodes claim them by.
//!
//! Rule: one code and PIN of a brand comes in once, ever; the unique blind index decides, also between two imports of
//! one file at the same time. Rows go in by its order, so that two imports wait for each other and never in a circle.

mod chunks;
mod expire;
mod levels;
mod void;

use std::collections::HashSet;

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::Date;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, StockId};
use vouchsafe_actors::domain::money::Currency;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::voucher::Expiry;

use self::chunks::{Piece, cut};
use super::PgStore;
use super::audit::{self, By, Deed, NOTHING, rows};
use crate::vault::blind_index::BlindIndex;
use crate::vault::seal::{CodeId, Sealed};

pub use self::expire::Swept;
pub use self::levels::StockLevel;
pub use self::void::{VoidOutcome, VoidTarget, Voided};

/// Serialises the taking of stock ids, so that those of one import are neighbours. Any number that nothing else uses.
const STOCK_IDS_TURN: i64 = 0x5653_7374_6f63_6b00;

/// What a voucher is imported as, and what its sealing rests on.
#[derive(Debug, Clone)]
pub struct ImportTarget {
    pub sku: Sku,
    /// The brand that went into the blind indexes.
    pub brand: String,
    /// The currency that the face value was read in.
    pub currency: Currency,
}

/// Ids for vouchers that are about to come in. Those that are not used are lost, which costs nothing.
#[derive(Debug, Clone, Default)]
pub struct FreshIds {
    /// For codes: bound into their sealing.
    pub codes: Vec<CodeId>,
    /// For stock rows, ascending; neighbours as a rule.
    pub stock: Vec<i64>,
}

/// A voucher that comes in.
#[derive(Debug)]
pub struct NewVoucher {
    /// The row of its code.
    pub code_id: CodeId,
    /// What makes it unique.
    pub blind_index: BlindIndex,
    pub sealed: Sealed,
    /// Its last valid day; `None` is never.
    pub expiry: Option<Date>,
    /// The vendor's own name of it, where it was bought.
    pub vendor_reference: Option<String>,
}

/// Vouchers that come in together, in one transaction.
#[derive(Debug)]
pub struct StockBatch {
    pub target: ImportTarget,
    /// They, and as many stock ids at least.
    pub vouchers: Vec<NewVoucher>,
    /// As [`PgStore::take_stock_ids`] gave them.
    pub stock_ids: Vec<i64>,
    /// Where they come from.
    pub origin: Origin,
}

/// Where vouchers come from, and so whom they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An import: they are for whoever waits for them, and else for the shelf.
    Import,
    /// A vendor sold them under this purchase, and they are kept for its order.
    Bought(Uuid),
    /// An operator fulfils an order by hand: they are kept for it as what its purchase brings, and are none of the vendor's.
    ByHand {
        order_id: OrderId,
        purchase_id: Uuid,
    },
}

impl Origin {
    /// Under which purchase they were bought.
    const fn purchase_id(self) -> Option<Uuid> {
        match self {
            Self::Bought(purchase_id) => Some(purchase_id),
            Self::Import | Self::ByHand { .. } => None,
        }
    }

    /// Under which id they are kept for an order.
    const fn kept_id(self) -> Option<Uuid> {
        match self {
            Self::Bought(purchase_id) | Self::ByHand { purchase_id, .. } => Some(purchase_id),
            Self::Import => None,
        }
    }
}

/// What a batch brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    pub imported: u64,
    /// Codes that were there before, or twice in the batch.
    pub duplicates: u64,
    /// When the first of the new ones expires.
    pub earliest: Option<Expiry>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    Stored(Imported),
    /// Nothing was written: brand or currency of the product are not those of the target any more.
    ProductChanged,
}

/// What the trail says of a batch.
#[derive(Serialize)]
struct Entry {
    /// What of, where the subject does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    imported: u64,
    duplicates: u64,
}

impl PgStore {
    /// Takes ids for `count` vouchers.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn take_stock_ids(&self, count: usize) -> Result<FreshIds, sqlx::Error> {
        self.run(move |pool| async move { take_ids(&pool, count).await })
            .await
    }

    /// Takes numbers for rows of stock, ascending.
    pub(super) async fn number_stock(&self, count: usize) -> Result<Vec<StockId>, sqlx::Error> {
        let numbers = self
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let numbers = number(&mut transaction, count).await?;
                transaction.commit().await?;
                Ok(numbers)
            })
            .await?;
        Ok(numbers.into_iter().map(StockId).collect())
    }

    /// Which of these codes were taken in before.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn known_codes(&self, indexes: Vec<BlindIndex>) -> Result<HashSet<BlindIndex>, sqlx::Error> {
        self.run(move |pool| async move {
            let bytes: Vec<&[u8]> = indexes.iter().map(|index| &index.as_bytes()[..]).collect();
            let known: Vec<Vec<u8>> =
                sqlx::query_scalar("SELECT blind_index FROM codes WHERE blind_index = ANY ($1)")
                    .bind(bytes)
                    .fetch_all(&pool)
                    .await?;
            let known: HashSet<Vec<u8>> = known.into_iter().collect();
            let indexes = indexes.into_iter();
            Ok(indexes
                .filter(|index| known.contains(&index.as_bytes()[..]))
                .collect())
        })
        .await
    }

    /// Takes a batch in. What is in already is counted and left as it is, so a batch may be repeated.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; then nobody can say whether the batch is in.
    pub async fn import_stock(&self, batch: StockBatch, by: By) -> Result<ImportOutcome, sqlx::Error> {
        self.run(move |pool| async move { import(&pool, &batch, &by).await })
            .await
    }
}

async fn take_ids(pool: &PgPool, count: usize) -> Result<FreshIds, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let codes: Vec<i64> = sqlx::query_scalar("SELECT nextval('code_ids') FROM generate_series(1, $1)")
        .bind(rows(count))
        .fetch_all(&mut *transaction)
        .await?;
    let stock = number(&mut transaction, count).await?;
    transaction.commit().await?;
    let codes = codes.into_iter().map(CodeId).collect();
    Ok(FreshIds { codes, stock })
}

/// Numbers for rows of stock: neighbours as a rule, since one taker waits for the other.
async fn number(connection: &mut PgConnection, count: usize) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(STOCK_IDS_TURN)
        .execute(&mut *connection)
        .await?;
    sqlx::query_scalar("SELECT nextval('stock_ids') FROM generate_series(1, $1)")
        .bind(rows(count))
        .fetch_all(connection)
        .await
}

async fn import(pool: &PgPool, batch: &StockBatch, by: &By) -> Result<ImportOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    if !is_current(&mut transaction, &batch.target).await? {
        return Ok(ImportOutcome::ProductChanged);
    }
    let new = insert_codes(&mut transaction, batch).await?;
    let mut fresh: Vec<&NewVoucher> = batch
        .vouchers
        .iter()
        .filter(|voucher| new.contains(&voucher.code_id.0))
        .collect();
    fresh.sort_by_key(|voucher| (Expiry::from_date(voucher.expiry), voucher.code_id));
    insert_stock(&mut transaction, batch, &fresh).await?;
    let imported = Imported {
        imported: fresh.len() as u64,
        duplicates: (batch.vouchers.len() - fresh.len()) as u64,
        earliest: fresh.first().map(|voucher| Expiry::from_date(voucher.expiry)),
    };
    if imported.imported > 0 {
        let sku = batch.target.sku.to_string();
        let (action, subject, sku) = match batch.origin {
            Origin::Import | Origin::Bought(_) => ("stock.import", sku, None),
            Origin::ByHand { order_id, .. } => ("order.fulfil", order_id.to_string(), Some(sku)),
        };
        let entry = Entry {
            sku,
            imported: imported.imported,
            duplicates: imported.duplicates,
        };
        let deed = Deed {
            action,
            subject: &subject,
        };
        audit::write(&mut transaction, by, deed, NOTHING, Some(&entry)).await?;
    }
    transaction.commit().await?;
    Ok(ImportOutcome::Stored(imported))
}

/// Whether the product is still what the batch was made for; it stays so until the transaction ends.
async fn is_current(connection: &mut PgConnection, target: &ImportTarget) -> Result<bool, sqlx::Error> {
    let found: Option<(String, String)> =
        sqlx::query_as("SELECT brand, currency FROM products WHERE product_id = $1 FOR SHARE")
            .bind(target.sku.product_id.as_str())
            .fetch_optional(connection)
            .await?;
    Ok(found.is_some_and(|(brand, currency)| brand == target.brand && currency == target.currency.as_str()))
}

/// Writes the codes that are new, and says which.
async fn insert_codes(
    connection: &mut PgConnection,
    batch: &StockBatch,
) -> Result<HashSet<i64>, sqlx::Error> {
    let mut vouchers: Vec<&NewVoucher> = batch.vouchers.iter().collect();
    vouchers.sort_unstable_by_key(|voucher| voucher.blind_index.as_bytes());
    let column = |of: fn(&NewVoucher) -> &[u8]| vouchers.iter().map(|v| of(v)).collect::<Vec<&[u8]>>();
    let inserted: Vec<i64> = sqlx::query_scalar(
        "INSERT INTO codes (code_id, product_id, denomination, blind_index, key_id, nonce, ciphertext, purchase_id,
                            vendor_reference, bought_at)
         SELECT v.code_id, $1, $2, v.blind_index, v.key_id, v.nonce, v.ciphertext, $8, v.vendor_reference,
                CASE WHEN $8::uuid IS NOT NULL THEN clock_timestamp() END
           FROM unnest($3::bigint[], $4::bytea[], $5::integer[], $6::bytea[], $7::bytea[], $9::text[])
                AS v (code_id, blind_index, key_id, nonce, ciphertext, vendor_reference)
         ON CONFLICT (blind_index) DO NOTHING
         RETURNING code_id",
    )
    .bind(batch.target.sku.product_id.as_str())
    .bind(batch.target.sku.denomination.minor())
    .bind(vouchers.iter().map(|v| v.code_id.0).collect::<Vec<_>>())
    .bind(column(|v| v.blind_index.as_bytes()))
    .bind(vouchers.iter().map(|v| v.sealed.key_id.0).collect::<Vec<_>>())
    .bind(column(|v| &v.sealed.nonce))
    .bind(column(|v| &v.sealed.ciphertext))
    .bind(batch.origin.purchase_id())
    .bind(
        vouchers
            .iter()
            .map(|v| v.vendor_reference.as_deref())
            .collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await?;
    Ok(inserted.into_iter().collect())
}

/// Writes chunks of neighbours, and the stock rows in them.
async fn insert_stock(
    connection: &mut PgConnection,
    batch: &StockBatch,
    fresh: &[&NewVoucher],
) -> Result<(), sqlx::Error> {
    let stock_ids = batch
        .stock_ids
        .get(..fresh.len())
        .ok_or_else(|| sqlx::Error::Encode("a batch needs a stock id for each of its vouchers".into()))?;
    let expiries: Vec<Expiry> = fresh
        .iter()
        .map(|voucher| Expiry::from_date(voucher.expiry))
        .collect();
    let pieces = cut(stock_ids, &expiries);
    let column = |of: fn(&Piece) -> i64| pieces.iter().map(of).collect::<Vec<_>>();
    let piece_of_each = pieces
        .iter()
        .flat_map(|piece| std::iter::repeat_n(piece.first_stock_id, piece.length()));
    sqlx::query(
        "WITH made AS (
            INSERT INTO chunks (product_id, denomination, first_expiry, last_expiry, first_stock_id, last_stock_id,
                                purchase_id)
            SELECT $1, $2, c.first_expiry, c.last_expiry, c.first_stock_id, c.last_stock_id,
                   -- The same for the whole batch: those who wait are served from it in one go.
                   COALESCE($11, (SELECT gen_random_uuid() WHERE EXISTS (SELECT FROM waiting_for($1, $2, NULL, 1))))
              FROM unnest($3::date[], $4::date[], $5::bigint[], $6::bigint[])
                   AS c (first_expiry, last_expiry, first_stock_id, last_stock_id)
            RETURNING chunk_id, first_stock_id
         )
         INSERT INTO stock (stock_id, chunk_id, code_id, expiry)
         SELECT s.stock_id, m.chunk_id, s.code_id, s.expiry
           FROM unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::date[])
                AS s (stock_id, first_stock_id, code_id, expiry)
           JOIN made AS m ON m.first_stock_id = s.first_stock_id",
    )
    .bind(batch.target.sku.product_id.as_str())
    .bind(batch.target.sku.denomination.minor())
    .bind(pieces.iter().map(|piece| piece.first_expiry.date()).collect::<Vec<_>>())
    .bind(pieces.iter().map(|piece| piece.last_expiry.date()).collect::<Vec<_>>())
    .bind(column(|piece| piece.first_stock_id))
    .bind(column(|piece| piece.last_stock_id))
    .bind(stock_ids)
    .bind(piece_of_each.collect::<Vec<_>>())
    .bind(fresh.iter().map(|voucher| voucher.code_id.0).collect::<Vec<_>>())
    .bind(fresh.iter().map(|voucher| voucher.expiry).collect::<Vec<_>>())
    .bind(batch.origin.kept_id())
    .execute(connection)
    .await
    .map(drop)
}
