//! Code indexes of codes that version 0.2.0 stored without one.
//!
//! The index is keyed, so SQL cannot compute it: the service decrypts the codes in batches and stores their indexes. Until none
//! is left, nothing is imported.

use sqlx::PgConnection;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};
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
    pub sealed: SealedBlob,
}

/// The code index of a code; `None` if the code cannot be decrypted.
#[derive(Debug)]
pub struct CodeIndexUpdate {
    pub code_id: CodeId,
    pub code_index: Option<BlindIndex>,
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
    let indexes = updates.iter().map(|update| update.code_index.as_ref());
    let indexes: Vec<Option<&[u8]>> = indexes
        .map(|index| index.map(|index| &index.as_bytes()[..]))
        .collect();
    let shared = sqlx::query!(
        r#"WITH computed AS (
            SELECT n.code_id, n.code_index, row_number() OVER (PARTITION BY n.code_index ORDER BY n.code_id) AS occurrence
              FROM unnest($1::bigint[], $2::bytea[]) AS n (code_id, code_index)
         )
         UPDATE codes AS c
            SET code_index = CASE
                    WHEN n.code_index IS NOT NULL
                     AND n.occurrence = 1
                     AND NOT EXISTS (SELECT FROM codes AS x WHERE x.code_index = n.code_index)
                    THEN n.code_index
                    ELSE c.blind_index
                END
           FROM computed AS n
          WHERE c.code_id = n.code_id AND c.code_index IS NULL
         RETURNING c.code_id, (n.code_index IS NOT NULL AND c.code_index = c.blind_index) AS "is_shared!""#,
        &updates.iter().map(|update| update.code_id.0).collect::<Vec<_>>(),
        indexes as _,
    );
    let shared = shared.fetch_all(&mut *transaction).await?;
    let shared = shared.into_iter().filter(|row| row.is_shared);
    Ok(shared.map(|row| CodeId(row.code_id)).collect())
}
