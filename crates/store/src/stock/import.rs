//! Import transaction: new codes, their stock rows and chunks, and the audit entry.
//!
//! Two unique indexes admit each voucher of a brand once, also between concurrent imports of one file: the
//! blind index (code and PIN) and the code index (code). Codes are inserted in code index order, so
//! concurrent imports cannot deadlock. A product whose vouchers are identified by code and PIN inserts those
//! that share a code in a second pass, in blind index order, with the blind index as code index: the code
//! index of a first pass is never waited for in a second one.

use std::collections::HashSet;

use serde::Serialize;
use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::product::{CodeCase, CodeIdentity};
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_security::vault::blind_index::BlindIndex;

use super::chunks::{ChunkRange, split_into_chunks};
use super::{ImportOutcome, ImportSummary, ImportTarget, NewVoucher, StockBatch, StockOrigin};
use crate::data_keys::check_stored;

/// Audited state of an import.
#[derive(Serialize)]
struct ImportAuditState<'a> {
    /// Set if the subject of the audit entry is not the SKU.
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    /// Absent for purchases.
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<&'a str>,
    imported: u64,
    duplicates: u64,
    conflicts: usize,
}

pub(super) async fn import(
    transaction: &mut PgConnection,
    batch: &StockBatch,
    actor: &AuditActor,
) -> Result<ImportOutcome, sqlx::Error> {
    if !is_current(transaction, &batch.target).await? {
        return Ok(ImportOutcome::ProductChanged);
    }
    let key_ids = batch.vouchers.iter().map(|voucher| voucher.sealed.key_id);
    check_stored(transaction, key_ids).await?;
    let new = insert_codes(transaction, batch).await?;
    let mut fresh: Vec<&NewVoucher> = batch
        .vouchers
        .iter()
        .filter(|voucher| new.contains(&voucher.code_id.0))
        .collect();
    fresh.sort_by_key(|voucher| (Expiry::from_date(voucher.expiry), voucher.code_id));
    insert_stock(transaction, batch, &fresh).await?;
    let conflicts = find_conflicts(transaction, batch, &new).await?;
    let imported = ImportSummary {
        imported: fresh.len() as u64,
        duplicates: (batch.vouchers.len() - fresh.len() - conflicts.len()) as u64,
        conflicts,
        earliest: fresh.first().map(|voucher| Expiry::from_date(voucher.expiry)),
    };
    if imported.imported > 0 {
        let sku = batch.target.sku.to_string();
        let (action, subject, sku) = match batch.origin {
            StockOrigin::Import(_) | StockOrigin::Purchase(_) => (AuditAction::ImportStock, sku, None),
            StockOrigin::Manual { order_id, .. } => {
                (AuditAction::FulfilOrder, order_id.to_string(), Some(sku))
            }
        };
        let named = batch.origin.batch();
        let entry = ImportAuditState {
            sku,
            vendor: named.map(|named| named.vendor.as_str()),
            batch: named.map(|named| named.batch.as_str()),
            imported: imported.imported,
            duplicates: imported.duplicates,
            conflicts: imported.conflicts.len(),
        };
        let partner_id = find_partner(transaction, &batch.origin).await?;
        audit::write_of_partner(
            transaction,
            actor,
            partner_id,
            action,
            &subject,
            NO_STATE,
            Some(&entry),
        )
        .await?;
    }
    Ok(ImportOutcome::Stored(imported))
}

/// The partner for whose order the vouchers are reserved; `None` if they are for sale.
async fn find_partner(
    connection: &mut PgConnection,
    origin: &StockOrigin,
) -> Result<Option<PartnerId>, sqlx::Error> {
    let Some(purchase_id) = origin.reservation_id() else {
        return Ok(None);
    };
    sqlx::query_scalar!(
        r#"SELECT partner_id AS "partner_id: PartnerId" FROM purchases WHERE purchase_id = $1"#,
        purchase_id,
    )
    .fetch_optional(connection)
    .await
}

/// Whether the product is as the target says; locks its row until the transaction ends.
async fn is_current(connection: &mut PgConnection, target: &ImportTarget) -> Result<bool, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT brand, currency AS "currency: Currency", code_identity AS "code_identity: CodeIdentity",
                  code_case AS "code_case: CodeCase"
             FROM products
            WHERE product_id = $1
              FOR SHARE"#,
        target.sku.product_id as _,
    );
    let found = found.fetch_optional(connection).await?;
    Ok(found.is_some_and(|product| {
        product.brand == target.brand
            && product.currency == target.currency
            && product.code_identity == target.code_identity
            && product.code_case == target.code_case
    }))
}

/// Inserts the codes that are new and returns their ids.
async fn insert_codes(
    connection: &mut PgConnection,
    batch: &StockBatch,
) -> Result<HashSet<i64>, sqlx::Error> {
    let mut vouchers: Vec<&NewVoucher> = batch.vouchers.iter().collect();
    // Stable: of two vouchers with one code, the earlier line is stored.
    vouchers.sort_by_key(|voucher| *voucher.code_index.as_bytes());
    let mut inserted = insert_under(connection, batch, &vouchers, |voucher| &voucher.code_index).await?;
    if batch.target.code_identity == CodeIdentity::CodeAndPin {
        vouchers.retain(|voucher| !inserted.contains(&voucher.code_id.0));
        vouchers.sort_by_key(|voucher| *voucher.blind_index.as_bytes());
        inserted.extend(insert_under(connection, batch, &vouchers, |voucher| &voucher.blind_index).await?);
    }
    Ok(inserted)
}

/// Inserts codes with this code index, except for those that violate one of the unique indexes. Returns the
/// ids of the others.
async fn insert_under(
    connection: &mut PgConnection,
    batch: &StockBatch,
    vouchers: &[&NewVoucher],
    code_index: fn(&NewVoucher) -> &BlindIndex,
) -> Result<HashSet<i64>, sqlx::Error> {
    let column = |of: fn(&NewVoucher) -> &[u8]| vouchers.iter().map(|v| of(v)).collect::<Vec<&[u8]>>();
    let code_indexes: Vec<&[u8]> = vouchers.iter().map(|v| &code_index(v).as_bytes()[..]).collect();
    let inserted = sqlx::query_scalar!(
        "INSERT INTO codes (code_id, product_id, denomination, blind_index, key_id, nonce, ciphertext, purchase_id,
                            vendor_reference, bought_at, code_index, import_id)
         SELECT v.code_id, $1, $2, v.blind_index, v.key_id, v.nonce, v.ciphertext, $8, v.vendor_reference,
                CASE WHEN $8::uuid IS NOT NULL THEN clock_timestamp() END, v.code_index, $11
           FROM unnest($3::bigint[], $4::bytea[], $5::integer[], $6::bytea[], $7::bytea[], $9::text[], $10::bytea[])
                AS v (code_id, blind_index, key_id, nonce, ciphertext, vendor_reference, code_index)
         ON CONFLICT DO NOTHING
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
        code_indexes as _,
        batch.origin.batch().map(|named| named.import_id),
    );
    Ok(inserted.fetch_all(connection).await?.into_iter().collect())
}

/// The indexes of the vouchers that are neither new nor stored already: the brand has their code with another
/// PIN.
async fn find_conflicts(
    connection: &mut PgConnection,
    batch: &StockBatch,
    new: &HashSet<i64>,
) -> Result<Vec<usize>, sqlx::Error> {
    let old = batch.vouchers.iter().enumerate();
    let old: Vec<_> = old
        .filter(|(_, voucher)| !new.contains(&voucher.code_id.0))
        .collect();
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let indexes: Vec<&[u8]> = old
        .iter()
        .map(|(_, voucher)| &voucher.blind_index.as_bytes()[..])
        .collect();
    let known = sqlx::query_scalar!(
        "SELECT blind_index FROM codes WHERE blind_index = ANY ($1)",
        indexes as _
    );
    let known: HashSet<Vec<u8>> = known.fetch_all(connection).await?.into_iter().collect();
    let conflicts = old
        .into_iter()
        .filter(|(_, voucher)| !known.contains(&voucher.blind_index.as_bytes()[..]));
    Ok(conflicts.map(|(index, _)| index).collect())
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
                   COALESCE($11, (SELECT gen_random_uuid()
                                    WHERE EXISTS (SELECT FROM order_demands WHERE product_id = $1 AND denomination = $2)))
              FROM unnest($3::date[], $4::date[], $5::bigint[], $6::bigint[])
                   AS c (first_expiry, last_expiry, first_stock_id, last_stock_id)
            RETURNING chunk_id, first_stock_id
         ), unsold AS (
            -- The first chunk of a SKU: everything is sold later.
            INSERT INTO stock_sold (product_id, denomination, at, sold)
            SELECT $1, $2, now(), 0
             WHERE NOT EXISTS (SELECT FROM chunks WHERE product_id = $1 AND denomination = $2 AND voided IS NULL)
               AND NOT EXISTS (SELECT FROM stock_totals WHERE product_id = $1 AND denomination = $2)
            ON CONFLICT DO NOTHING
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
