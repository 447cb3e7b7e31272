//! Vendors: adapter, URL, concurrency limit and sealed credential.
//!
//! Credentials are stored sealed and returned only for the adapter. A credential belongs to one URL and adapter: after a change of
//! either the operator must enter it again, so that a secret for one server is never sent to another.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_domain::vendor::{AdapterKind, Vendor};
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::SealedBlob;

use super::audit::{self, AuditAction, AuditActor};
use super::database::Database;

/// Configuration of a vendor, as an operator sets it.
#[derive(Debug, Clone)]
pub struct VendorConfig {
    pub vendor_id: String,
    /// Protocol adapter.
    pub adapter: AdapterKind,
    /// Set for adapter `http`, and for no other.
    pub url: Option<String>,
    /// New credential; `None` keeps the stored one.
    pub credential: Option<SealedBlob>,
    /// Maximum of concurrent purchases.
    pub concurrency: u16,
}

/// Result of creating or replacing a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutVendorOutcome {
    Created(Vendor),
    Replaced(Vendor),
    /// Rejected: the adapter needs a credential, and none is stored for this URL.
    CredentialMissing,
}

/// A vendor with its sealed credential.
#[derive(Debug, Clone)]
pub struct VendorWithCredential {
    pub vendor: Vendor,
    /// Sealed for the vendor's id; set for adapter `http`.
    pub credential: Option<SealedBlob>,
}

/// Audited state: everything but the credential.
#[derive(Serialize)]
struct VendorAuditState<'a> {
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

/// Vendors: adapter, URL and sealed credential.
#[derive(Debug, Clone)]
pub struct VendorConfigs(pub(super) Database);

impl VendorConfigs {
    /// Creates a vendor or replaces the one with its id.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put(&self, terms: VendorConfig, actor: AuditActor) -> Result<PutVendorOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move { put(&pool, terms, &actor).await })
            .await
    }

    /// Lists all vendors in byte order of their ids. Not paginated: operators create vendors by hand, so there are few.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(&self) -> Result<Vec<Vendor>, sqlx::Error> {
        self.0
            .run(|pool| async move {
                let rows: Vec<VendorRow> = sqlx::query_as(
                    "SELECT vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency, updated_at
                   FROM vendors
                  ORDER BY vendor_id COLLATE \"C\"",
                )
                .fetch_all(&pool)
                .await?;
                rows.into_iter()
                    .map(|row| Ok(row.into_vendor()?.vendor))
                    .collect()
            })
            .await
    }

    /// Finds a vendor with its credential.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(&self, vendor_id: String) -> Result<Option<VendorWithCredential>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                find(&mut connection, &vendor_id).await
            })
            .await
    }
}

async fn put(
    pool: &PgPool,
    terms: VendorConfig,
    actor: &AuditActor,
) -> Result<PutVendorOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    // Without the lock, two concurrent creations of a vendor would both see none.
    sqlx::query("LOCK TABLE vendors IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *transaction)
        .await?;
    let before = find(&mut transaction, &terms.vendor_id).await?;
    let credentials_changed = terms.credential.is_some();
    let terms = keep_existing_credential(terms, before.as_ref());
    if terms.adapter == AdapterKind::Http && terms.credential.is_none() {
        return Ok(PutVendorOutcome::CredentialMissing);
    }
    let vendor = write(&mut transaction, terms).await?.into_vendor()?.vendor;
    let before = before.map(|before| before.vendor);
    let action = AuditAction {
        name: "vendor.put",
        subject: &vendor.vendor_id,
    };
    let after = VendorAuditState {
        vendor: &vendor,
        credentials_changed,
    };
    audit::write(&mut transaction, actor, action, before.as_ref(), Some(&after)).await?;
    transaction.commit().await?;
    Ok(match before {
        Some(_) => PutVendorOutcome::Replaced(vendor),
        None => PutVendorOutcome::Created(vendor),
    })
}

/// Keeps the stored credential if none is given and adapter and URL are unchanged.
fn keep_existing_credential(mut terms: VendorConfig, before: Option<&VendorWithCredential>) -> VendorConfig {
    let unchanged =
        before.filter(|before| before.vendor.adapter == terms.adapter && before.vendor.url == terms.url);
    if terms.credential.is_none() {
        terms.credential = unchanged.and_then(|before| before.credential.clone());
    }
    terms
}

async fn find(
    connection: &mut PgConnection,
    vendor_id: &str,
) -> Result<Option<VendorWithCredential>, sqlx::Error> {
    let row: Option<VendorRow> = sqlx::query_as(
        "SELECT vendor_id, adapter, url, key_id, nonce, ciphertext, concurrency, updated_at
           FROM vendors
          WHERE vendor_id = $1",
    )
    .bind(vendor_id)
    .fetch_optional(connection)
    .await?;
    row.map(VendorRow::into_vendor).transpose()
}

async fn write(connection: &mut PgConnection, terms: VendorConfig) -> Result<VendorRow, sqlx::Error> {
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

#[derive(Debug, thiserror::Error)]
#[error("vendor {vendor_id} has an invalid {column}")]
struct InvalidRow {
    vendor_id: String,
    column: &'static str,
}

impl VendorRow {
    fn into_vendor(self) -> Result<VendorWithCredential, sqlx::Error> {
        let vendor_id = self.vendor_id.clone();
        let invalid = |column| sqlx::Error::Decode(Box::new(InvalidRow { vendor_id, column }));
        let Ok(adapter) = self.adapter.parse() else {
            return Err(invalid("adapter"));
        };
        let Ok(concurrency) = u16::try_from(self.concurrency) else {
            return Err(invalid("concurrency"));
        };
        let Ok(nonce) = self.nonce.map(TryInto::try_into).transpose() else {
            return Err(invalid("nonce"));
        };
        let sealed = (self.key_id, nonce, self.ciphertext);
        let credential = match sealed {
            (Some(key_id), Some(nonce), Some(ciphertext)) => Some(SealedBlob {
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
        Ok(VendorWithCredential { vendor, credential })
    }
}
