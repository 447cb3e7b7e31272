//! Vouchers that are taken out of sale: the allocations' key is what a sale needs, so taking it is what ends one.
//!
//! Rule: only what is free is taken out; whoever was faster with the key has the voucher. A shelf in memory may offer it
//! still, and its commit is refused.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::{ProductId, Sku};

use super::PgStore;
use crate::store::audit::{self, By, Deed, NOTHING};
use crate::vault::blind_index::BlindIndex;

/// How many chunks one transaction empties: some 5,000 rows, so that an order waits milliseconds for it.
const CHUNKS_AT_ONCE: usize = 10;

/// What is to be taken out of sale.
#[derive(Debug, Clone)]
pub enum VoidTarget {
    /// Everything of a SKU that is free.
    Sku(Sku),
    /// These codes of a product, each by its blind index.
    Codes(ProductId, Vec<BlindIndex>),
}

/// What became of one code that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "What became of a code that was named: `VOIDED` (it is out of sale now), `ALREADY_OUT` (it was \
    before), `SOLD` (it belongs to an order), `UNKNOWN` (the product has no such code)."
)]
pub enum Voided {
    /// It is out of sale now.
    Voided,
    /// It was out of sale before.
    AlreadyOut,
    /// It belongs to an order.
    Sold,
    /// The product has no such code.
    Unknown,
}

/// What became of the wish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoidOutcome {
    /// How many were taken out of sale.
    pub voided: u64,
    /// For each code that was named, in their order.
    pub codes: Vec<Voided>,
    /// Of which SKUs: their shelves in memory may hold some of them still.
    pub skus: Vec<Sku>,
}

/// What the trail says of it.
#[derive(Serialize)]
struct Entry<'a> {
    voided: u64,
    reason: &'a str,
}

impl PgStore {
    /// Takes vouchers out of sale. May be repeated.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; then some may be out and some not.
    pub async fn void_stock(
        &self,
        target: VoidTarget,
        reason: String,
        by: By,
    ) -> Result<VoidOutcome, sqlx::Error> {
        match target {
            VoidTarget::Sku(sku) => self.void_sku(sku, reason, by).await,
            VoidTarget::Codes(product_id, codes) => {
                self.run(
                    move |pool| async move { void_codes(&pool, &product_id, &codes, &reason, &by).await },
                )
                .await
            }
        }
    }

    /// Some chunks at a time, each with its entry in the trail: a SKU may have thousands.
    async fn void_sku(&self, sku: Sku, reason: String, by: By) -> Result<VoidOutcome, sqlx::Error> {
        let of = sku.clone();
        let chunks = self
            .run(|pool| async move { chunks_of(&pool, &of).await })
            .await?;
        let mut voided = 0;
        for some in chunks.chunks(CHUNKS_AT_ONCE) {
            let (some, of, reason, by) = (some.to_vec(), sku.to_string(), reason.clone(), by.clone());
            voided += self
                .run(move |pool| async move {
                    let mut transaction = pool.begin().await?;
                    let voided = take_chunks(&mut transaction, &some).await?;
                    write_trail(&mut transaction, &by, &of, voided, &reason).await?;
                    transaction.commit().await?;
                    Ok(voided)
                })
                .await?;
        }
        Ok(VoidOutcome {
            voided,
            codes: Vec::new(),
            skus: vec![sku],
        })
    }
}

async fn chunks_of(pool: &PgPool, sku: &Sku) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT chunk_id
           FROM chunks
          WHERE product_id = $1
            AND denomination = $2
            AND NOT emptied
          ORDER BY chunk_id",
    )
    .bind(sku.product_id.as_str())
    .bind(sku.denomination.minor())
    .fetch_all(pool)
    .await
}

/// In the order of the stock ids, as everywhere.
async fn take_chunks(connection: &mut PgConnection, chunks: &[i64]) -> Result<u64, sqlx::Error> {
    let taken = sqlx::query(
        "INSERT INTO allocations (stock_id, taken_out)
         SELECT s.stock_id, 'void'
           FROM chunks AS c
          CROSS JOIN LATERAL free_stock(c.first_stock_id, c.last_stock_id, '-infinity') AS s
          WHERE c.chunk_id = ANY ($1)
          ORDER BY s.stock_id
         ON CONFLICT (stock_id) DO NOTHING",
    )
    .bind(chunks)
    .execute(connection)
    .await?;
    Ok(taken.rows_affected())
}

async fn void_codes(
    pool: &PgPool,
    product_id: &ProductId,
    codes: &[BlindIndex],
    reason: &str,
    by: &By,
) -> Result<VoidOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let found = find(&mut transaction, product_id, codes).await?;
    let taken = take(
        &mut transaction,
        found.iter().map(|found| found.stock_id).collect(),
    )
    .await?;
    let outcome: Vec<Voided> = (1..)
        .zip(codes)
        .map(|(position, _)| fate(position, &found, &taken))
        .collect();
    let voided = taken.len() as u64;
    write_trail(&mut transaction, by, product_id.as_str(), voided, reason).await?;
    transaction.commit().await?;
    let mut denominations: Vec<i64> = found.iter().map(|found| found.denomination).collect();
    denominations.sort_unstable();
    denominations.dedup();
    let skus = denominations.into_iter().map(|minor| Sku {
        product_id: product_id.clone(),
        denomination: Amount::from_minor(minor),
    });
    Ok(VoidOutcome {
        voided,
        codes: outcome,
        skus: skus.collect(),
    })
}

/// The newest stock row of a code that was named.
#[derive(sqlx::FromRow)]
struct Found {
    /// Which of those that were named, from 1.
    position: i64,
    denomination: i64,
    stock_id: i64,
    order_id: Option<uuid::Uuid>,
}

async fn find(
    connection: &mut PgConnection,
    product_id: &ProductId,
    codes: &[BlindIndex],
) -> Result<Vec<Found>, sqlx::Error> {
    sqlx::query_as(
        "SELECT DISTINCT ON (n.position) n.position, k.denomination, s.stock_id, a.order_id
           FROM unnest($2::bytea[]) WITH ORDINALITY AS n (blind_index, position)
           JOIN codes AS c ON c.blind_index = n.blind_index
           JOIN chunks AS k ON k.product_id = c.product_id AND k.denomination = c.denomination
           JOIN stock AS s ON s.stock_id BETWEEN k.first_stock_id AND k.last_stock_id AND s.code_id = c.code_id
           LEFT JOIN allocations AS a ON a.stock_id = s.stock_id
          WHERE c.product_id = $1
          ORDER BY n.position, s.stock_id DESC",
    )
    .bind(product_id.as_str())
    .bind(codes.iter().map(|code| &code.as_bytes()[..]).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}

/// Those of these stock rows that were free until now.
async fn take(connection: &mut PgConnection, mut stock_ids: Vec<i64>) -> Result<Vec<i64>, sqlx::Error> {
    stock_ids.sort_unstable();
    stock_ids.dedup();
    sqlx::query_scalar(
        "INSERT INTO allocations (stock_id, taken_out)
         SELECT s.stock_id, 'void'
           FROM unnest($1::bigint[]) AS s (stock_id)
          ORDER BY s.stock_id
         ON CONFLICT (stock_id) DO NOTHING
         RETURNING stock_id",
    )
    .bind(stock_ids)
    .fetch_all(connection)
    .await
}

fn fate(position: i64, found: &[Found], taken: &[i64]) -> Voided {
    match found.iter().find(|found| found.position == position) {
        None => Voided::Unknown,
        Some(found) if taken.contains(&found.stock_id) => Voided::Voided,
        Some(found) if found.order_id.is_some() => Voided::Sold,
        Some(_) => Voided::AlreadyOut,
    }
}

async fn write_trail(
    connection: &mut PgConnection,
    by: &By,
    subject: &str,
    voided: u64,
    reason: &str,
) -> Result<(), sqlx::Error> {
    if voided == 0 {
        return Ok(());
    }
    let deed = Deed {
        action: "stock.void",
        subject,
    };
    audit::write(connection, by, deed, NOTHING, Some(&Entry { voided, reason })).await
}
