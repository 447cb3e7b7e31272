//! Codes of an order, still sealed; and the trail of who read them.
//!
//! Rule: the trail is committed before a code is opened: a row of its own, and the entry that operators read. Retrieval
//! marks the order's row under the same condition that a cancellation needs the other way round, so that one of them loses.

use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Row as _};
use time::Date;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{CredentialId, OrderId, PartnerId, VoucherId};
use vouchsafe_actors::domain::money::{Amount, Currency};
use vouchsafe_actors::domain::product::Sku;

use super::together::{BatchOp, Outcomes, place};
use crate::vault::data_key::KeyId;
use crate::vault::seal::{CodeId, Sealed};

/// Who reads the codes of which order.
#[derive(Debug, Clone)]
pub struct Retrieval {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    pub credential_id: CredentialId,
    pub address: String,
    pub trace_id: String,
}

/// A voucher of the order with its sealed code.
#[derive(Debug)]
pub struct SealedVoucher {
    pub voucher_id: VoucherId,
    pub sku: Sku,
    /// What its face value is counted in.
    pub currency: Currency,
    /// Its last valid day.
    pub expiry: Option<Date>,
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

/// Reads the codes of orders.
#[derive(Debug, Clone)]
pub(super) struct ReadCodes;

impl BatchOp for ReadCodes {
    type Request = Retrieval;
    type Answer = Retrieved;

    const MOST: usize = 32;

    async fn together(
        self,
        pool: PgPool,
        retrievals: Vec<Retrieval>,
    ) -> Result<Outcomes<Retrieved>, sqlx::Error> {
        retrieve(&pool, &retrievals).await
    }

    async fn alone(self, pool: PgPool, retrieval: Retrieval) -> Result<Retrieved, sqlx::Error> {
        let mut retrieved = retrieve(&pool, &[retrieval]).await?;
        // Nobody was waited for: when the order was looked at it held nothing.
        retrieved.pop().flatten().unwrap_or(Ok(Retrieved::NotReady))
    }
}

/// One statement, so one commit: orders first and in the order in which lanes lock them, then their allocations, then the
/// trail, then the codes. What cannot be read of one is an error of its own; `None` is one that has to be read alone.
async fn retrieve(pool: &PgPool, retrievals: &[Retrieval]) -> Result<Outcomes<Retrieved>, sqlx::Error> {
    let mut sorted: Vec<usize> = (0..retrievals.len()).collect();
    sorted.sort_unstable_by_key(|place| {
        let retrieval = &retrievals[*place];
        (retrieval.partner_id.as_uuid(), retrieval.order_id.as_uuid())
    });
    let in_order = || sorted.iter().map(|place| &retrievals[*place]);
    let rows: Vec<RetrievedRow> = sqlx::query_as(
        "SELECT r.reading, r.known, r.put_off, r.currency, r.voucher_id, r.expiry, r.code_id, r.product_id, r.denomination, r.key_id,
                r.nonce, r.ciphertext
           FROM retrieve_codes($1, $2, $3, $4, $5) AS r",
    )
    .bind(in_order().map(|asked| asked.partner_id.as_uuid()).collect::<Vec<_>>())
    .bind(in_order().map(|asked| asked.order_id.as_uuid()).collect::<Vec<_>>())
    .bind(in_order().map(|asked| asked.credential_id.as_uuid()).collect::<Vec<_>>())
    .bind(in_order().map(|asked| asked.address.as_str()).collect::<Vec<_>>())
    .bind(in_order().map(|asked| asked.trace_id.as_str()).collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let mut retrieved: Vec<_> = retrievals.iter().map(|_| Some(Ok(Retrieved::NotFound))).collect();
    for row in rows {
        let retrieved = &mut retrieved[sorted[place(row.reading)?]];
        match (row.code.map(CodeRow::into_voucher), &mut *retrieved) {
            (Some(Ok(voucher)), Some(Ok(Retrieved::Vouchers(vouchers)))) => vouchers.push(voucher),
            (Some(Ok(_)), Some(Err(_))) => {}
            (Some(Ok(voucher)), _) => *retrieved = Some(Ok(Retrieved::Vouchers(vec![voucher]))),
            (Some(Err(error)), _) => *retrieved = Some(Err(error)),
            (None, _) if row.put_off => *retrieved = None,
            (None, _) if row.known => *retrieved = Some(Ok(Retrieved::NotReady)),
            (None, _) => {}
        }
    }
    Ok(retrieved)
}

/// A voucher of a reading; a reading without one has a row without.
struct RetrievedRow {
    reading: i32,
    /// Whether the partner has such an order.
    known: bool,
    /// Whether it has to be read alone.
    put_off: bool,
    code: Option<CodeRow>,
}

impl FromRow<'_, PgRow> for RetrievedRow {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let code_id: Option<i64> = row.try_get("code_id")?;
        Ok(Self {
            reading: row.try_get("reading")?,
            known: row.try_get("known")?,
            put_off: row.try_get("put_off")?,
            code: code_id.map(|_| CodeRow::from_row(row)).transpose()?,
        })
    }
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
