//! Stock import: sealed codes, stock rows, and the chunks in which nodes claim them.
//!
//! The unique blind index admits each code and PIN of a brand once, also between concurrent imports of one file. Codes are
//! inserted in blind index order, so concurrent imports cannot deadlock.

mod chunks;
mod expire;
mod levels;
mod void;

use std::collections::HashSet;

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::Date;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, StockId};
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};

use self::chunks::{ChunkRange, split_into_chunks};
use super::audit::{self, AuditActor, NO_STATE, to_bigint};
use super::database::Database;

pub use self::expire::ExpiryBatch;
pub use self::void::{VoidOutcome, VoidTarget};

/// Key of the advisory lock around the generation of stock ids, which keeps the ids of one import consecutive. Any otherwise
/// unused number.
const STOCK_IDS_LOCK: i64 = 0x5653_7374_6f63_6b00;

/// The SKU of a batch, and the product fields that its blind indexes and face values depend on.
#[derive(Debug, Clone)]
pub struct ImportTarget {
    pub sku: Sku,
    /// Part of the blind indexes.
    pub brand: String,
    /// Currency of the face value.
    pub currency: Currency,
}

/// Ids for vouchers to be imported. Unused ids are lost, which is harmless.
#[derive(Debug, Clone, Default)]
pub struct NewStockIds {
    /// Code ids, which the encryption binds to the codes.
    pub codes: Vec<CodeId>,
    /// Stock row ids, ascending and usually consecutive.
    pub stock: Vec<i64>,
}

/// A voucher to be imported.
#[derive(Debug)]
pub struct NewVoucher {
    pub code_id: CodeId,
    /// Keyed hash that detects duplicates.
    pub blind_index: BlindIndex,
    pub sealed: SealedBlob,
    /// Last valid day; `None` means that it never expires.
    pub expiry: Option<Date>,
    /// The vendor's reference, for a purchased voucher.
    pub vendor_reference: Option<String>,
}

/// Vouchers to be imported in one transaction.
#[derive(Debug)]
pub struct StockBatch {
    pub target: ImportTarget,
    /// At most as many as there are stock ids.
    pub vouchers: Vec<NewVoucher>,
    /// From [`Stock::generate_ids`].
    pub stock_ids: Vec<i64>,
    pub origin: StockOrigin,
}

/// Source of imported vouchers, which determines their reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StockOrigin {
    /// An import: reserved for the orders that wait for the SKU, or for sale if there are none.
    Import,
    /// Sold by a vendor under this purchase: reserved for its order.
    Purchase(Uuid),
    /// An operator fulfils an order by hand: reserved for it like a purchase, but not attributed to the vendor.
    Manual { order_id: OrderId, purchase_id: Uuid },
}

impl StockOrigin {
    const fn purchase_id(self) -> Option<Uuid> {
        match self {
            Self::Purchase(purchase_id) => Some(purchase_id),
            Self::Import | Self::Manual { .. } => None,
        }
    }

    const fn reservation_id(self) -> Option<Uuid> {
        match self {
            Self::Purchase(purchase_id) | Self::Manual { purchase_id, .. } => Some(purchase_id),
            Self::Import => None,
        }
    }
}

/// Counts of an imported batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportSummary {
    pub imported: u64,
    /// Codes that were in stock before, or occur twice in the batch.
    pub duplicates: u64,
    /// Earliest expiry of the new vouchers.
    pub earliest: Option<Expiry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    Stored(ImportSummary),
    /// Rejected: brand or currency of the product has changed since the batch was prepared.
    ProductChanged,
}

/// Audited state of an import.
#[derive(Serialize)]
struct ImportAuditState {
    /// Set if the subject of the audit entry is not the SKU.
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    imported: u64,
    duplicates: u64,
}

/// The stock of vouchers and their sealed codes.
#[derive(Debug, Clone)]
pub struct Stock(pub(super) Database);

impl Stock {
    /// Generates ids for `count` vouchers.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn generate_ids(&self, count: usize) -> Result<NewStockIds, sqlx::Error> {
        self.0
            .run(move |pool| async move { generate_ids(&pool, count).await })
            .await
    }

    /// Finds out which of these codes were imported before.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_known_codes(
        &self,
        indexes: Vec<BlindIndex>,
    ) -> Result<HashSet<BlindIndex>, sqlx::Error> {
        let bytes: Vec<&[u8]> = indexes.iter().map(|index| &index.as_bytes()[..]).collect();
        let statement = sqlx::query!(
            "SELECT blind_index FROM codes WHERE blind_index = ANY ($1)",
            bytes as _,
        );
        let known = self.0.fetch_all(statement.map(|row| row.blind_index)).await?;
        let known: HashSet<Vec<u8>> = known.into_iter().collect();
        let indexes = indexes.into_iter();
        Ok(indexes
            .filter(|index| known.contains(&index.as_bytes()[..]))
            .collect())
    }

    /// Imports a batch. Known codes are counted and left unchanged, so repeating a batch is safe.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer. The batch may have been imported.
    pub async fn import(&self, batch: StockBatch, actor: AuditActor) -> Result<ImportOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move { import(&pool, &batch, &actor).await })
            .await
    }
}

async fn generate_ids(pool: &PgPool, count: usize) -> Result<NewStockIds, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let codes = sqlx::query_scalar!(
        r#"SELECT nextval('code_ids') AS "code_id!" FROM generate_series(1, $1::bigint)"#,
        to_bigint(count),
    );
    let codes = codes.fetch_all(&mut *transaction).await?;
    let stock = next_stock_ids(&mut transaction, count).await?;
    transaction.commit().await?;
    let codes = codes.into_iter().map(CodeId).collect();
    Ok(NewStockIds { codes, stock })
}

/// Generates ids of stock rows, ascending.
pub(super) async fn allocate_ids(pool: &PgPool, count: usize) -> Result<Vec<StockId>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let numbers = next_stock_ids(&mut transaction, count).await?;
    transaction.commit().await?;
    Ok(numbers.into_iter().map(StockId).collect())
}

/// Generates ids of stock rows. The lock makes them consecutive, except for gaps of `nextval`.
async fn next_stock_ids(connection: &mut PgConnection, count: usize) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", STOCK_IDS_LOCK)
        .execute(&mut *connection)
        .await?;
    sqlx::query_scalar!(
        r#"SELECT nextval('stock_ids') AS "stock_id!" FROM generate_series(1, $1::bigint)"#,
        to_bigint(count),
    )
    .fetch_all(connection)
    .await
}

async fn import(pool: &PgPool, batch: &StockBatch, actor: &AuditActor) -> Result<ImportOutcome, sqlx::Error> {
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
    let imported = ImportSummary {
        imported: fresh.len() as u64,
        duplicates: (batch.vouchers.len() - fresh.len()) as u64,
        earliest: fresh.first().map(|voucher| Expiry::from_date(voucher.expiry)),
    };
    if imported.imported > 0 {
        let sku = batch.target.sku.to_string();
        let (action, subject, sku) = match batch.origin {
            StockOrigin::Import | StockOrigin::Purchase(_) => ("stock.import", sku, None),
            StockOrigin::Manual { order_id, .. } => ("order.fulfil", order_id.to_string(), Some(sku)),
        };
        let entry = ImportAuditState {
            sku,
            imported: imported.imported,
            duplicates: imported.duplicates,
        };
        audit::write(&mut transaction, actor, action, &subject, NO_STATE, Some(&entry)).await?;
    }
    transaction.commit().await?;
    Ok(ImportOutcome::Stored(imported))
}

/// Checks that brand and currency are unchanged, and locks the product row until the transaction ends.
async fn is_current(connection: &mut PgConnection, target: &ImportTarget) -> Result<bool, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT brand, currency AS "currency: Currency" FROM products WHERE product_id = $1 FOR SHARE"#,
        target.sku.product_id as _,
    );
    let found = found.fetch_optional(connection).await?;
    Ok(found.is_some_and(|product| product.brand == target.brand && product.currency == target.currency))
}

/// Inserts the codes that are new and returns their ids.
async fn insert_codes(
    connection: &mut PgConnection,
    batch: &StockBatch,
) -> Result<HashSet<i64>, sqlx::Error> {
    let mut vouchers: Vec<&NewVoucher> = batch.vouchers.iter().collect();
    vouchers.sort_unstable_by_key(|voucher| voucher.blind_index.as_bytes());
    let column = |of: fn(&NewVoucher) -> &[u8]| vouchers.iter().map(|v| of(v)).collect::<Vec<&[u8]>>();
    let inserted = sqlx::query_scalar!(
        "INSERT INTO codes (code_id, product_id, denomination, blind_index, key_id, nonce, ciphertext, purchase_id,
                            vendor_reference, bought_at)
         SELECT v.code_id, $1, $2, v.blind_index, v.key_id, v.nonce, v.ciphertext, $8, v.vendor_reference,
                CASE WHEN $8::uuid IS NOT NULL THEN clock_timestamp() END
           FROM unnest($3::bigint[], $4::bytea[], $5::integer[], $6::bytea[], $7::bytea[], $9::text[])
                AS v (code_id, blind_index, key_id, nonce, ciphertext, vendor_reference)
         ON CONFLICT (blind_index) DO NOTHING
         RETURNING code_id",
        batch.target.sku.product_id as _,
        batch.target.sku.denomination as _,
        &vouchers.iter().map(|v| v.code_id.0).collect::<Vec<_>>(),
        column(|v| v.blind_index.as_bytes()) as _,
        &vouchers.iter().map(|v| v.sealed.key_id.0).collect::<Vec<_>>(),
        column(|v| &v.sealed.nonce) as _,
        column(|v| &v.sealed.ciphertext) as _,
        batch.origin.purchase_id(),
        vouchers.iter().map(|v| v.vendor_reference.as_deref()).collect::<Vec<_>>() as _,
    );
    Ok(inserted.fetch_all(connection).await?.into_iter().collect())
}

/// Inserts chunks of consecutive ids and their stock rows.
async fn insert_stock(
    connection: &mut PgConnection,
    batch: &StockBatch,
    fresh: &[&NewVoucher],
) -> Result<(), sqlx::Error> {
    let stock_ids = batch
        .stock_ids
        .get(..fresh.len())
        .ok_or_else(|| sqlx::Error::Encode("the batch has fewer stock ids than new vouchers".into()))?;
    let expiries: Vec<Expiry> = fresh
        .iter()
        .map(|voucher| Expiry::from_date(voucher.expiry))
        .collect();
    let pieces = split_into_chunks(stock_ids, &expiries);
    let column = |of: fn(&ChunkRange) -> i64| pieces.iter().map(of).collect::<Vec<_>>();
    let piece_of_each = pieces
        .iter()
        .flat_map(|piece| std::iter::repeat_n(piece.first_stock_id, piece.len()));
    sqlx::query!(
        "WITH made AS (
            INSERT INTO chunks (product_id, denomination, first_expiry, last_expiry, first_stock_id, last_stock_id,
                                reservation_id)
            SELECT $1, $2, c.first_expiry, c.last_expiry, c.first_stock_id, c.last_stock_id,
                   -- One reservation for the whole batch: waiting orders are served from it in one pass.
                   COALESCE($11, (SELECT gen_random_uuid() WHERE EXISTS (SELECT FROM orders_waiting_for_stock_v1($1, $2, NULL, 1))))
              FROM unnest($3::date[], $4::date[], $5::bigint[], $6::bigint[])
                   AS c (first_expiry, last_expiry, first_stock_id, last_stock_id)
            RETURNING chunk_id, first_stock_id
         )
         INSERT INTO stock (stock_id, chunk_id, code_id, expiry)
         SELECT s.stock_id, m.chunk_id, s.code_id, s.expiry
           FROM unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::date[])
                AS s (stock_id, first_stock_id, code_id, expiry)
           JOIN made AS m ON m.first_stock_id = s.first_stock_id",
        batch.target.sku.product_id as _,
        batch.target.sku.denomination as _,
        pieces.iter().map(|piece| piece.first_expiry.date()).collect::<Vec<_>>() as _,
        pieces.iter().map(|piece| piece.last_expiry.date()).collect::<Vec<_>>() as _,
        &column(|piece| piece.first_stock_id),
        &column(|piece| piece.last_stock_id),
        stock_ids,
        &piece_of_each.collect::<Vec<_>>(),
        &fresh.iter().map(|voucher| voucher.code_id.0).collect::<Vec<_>>(),
        fresh.iter().map(|voucher| voucher.expiry).collect::<Vec<_>>() as _,
        batch.origin.reservation_id(),
    )
    .execute(connection)
    .await
    .map(drop)
}
