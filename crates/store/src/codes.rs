//! Retrieval of an order's sealed codes, with its audit entry.
//!
//! The audit entry is committed before the codes are decrypted. Retrieval and cancellation
//! both lock the order's row and check that the other has not happened, so one of them fails.

use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Row as _};
use time::Date;
use vouchsafe_domain::ids::{CredentialId, OrderId, PartnerId, VoucherId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::product::Sku;
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};

use vouchsafe_database::batcher::{BatchOp, BatchResponse, request_index};

/// A request for the codes of an order.
#[derive(Debug, Clone)]
pub struct CodeRetrieval {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    pub credential_id: CredentialId,
    pub address: String,
    pub trace_id: String,
}

/// A voucher with its sealed code.
#[derive(Debug)]
pub struct SealedVoucher {
    pub voucher_id: VoucherId,
    pub sku: Sku,
    pub currency: Currency,
    /// Last valid day.
    pub expiry: Option<Date>,
    pub code_id: CodeId,
    pub sealed: SealedBlob,
}

#[derive(Debug, Default)]
pub enum RetrievalOutcome {
    /// The audit entry is committed; the codes may be decrypted.
    Vouchers(Vec<SealedVoucher>),
    /// The order has no vouchers. A lone retrieval waits for the order's lock, so without a response it had
    /// none when it was read.
    #[default]
    NotReady,
    NotFound,
}

#[derive(Debug, Clone)]
pub(super) struct RetrieveCodesOp;

impl BatchOp for RetrieveCodesOp {
    type Request = CodeRetrieval;
    type Response = RetrievalOutcome;

    const MAX_BATCH: usize = 32;

    /// A lone retrieval waits for the lock of its order.
    const WORKERS: usize = 2;

    async fn execute_batch(
        self,
        pool: PgPool,
        retrievals: Vec<CodeRetrieval>,
    ) -> Result<BatchResponse<RetrievalOutcome>, sqlx::Error> {
        retrieve(&pool, &retrievals).await
    }
}

/// Runs one statement with one commit: locks orders in the lanes' lock order, then allocations, writes the
/// audit entries, and reads the codes. A row that cannot be decoded fails only its own request, because the
/// audit entries are committed already: so its columns are parsed one by one. `None` marks a request to run
/// alone.
async fn retrieve(
    pool: &PgPool,
    retrievals: &[CodeRetrieval],
) -> Result<BatchResponse<RetrievalOutcome>, sqlx::Error> {
    let mut sorted: Vec<usize> = (0..retrievals.len()).collect();
    sorted.sort_unstable_by_key(|index| {
        let retrieval = &retrievals[*index];
        (retrieval.partner_id, retrieval.order_id)
    });
    let in_order = || sorted.iter().map(|index| &retrievals[*index]);
    // Not checked at compile time: `query_as!` fails the whole statement if it cannot decode one column.
    let rows: Vec<RetrievalRow> = sqlx::query_as(
        "SELECT r.request, r.order_exists, r.deferred, r.currency, r.voucher_id, r.expiry, r.code_id, r.product_id, r.denomination, r.key_id,
                r.nonce, r.ciphertext
           FROM retrieve_codes_v1($1, $2, $3, $4, $5) AS r",
    )
    .bind(in_order().map(|retrieval| retrieval.partner_id).collect::<Vec<_>>())
    .bind(in_order().map(|retrieval| retrieval.order_id).collect::<Vec<_>>())
    .bind(in_order().map(|retrieval| retrieval.credential_id).collect::<Vec<_>>())
    .bind(in_order().map(|retrieval| retrieval.address.as_str()).collect::<Vec<_>>())
    .bind(in_order().map(|retrieval| retrieval.trace_id.as_str()).collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let mut retrieved: Vec<_> = retrievals
        .iter()
        .map(|_| Some(Ok(RetrievalOutcome::NotFound)))
        .collect();
    for row in rows {
        let retrieved = &mut retrieved[sorted[request_index(row.position)?]];
        match (row.code.map(CodeRow::into_voucher), &mut *retrieved) {
            (Some(Ok(voucher)), Some(Ok(RetrievalOutcome::Vouchers(vouchers)))) => vouchers.push(voucher),
            (Some(Ok(_)), Some(Err(_))) => {}
            (Some(Ok(voucher)), _) => *retrieved = Some(Ok(RetrievalOutcome::Vouchers(vec![voucher]))),
            (Some(Err(error)), _) => *retrieved = Some(Err(error)),
            (None, _) if row.deferred => *retrieved = None,
            (None, _) if row.order_exists => *retrieved = Some(Ok(RetrievalOutcome::NotReady)),
            (None, _) => {}
        }
    }
    Ok(retrieved)
}

/// A voucher of a retrieval, or a row without a voucher for a retrieval that has none.
struct RetrievalRow {
    position: i32,
    order_exists: bool,
    /// Whether to run this retrieval alone.
    deferred: bool,
    code: Option<CodeRow>,
}

impl FromRow<'_, PgRow> for RetrievalRow {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let code_id: Option<i64> = row.try_get("code_id")?;
        Ok(Self {
            position: row.try_get("request")?,
            order_exists: row.try_get("order_exists")?,
            deferred: row.try_get("deferred")?,
            code: code_id.map(|_| CodeRow::from_row(row)).transpose()?,
        })
    }
}

#[derive(sqlx::FromRow)]
struct CodeRow {
    voucher_id: VoucherId,
    expiry: Option<Date>,
    code_id: i64,
    product_id: String,
    denomination: i64,
    currency: String,
    key_id: i32,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
}

impl CodeRow {
    fn into_voucher(self) -> Result<SealedVoucher, sqlx::Error> {
        let invalid = |column: &str| {
            sqlx::Error::Decode(format!("code {} has an invalid {column}", self.code_id).into())
        };
        let product_id = self.product_id.parse().map_err(|_| invalid("product"))?;
        let nonce = self.nonce.try_into().map_err(|_| invalid("nonce"))?;
        Ok(SealedVoucher {
            voucher_id: self.voucher_id,
            sku: Sku {
                product_id,
                denomination: Amount::from_minor(self.denomination),
            },
            currency: self.currency.parse().map_err(|_| invalid("currency"))?,
            expiry: self.expiry,
            code_id: CodeId(self.code_id),
            sealed: SealedBlob {
                key_id: KeyId(self.key_id),
                nonce,
                ciphertext: self.ciphertext,
            },
        })
    }
}
