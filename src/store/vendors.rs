//! Vendors: who vouchers are bought from, which adapter speaks to them, and the credential it shows.
//!
//! Rule: a credential goes in sealed and comes out for the adapter alone. It is kept for one place: a vendor whose URL or
//! adapter changes needs it anew, so that what was meant for one server is not sent to another.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::PgStore;
use super::audit::{self, By, Deed};
use crate::vault::data_key::KeyId;
use crate::vault::seal::Sealed;
use crate::vendor::AdapterKind;

/// A vendor, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Vendor {
    /// Its id, chosen by the operator.
    pub vendor_id: String,
    /// What speaks to it.
    pub adapter: AdapterKind,
    /// Where it is; null where nobody is spoken to.
    #[schema(required)]
    pub url: Option<String>,
    /// Whether a credential is kept for it. The credential itself is never shown.
    pub has_credentials: bool,
    /// How many purchases may be under way with it at a time.
    pub concurrency: u16,
    /// When it was put last.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    pub updated_at: OffsetDateTime,
}

/// What a vendor is to be.
#[derive(Debug, Clone)]
pub struct VendorTerms {
    pub vendor_id: String,
    /// What speaks to it.
    pub adapter: AdapterKind,
    /// Where it is: there for `http`, and for no other.
    pub url: Option<String>,
    /// A new credential; `None` keeps the one that is there.
    pub credential: Option<Sealed>,
    /// How many purchases may be under way with it at a time.
    pub concurrency: u16,
}

/// What became of a wish to put a vendor in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutVendor {
    Created(Vendor),
    /// It was there, and is as asked for now.
    Replaced(Vendor),
    /// It needs a credential: none is kept for it at this URL. Nothing was written.
    CredentialMissing,
}

/// A vendor with what its adapter shows it.
#[derive(Debug, Clone)]
pub struct VendorAccess {
    pub vendor: Vendor,
    /// Its credential, to be opened for this vendor's id; there for `http`.
    pub credential: Option<Sealed>,
}

/// What the trail says after a put: everything but the credential.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    vendor: &'a Vendor,
    credentials_changed: bool,
}

#[derive(sqlx::FromRow)]
struct VendorRow {
    vendor_id: String,
    adapter: String,
    url: Option<String>,
    key_id: Option<i32>,
    nonce: Option<Vec<u8>>,
    ciphertext: Option<Vec<u8>>,
    concurrency: i32,
    updated_at: OffsetDateTime,
}

impl PgStore {
    /// Puts a vendor in, or in the place of the one with its id.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put_vendor(&self, terms: VendorTerms, by: By) -> Result<PutVendor, sqlx::Error> {
        self.run(move |pool| async move { put(&pool, terms, &by).await })
            .await
    }

    /// All vendors, by the bytes of their ids: an operator makes each by hand, so they are few.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_vendors(&self) -> Result<Vec<Vendor>, sqlx::Error> {
        self.run(|pool| async move {
            let rows: Vec<VendorRow> = sqlx::query_as(
                "SELECT vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency, updated_at
                   FROM vendors
                  ORDER BY vendor_id COLLATE \"C\"",
            )
            .fetch_all(&pool)
            .await?;
            rows.into_iter().map(|row| Ok(row.read()?.vendor)).collect()
        })
        .await
    }

    /// A vendor with its credential, for the adapter that speaks to it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_vendor(&self, vendor_id: String) -> Result<Option<VendorAccess>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut connection = pool.acquire().await?;
            find(&mut connection, &vendor_id).await
        })
        .await
    }
}

/// The whole table is locked against other writers: two puts of a new vendor would each see none.
async fn put(pool: &PgPool, terms: VendorTerms, by: &By) -> Result<PutVendor, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("LOCK TABLE vendors IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *transaction)
        .await?;
    let before = find(&mut transaction, &terms.vendor_id).await?;
    let credentials_changed = terms.credential.is_some();
    let terms = with_kept_credential(terms, before.as_ref());
    if terms.adapter == AdapterKind::Http && terms.credential.is_none() {
        return Ok(PutVendor::CredentialMissing);
    }
    let vendor = write(&mut transaction, terms).await?.read()?.vendor;
    let before = before.map(|before| before.vendor);
    let deed = Deed {
        action: "vendor.put",
        subject: &vendor.vendor_id,
    };
    let told = Told {
        vendor: &vendor,
        credentials_changed,
    };
    audit::write(&mut transaction, by, deed, before.as_ref(), Some(&told)).await?;
    transaction.commit().await?;
    Ok(match before {
        Some(_) => PutVendor::Replaced(vendor),
        None => PutVendor::Created(vendor),
    })
}

/// The credential that is there stays where nothing else was said, for the same place.
fn with_kept_credential(mut terms: VendorTerms, before: Option<&VendorAccess>) -> VendorTerms {
    let kept =
        before.filter(|before| before.vendor.adapter == terms.adapter && before.vendor.url == terms.url);
    if terms.credential.is_none() {
        terms.credential = kept.and_then(|kept| kept.credential.clone());
    }
    terms
}

async fn find(connection: &mut PgConnection, vendor_id: &str) -> Result<Option<VendorAccess>, sqlx::Error> {
    let row: Option<VendorRow> = sqlx::query_as(
        "SELECT vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency, updated_at
           FROM vendors
          WHERE vendor_id = $1",
    )
    .bind(vendor_id)
    .fetch_optional(connection)
    .await?;
    row.map(VendorRow::read).transpose()
}

async fn write(connection: &mut PgConnection, terms: VendorTerms) -> Result<VendorRow, sqlx::Error> {
    let (key_id, nonce, ciphertext) = match terms.credential {
        Some(sealed) => (
            Some(sealed.key_id.0),
            Some(sealed.nonce.to_vec()),
            Some(sealed.ciphertext),
        ),
        None => (None, None, None),
    };
    sqlx::query_as(
        "INSERT INTO vendors (vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (vendor_id) DO UPDATE
            SET adapter = EXCLUDED.adapter,
                url = EXCLUDED.url,
                key_id = EXCLUDED.key_id,
                nonce = EXCLUDED.nonce,
                ciphertext = EXCLUDED.ciphertext,
                concurrency = EXCLUDED.concurrency,
                updated_at = now()
         RETURNING vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency, updated_at",
    )
    .bind(terms.vendor_id)
    .bind(terms.adapter.as_str())
    .bind(terms.url)
    .bind(key_id)
    .bind(nonce)
    .bind(ciphertext)
    .bind(i32::from(terms.concurrency))
    .fetch_one(connection)
    .await
}

/// A row that our own statements could not have written.
#[derive(Debug, thiserror::Error)]
#[error("vendor {vendor_id} has an impossible {column}")]
struct ImpossibleRow {
    vendor_id: String,
    column: &'static str,
}

impl VendorRow {
    fn read(self) -> Result<VendorAccess, sqlx::Error> {
        let vendor_id = self.vendor_id.clone();
        let impossible = |column| sqlx::Error::Decode(Box::new(ImpossibleRow { vendor_id, column }));
        let Ok(adapter) = self.adapter.parse() else {
            return Err(impossible("adapter"));
        };
        let Ok(concurrency) = u16::try_from(self.concurrency) else {
            return Err(impossible("concurrency"));
        };
        let Ok(nonce) = self.nonce.map(TryInto::try_into).transpose() else {
            return Err(impossible("nonce"));
        };
        let sealed = (self.key_id, nonce, self.ciphertext);
        let credential = match sealed {
            (Some(key_id), Some(nonce), Some(ciphertext)) => Some(Sealed {
                key_id: KeyId(key_id),
                nonce,
                ciphertext,
            }),
            _ => None,
        };
        let vendor = Vendor {
            vendor_id: self.vendor_id,
            adapter,
            url: self.url,
            has_credentials: credential.is_some(),
            concurrency,
            updated_at: self.updated_at,
        };
        Ok(VendorAccess { vendor, credential })
    }
}
