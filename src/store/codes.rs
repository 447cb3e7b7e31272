//! Codes of an order, still sealed; and the trail of who read them.
//!
//! Rule: the trail is committed before a code is decrypted: a row of its own, and the entry that operators read. Retrieval marks the order's row under the same condition that
//! a cancellation needs the other way round, so that one of them loses.

use sqlx::PgPool;
use time::Date;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{CredentialId, OrderId, PartnerId, VoucherId};
use vouchsafe_actors::domain::money::{Amount, Currency};
use vouchsafe_actors::domain::product::Sku;

use super::PgStore;
use crate::vault::data_key::KeyId;
use crate::vault::seal::{CodeId, Sealed};

/// Who reads the codes of which order.
#[derive(Debug, Clone)]
pub struct Retrieval {
    /// Whose order.
    pub partner_id: PartnerId,
    /// Which.
    pub order_id: OrderId,
    /// With which credential.
    pub credential_id: CredentialId,
    /// From which address.
    pub address: String,
    /// In which request.
    pub trace_id: String,
}

/// A voucher of the order with its sealed code.
#[derive(Debug)]
pub struct SealedVoucher {
    /// Its public id.
    pub voucher_id: VoucherId,
    /// What it is.
    pub sku: Sku,
    /// What its face value is counted in.
    pub currency: Currency,
    /// Its last valid day.
    pub expiry: Option<Date>,
    /// Which code.
    pub code_id: CodeId,
    /// Under which SKU the code was sealed.
    pub sealed: Sealed,
}

/// What a retrieval found.
#[derive(Debug)]
pub enum Retrieved {
    /// The trail is written; these may be opened.
    Vouchers(Vec<SealedVoucher>),
    /// The order holds nothing.
    NotReady,
    /// This partner has no such order.
    NotFound,
}

impl PgStore {
    /// Writes the trail, then reads the sealed codes.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; then the trail may have been written, and nothing was read.
    pub async fn retrieve_codes(&self, retrieval: Retrieval) -> Result<Retrieved, sqlx::Error> {
        self.run(move |pool| async move { retrieve(&pool, &retrieval).await })
            .await
    }
}

async fn retrieve(pool: &PgPool, retrieval: &Retrieval) -> Result<Retrieved, sqlx::Error> {
    let audited = write_trail(pool, retrieval).await?;
    if audited > 0 {
        return Ok(Retrieved::Vouchers(sealed_vouchers(pool, retrieval).await?));
    }
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM orders WHERE partner_id = $1 AND order_id = $2)")
            .bind(retrieval.partner_id.as_uuid())
            .bind(retrieval.order_id.as_uuid())
            .fetch_one(pool)
            .await?;
    Ok(if exists {
        Retrieved::NotReady
    } else {
        Retrieved::NotFound
    })
}

/// One statement, so one commit: the order's row first, then its allocations, then the trail.
async fn write_trail(pool: &PgPool, retrieval: &Retrieval) -> Result<u64, sqlx::Error> {
    let written = sqlx::query(
        "WITH held AS MATERIALIZED (
            SELECT count(*)::integer AS vouchers
              FROM allocations
             WHERE partner_id = $1 AND order_id = $2 AND returned_at IS NULL
         ), marked AS (
            UPDATE orders
               SET codes_retrieved_at = COALESCE(codes_retrieved_at, clock_timestamp())
             WHERE partner_id = $1
               AND order_id = $2
               AND status IN ('PROCESSING', 'PARTIALLY_DELIVERED', 'DELIVERED')
               AND (SELECT vouchers FROM held) > 0
            RETURNING order_id
         ), dated AS (
            UPDATE allocations
               SET first_retrieved_at = clock_timestamp()
             WHERE partner_id = $1
               AND order_id IN (SELECT order_id FROM marked)
               AND first_retrieved_at IS NULL
               AND returned_at IS NULL
         ), told AS (
            INSERT INTO audit_log (operator, action, subject, after, trace_id)
            SELECT $6, 'codes.retrieve', $7,
                   jsonb_build_object('credential_id', $8::text, 'address', $4::text, 'vouchers', h.vouchers), $5
              FROM marked AS m, held AS h
         )
         INSERT INTO code_retrievals (partner_id, order_id, credential_id, address, vouchers, trace_id)
         SELECT $1, m.order_id, $3, $4, h.vouchers, $5
           FROM marked AS m, held AS h",
    )
    .bind(retrieval.partner_id.as_uuid())
    .bind(retrieval.order_id.as_uuid())
    .bind(retrieval.credential_id.as_uuid())
    .bind(&retrieval.address)
    .bind(&retrieval.trace_id)
    .bind(retrieval.partner_id.to_string())
    .bind(retrieval.order_id.to_string())
    .bind(retrieval.credential_id.to_string())
    .execute(pool)
    .await?;
    Ok(written.rows_affected())
}

#[derive(sqlx::FromRow)]
struct CodeRow {
    voucher_id: Uuid,
    expiry: Option<Date>,
    code_id: i64,
    product_id: String,
    denomination: i64,
    currency: String,
    key_id: i32,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
}

async fn sealed_vouchers(pool: &PgPool, retrieval: &Retrieval) -> Result<Vec<SealedVoucher>, sqlx::Error> {
    let rows: Vec<CodeRow> = sqlx::query_as(
        "SELECT a.voucher_id, s.expiry, c.code_id, c.product_id, c.denomination, o.currency, c.key_id, c.nonce,
                c.ciphertext
           FROM orders AS o
           JOIN allocations AS a ON a.partner_id = o.partner_id AND a.order_id = o.order_id
           JOIN stock AS s ON s.stock_id = a.stock_id
           JOIN codes AS c ON c.code_id = s.code_id
          WHERE o.partner_id = $1
            AND o.order_id = $2
            AND a.returned_at IS NULL
            AND a.first_retrieved_at IS NOT NULL -- what came after the trail was written is read next time
          ORDER BY a.line, s.expiry NULLS LAST, a.stock_id",
    )
    .bind(retrieval.partner_id.as_uuid())
    .bind(retrieval.order_id.as_uuid())
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(CodeRow::into_voucher).collect()
}

impl CodeRow {
    fn into_voucher(self) -> Result<SealedVoucher, sqlx::Error> {
        let impossible = |what: &str| {
            sqlx::Error::Decode(format!("code {} has an impossible {what}", self.code_id).into())
        };
        let product_id = self.product_id.parse().map_err(|_| impossible("product"))?;
        let nonce = self.nonce.try_into().map_err(|_| impossible("nonce"))?;
        Ok(SealedVoucher {
            voucher_id: VoucherId::from_uuid(self.voucher_id),
            sku: Sku {
                product_id,
                denomination: Amount::from_minor(self.denomination),
            },
            currency: self.currency.parse().map_err(|_| impossible("currency"))?,
            expiry: self.expiry,
            code_id: CodeId(self.code_id),
            sealed: Sealed {
                key_id: KeyId(self.key_id),
                nonce,
                ciphertext: self.ciphertext,
            },
        })
    }
}
