//! Stock import: sealed codes, stock rows, and the chunks in which nodes claim them.

mod chunks;
mod counts;
mod expire;
mod expiries;
mod import;
mod levels;
mod sales;
mod void;

use std::collections::HashSet;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};

use sqlx::{PgConnection, PgPool};
use time::Date;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, StockId};
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::product::{CodeCase, CodeIdentity, CodeScope, Product, Sku};
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};

use vouchsafe_database::database::Database;

pub use self::expire::ExpiryBatch;
pub(super) use self::void::void_rows;
pub use self::void::{CodeMatch, VoidOutcome, VoidTarget};

/// Key of the advisory lock around the generation of stock ids, which keeps the ids of one import
/// consecutive. Any otherwise unused number.
const STOCK_IDS_LOCK: i64 = 0x5653_7374_6f63_6b00;

/// The encrypted code of a row.
pub(super) fn sealed_blob(
    key_id: i32,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
) -> Result<SealedBlob, sqlx::Error> {
    let nonce = nonce.try_into();
    Ok(SealedBlob {
        key_id: KeyId(key_id),
        nonce: nonce.map_err(|_| sqlx::Error::Decode("invalid nonce of a code".into()))?,
        ciphertext,
    })
}

/// The SKU of a batch, and the product fields that its blind indexes and face values depend on.
#[derive(Debug, Clone)]
pub struct ImportTarget {
    pub sku: Sku,
    /// Part of the blind indexes.
    pub brand: String,
    /// Currency of the face value.
    pub currency: Currency,
    /// Whether vouchers may share a code.
    pub code_identity: CodeIdentity,
    /// Part of the blind indexes.
    pub code_case: CodeCase,
}

impl ImportTarget {
    /// A SKU of this product.
    #[must_use]
    pub fn new(product: &Product, sku: Sku) -> Self {
        Self {
            sku,
            brand: product.brand.clone(),
            currency: product.currency,
            code_identity: product.code_identity,
            code_case: product.code_case,
        }
    }

    /// The codes among which each code of the batch occurs once.
    #[must_use]
    pub fn code_scope(&self) -> CodeScope<'_> {
        CodeScope {
            brand: &self.brand,
            case: self.code_case,
        }
    }
}

/// A batch of imported stock, as an operator named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportBatch {
    import_id: i64,
    pub vendor: String,
    pub batch: String,
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
    /// Keyed hash of code and PIN.
    pub blind_index: BlindIndex,
    /// Keyed hash of the code.
    pub code_index: BlindIndex,
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
    /// Result of [`Stock::generate_ids`].
    pub stock_ids: Vec<i64>,
    pub origin: StockOrigin,
}

/// Source of imported vouchers, which determines their reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StockOrigin {
    /// An import: reserved for the orders that wait for the SKU, or for sale if there are none.
    Import(ImportBatch),
    /// Sold by a vendor under this purchase: reserved for its order.
    Purchase(Uuid),
    /// An operator fulfils an order by hand: reserved for it like a purchase, but not attributed to the
    /// vendor.
    Manual {
        order_id: OrderId,
        purchase_id: Uuid,
        batch: ImportBatch,
    },
}

impl StockOrigin {
    const fn purchase_id(&self) -> Option<Uuid> {
        match self {
            Self::Purchase(purchase_id) => Some(*purchase_id),
            Self::Import(_) | Self::Manual { .. } => None,
        }
    }

    const fn reservation_id(&self) -> Option<Uuid> {
        match self {
            Self::Purchase(purchase_id) | Self::Manual { purchase_id, .. } => Some(*purchase_id),
            Self::Import(_) => None,
        }
    }

    const fn batch(&self) -> Option<&ImportBatch> {
        match self {
            Self::Import(batch) | Self::Manual { batch, .. } => Some(batch),
            Self::Purchase(_) => None,
        }
    }
}

/// Counts of an imported batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    pub imported: u64,
    /// Codes that were in stock before, or occur twice in the batch.
    pub duplicates: u64,
    /// Indexes of the vouchers that were rejected: the brand has their code with another PIN.
    pub conflicts: Vec<usize>,
    /// Earliest expiry of the new vouchers.
    pub earliest: Option<Expiry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    Stored(ImportSummary),
    /// Rejected: brand, currency, code identity or code case of the product has changed since the batch was
    /// prepared.
    ProductChanged,
}

/// The stock of vouchers and their sealed codes.
#[derive(Debug, Clone)]
pub struct Stock(pub(super) Database);

impl Stock {
    /// Generates ids for `count` vouchers.
    #[boxed]
    pub async fn generate_ids(&self, count: usize) -> Result<NewStockIds, StoreError> {
        transaction!(self.0, "stock_id.generate", async |transaction| {
            let codes = sqlx::query_scalar!(
                r#"SELECT nextval('code_ids') AS "code_id!" FROM generate_series(1, $1::bigint)"#,
                to_bigint(count),
            );
            let codes = codes.fetch_all(&mut **transaction).await?;
            let stock = next_stock_ids(transaction, count).await?;
            let codes = codes.into_iter().map(CodeId).collect();
            Ok(NewStockIds { codes, stock })
        })
    }

    /// Creates the batch of a vendor with this name, or continues it.
    #[boxed]
    pub async fn open_batch(&self, vendor: String, batch: String) -> Result<ImportBatch, StoreError> {
        let statement = sqlx::query_as!(
            ImportBatch,
            "INSERT INTO stock_imports (vendor, batch)
             VALUES ($1, $2)
             ON CONFLICT (vendor, batch) DO UPDATE SET vendor = EXCLUDED.vendor
             RETURNING import_id, vendor, batch",
            vendor,
            batch,
        );
        self.0
            .fetch_optional(statement)
            .await?
            .ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Finds out which of these blind indexes and code indexes belong to codes imported before.
    #[boxed]
    pub async fn find_known_codes(
        &self,
        indexes: Vec<BlindIndex>,
    ) -> Result<HashSet<BlindIndex>, StoreError> {
        let bytes: Vec<&[u8]> = indexes.iter().map(|index| &index.as_bytes()[..]).collect();
        let statement = sqlx::query!(
            r#"SELECT blind_index AS "index!" FROM codes WHERE blind_index = ANY ($1)
                UNION ALL
               SELECT code_index FROM codes WHERE code_index = ANY ($1)"#,
            bytes as _,
        );
        let known = self.0.fetch_all(statement.map(|row| row.index)).await?;
        let known: HashSet<Vec<u8>> = known.into_iter().collect();
        let indexes = indexes.into_iter();
        Ok(indexes
            .filter(|index| known.contains(&index.as_bytes()[..]))
            .collect())
    }

    /// Imports a batch. Known codes are counted and left unchanged, so repeating a batch is safe.
    ///
    /// # Errors
    /// The batch may have been imported.
    #[boxed]
    pub async fn import(&self, batch: StockBatch, actor: AuditActor) -> Result<ImportOutcome, StoreError> {
        transaction!(self.0, "stock.import", async |transaction| {
            import::import(transaction, &batch, &actor).await
        })
    }
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
