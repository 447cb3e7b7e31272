//! Indexes of codes that version 0.2.0 stored without a code index, and whose blind index is of their text as it was typed.
//!
//! The index is keyed, so SQL cannot compute it: the service decrypts the codes in batches and stores their indexes. Until none
//! is left, nothing is imported.

use sqlx::PgConnection;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{CodeCase, CodeScope, ProductId, Sku};
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};

use crate::stock::{Stock, sealed_blob};

/// Codes per transaction: a few milliseconds of decryption and a commit of some MiB.
const MAX_CODES: usize = 2_000;

/// Key of the advisory lock that keeps nodes from doing the same work. Any otherwise unused number.
const CODE_INDEX_LOCK: i64 = 0x5653_636f_6465_6900;

/// A code without a code index.
#[derive(Debug)]
pub struct UnindexedCode {
    pub code_id: CodeId,
    pub sku: Sku,
    /// Of its product.
    pub brand: String,
    pub code_case: CodeCase,
    pub sealed: SealedBlob,
}

impl UnindexedCode {
    /// Among which codes it occurs once.
    #[must_use]
    pub fn code_scope(&self) -> CodeScope<'_> {
        CodeScope {
            brand: &self.brand,
            case: self.code_case,
        }
    }
}

/// The indexes of a code; `None` if the code cannot be decrypted.
#[derive(Debug)]
pub struct CodeIndexUpdate {
    pub code_id: CodeId,
    pub indexes: Option<CodeIndexes>,
}

/// The indexes of a code as an import computes them.
#[derive(Debug, Clone, Copy)]
pub struct CodeIndexes {
    pub blind_index: BlindIndex,
    pub code_index: BlindIndex,
}

impl Stock {
    /// Lists some codes without a code index, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn list_unindexed_codes(&self) -> Result<Vec<UnindexedCode>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT c.code_id, c.product_id AS "product_id: ProductId", c.denomination AS "denomination: Amount", p.brand,
                      p.code_case AS "code_case: CodeCase",
                      c.key_id, c.nonce, c.ciphertext
                 FROM (SELECT * FROM codes WHERE code_index IS NULL LIMIT $1) AS c
                 JOIN products AS p ON p.product_id = c.product_id
                ORDER BY c.code_id"#,
            to_bigint(MAX_CODES),
        )
        .try_map(|row| {
            Ok(UnindexedCode {
                code_id: CodeId(row.code_id),
                sku: Sku {
                    product_id: row.product_id,
                    denomination: row.denomination,
                },
                brand: row.brand,
                code_case: row.code_case,
                sealed: sealed_blob(row.key_id, row.nonce, row.ciphertext)?,
            })
        });
        self.0.fetch_all(statement).await
    }

    /// Stores code indexes. Returns the ids of the codes that share their code with an earlier one, which have another PIN. On
    /// concurrent calls, all nodes but one do nothing.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or a concurrent import has stored one of the codes. Repeating is safe.
    #[boxed]
    pub async fn store_code_indexes(&self, updates: Vec<CodeIndexUpdate>) -> Result<Vec<CodeId>, StoreError> {
        transaction!(self.0, "code_index.store", async |transaction| {
            store_code_indexes(transaction, &updates).await
        })
    }
}

async fn store_code_indexes(
    transaction: &mut PgConnection,
    updates: &[CodeIndexUpdate],
) -> Result<Vec<CodeId>, sqlx::Error> {
    let is_locked = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock($1) AS "is_locked!""#,
        CODE_INDEX_LOCK,
    );
    if !is_locked.fetch_one(&mut *transaction).await? {
        return Ok(Vec::new());
    }
    let column = |of: fn(&CodeIndexes) -> &BlindIndex| {
        let indexes = updates.iter().map(|update| update.indexes.as_ref());
        let bytes = indexes.map(|indexes| indexes.map(|indexes| &of(indexes).as_bytes()[..]));
        bytes.collect::<Vec<Option<&[u8]>>>()
    };
    let shared = sqlx::query!(
        r#"WITH computed AS (
            SELECT n.code_id, n.code_index, row_number() OVER (PARTITION BY n.code_index ORDER BY n.code_id) AS occurrence,
                   n.blind_index, row_number() OVER (PARTITION BY n.blind_index ORDER BY n.code_id) AS spelling
              FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) AS n (code_id, code_index, blind_index)
         )
         UPDATE codes AS c
            SET blind_index = CASE
                    -- Two stored spellings of one voucher: the later one keeps the index of its text.
                    WHEN n.blind_index IS NOT NULL
                     AND n.spelling = 1
                     AND NOT EXISTS (SELECT FROM codes AS x WHERE x.blind_index = n.blind_index)
                    THEN n.blind_index
                    ELSE c.blind_index
                END,
                code_index = CASE
                    WHEN n.code_index IS NOT NULL
                     AND n.occurrence = 1
                     AND NOT EXISTS (SELECT FROM codes AS x WHERE x.code_index = n.code_index)
                    THEN n.code_index
                    ELSE c.blind_index
                END
           FROM computed AS n
          WHERE c.code_id = n.code_id AND c.code_index IS NULL
         RETURNING c.code_id, (n.code_index IS NOT NULL AND c.code_index <> n.code_index) AS "is_shared!""#,
        &updates.iter().map(|update| update.code_id.0).collect::<Vec<_>>(),
        column(|indexes| &indexes.code_index) as _,
        column(|indexes| &indexes.blind_index) as _,
    );
    let shared = shared.fetch_all(&mut *transaction).await?;
    let shared = shared.into_iter().filter(|row| row.is_shared);
    Ok(shared.map(|row| CodeId(row.code_id)).collect())
}
