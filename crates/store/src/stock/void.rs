//! Void of vouchers: removes free vouchers from sale with a row in `allocations`.
//!
//! The primary key of `allocations` decides between a void and a concurrent sale. A shelf in memory may still
//! offer a void voucher; the commit of such an order fails.

use serde::Serialize;
use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_security::vault::blind_index::BlindIndex;

use crate::stock::Stock;

/// Chunks per transaction, about 5,000 rows: a concurrent order waits a few milliseconds.
const MAX_CHUNKS: usize = 10;

#[derive(Debug, Clone)]
pub enum VoidTarget {
    /// All free vouchers of a SKU.
    Sku(Sku),
    /// Codes of a product.
    Codes(ProductId, Vec<CodeMatch>),
}

/// Which stored codes a code in a list of an operator names.
#[derive(Debug, Clone, Copy)]
pub struct CodeMatch {
    /// Index of code and PIN. Comes first.
    pub blind_index: BlindIndex,
    /// Index of the code with any PIN, if the product's vouchers are identified by it.
    pub code_index: Option<BlindIndex>,
}

/// Indexes as a parameter of a statement.
type IndexColumn<'a> = Vec<Option<&'a [u8]>>;

impl CodeMatch {
    /// The columns of several: blind indexes and code indexes.
    pub(crate) fn columns<'a>(
        matches: impl Iterator<Item = Option<&'a Self>>,
    ) -> (IndexColumn<'a>, IndexColumn<'a>) {
        let bytes = |index: &'a BlindIndex| &index.as_bytes()[..];
        matches
            .map(|found| {
                let code_index = found.and_then(|found| found.code_index.as_ref());
                (
                    found.map(|found| bytes(&found.blind_index)),
                    code_index.map(bytes),
                )
            })
            .unzip()
    }
}

/// Result of a void.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoidOutcome {
    /// Number of vouchers removed from sale.
    pub voided: u64,
    /// Result per code, in request order.
    pub codes: Vec<CodeVoidOutcome>,
    /// SKUs whose shelves in memory may still contain the vouchers.
    pub skus: Vec<Sku>,
}

/// Audited state of a void.
#[derive(Serialize)]
struct VoidAuditState<'a> {
    voided: u64,
    reason: &'a str,
}

impl Stock {
    /// Removes vouchers from sale. Idempotent.
    ///
    /// # Errors
    /// Part of the vouchers may be void.
    #[boxed]
    pub async fn void(
        &self,
        target: VoidTarget,
        reason: String,
        actor: AuditActor,
    ) -> Result<VoidOutcome, StoreError> {
        match target {
            VoidTarget::Sku(sku) => self.void_sku(sku, reason, actor).await,
            VoidTarget::Codes(product_id, codes) => transaction!(self.0, "stock.void", async |transaction| {
                let mut found = find(transaction, &product_id, &codes).await?;
                let mut voided_rows = Vec::new();
                loop {
                    let stock_ids: Vec<i64> = found.iter().map(|row| row.stock_id).collect();
                    voided_rows.extend(void_rows(transaction, stock_ids.clone()).await?);
                    // A sale or a return may have been committed between look and write: the result names
                    // what holds now, and a voucher that was returned to stock meanwhile is voided too.
                    found = find(transaction, &product_id, &codes).await?;
                    if found.iter().map(|row| row.stock_id).eq(stock_ids) {
                        break;
                    }
                }
                let outcome: Vec<CodeVoidOutcome> = (1..)
                    .zip(&codes)
                    .map(|(position, _)| code_outcome(position, &found, &voided_rows))
                    .collect();
                let voided = voided_rows.len() as u64;
                write_audit_entry(transaction, &actor, product_id.as_str(), voided, &reason).await?;
                let mut denominations: Vec<Amount> = found.iter().map(|found| found.denomination).collect();
                denominations.sort_unstable();
                denominations.dedup();
                let skus = denominations.into_iter().map(|denomination| Sku {
                    product_id: product_id.clone(),
                    denomination,
                });
                Ok(VoidOutcome {
                    voided,
                    codes: outcome,
                    skus: skus.collect(),
                })
            }),
        }
    }

    /// One transaction and audit entry per group of chunks: a SKU may have thousands.
    async fn void_sku(&self, sku: Sku, reason: String, actor: AuditActor) -> Result<VoidOutcome, StoreError> {
        let chunks = sqlx::query!(
            "SELECT chunk_id
               FROM chunks
              WHERE product_id = $1
                AND denomination = $2
                AND NOT emptied
              ORDER BY chunk_id",
            sku.product_id as _,
            sku.denomination as _,
        );
        let chunks = self.0.fetch_all(chunks.map(|row| row.chunk_id)).await?;
        let mut voided = 0;
        for group in chunks.chunks(MAX_CHUNKS) {
            let (group, subject, reason, actor) =
                (group.to_vec(), sku.to_string(), reason.clone(), actor.clone());
            voided += transaction!(self.0, "stock.void", async |transaction| {
                let voided = void_chunks(transaction, &group).await?;
                write_audit_entry(transaction, &actor, &subject, voided, &reason).await?;
                Ok(voided)
            })?;
        }
        Ok(VoidOutcome {
            voided,
            codes: Vec::new(),
            skus: vec![sku],
        })
    }
}

/// Locks by stock id, as commits do.
async fn void_chunks(connection: &mut PgConnection, chunks: &[i64]) -> Result<u64, sqlx::Error> {
    let voided = sqlx::query!(
        "INSERT INTO allocations (stock_id, withdrawal_reason)
         SELECT s.stock_id, 'void'
           FROM chunks AS c
          CROSS JOIN LATERAL free_stock_v1(c.first_stock_id, c.last_stock_id, '-infinity') AS s
          WHERE c.chunk_id = ANY ($1)
          ORDER BY s.stock_id
         ON CONFLICT (stock_id) DO NOTHING",
        chunks,
    );
    Ok(voided.execute(connection).await?.rows_affected())
}

/// The newest stock row of a requested code.
struct CodeRow {
    /// Position of the code in the request, from 1.
    position: i64,
    denomination: Amount,
    stock_id: i64,
    order_id: Option<OrderId>,
}

async fn find(
    connection: &mut PgConnection,
    product_id: &ProductId,
    codes: &[CodeMatch],
) -> Result<Vec<CodeRow>, sqlx::Error> {
    let (blind_indexes, code_indexes) = CodeMatch::columns(codes.iter().map(Some));
    sqlx::query_as!(
        CodeRow,
        r#"SELECT DISTINCT ON (n.position) n.position AS "position!", c.denomination AS "denomination!: Amount",
                s.stock_id, a.order_id AS "order_id?: OrderId"
           FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS n (blind_index, code_index, position)
          CROSS JOIN LATERAL (
                SELECT c.code_id, c.product_id, c.denomination, 1 AS preference
                  FROM codes AS c
                 WHERE c.blind_index = n.blind_index
                 UNION ALL
                SELECT c.code_id, c.product_id, c.denomination, 2
                  FROM codes AS c
                 WHERE c.code_index = n.code_index
               ) AS c
           JOIN stock AS s ON s.code_id = c.code_id
           LEFT JOIN allocations AS a ON a.stock_id = s.stock_id
          WHERE c.product_id = $1
          ORDER BY n.position, c.preference, s.stock_id DESC"#,
        product_id as _,
        blind_indexes as _,
        code_indexes as _,
    )
    .fetch_all(connection)
    .await
}

/// Voids stock rows and returns those that were free. In stock id order, the lock order of commits.
pub(crate) async fn void_rows(
    connection: &mut PgConnection,
    mut stock_ids: Vec<i64>,
) -> Result<Vec<i64>, sqlx::Error> {
    stock_ids.sort_unstable();
    stock_ids.dedup();
    sqlx::query_scalar!(
        "INSERT INTO allocations (stock_id, withdrawal_reason)
         SELECT s.stock_id, 'void'
           FROM unnest($1::bigint[]) AS s (stock_id)
          ORDER BY s.stock_id
         ON CONFLICT (stock_id) DO NOTHING
         RETURNING stock_id",
        &stock_ids,
    )
    .fetch_all(connection)
    .await
}

fn code_outcome(position: i64, found: &[CodeRow], voided_rows: &[i64]) -> CodeVoidOutcome {
    match found.iter().find(|found| found.position == position) {
        None => CodeVoidOutcome::Unknown,
        Some(found) if voided_rows.contains(&found.stock_id) => CodeVoidOutcome::Voided,
        Some(found) if found.order_id.is_some() => CodeVoidOutcome::Sold,
        Some(_) => CodeVoidOutcome::AlreadyOut,
    }
}

async fn write_audit_entry(
    connection: &mut PgConnection,
    actor: &AuditActor,
    subject: &str,
    voided: u64,
    reason: &str,
) -> Result<(), sqlx::Error> {
    if voided == 0 {
        return Ok(());
    }
    audit::write(
        connection,
        actor,
        AuditAction::VoidStock,
        subject,
        NO_STATE,
        Some(&VoidAuditState { voided, reason }),
    )
    .await
}
