//! Vendors: adapter, URL, concurrency limit and sealed credential.
//!
//! Credentials are stored sealed and returned only for the adapter. A credential belongs to one URL and
//! adapter: after a change of either the operator must enter it again, so that a secret for one server is
//! never sent to another.

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::vendor::{AdapterKind, Vendor};
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::SealedBlob;

use vouchsafe_database::database::{Database, Statement};

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
    /// Sealed for the vendor's id and URL; set for adapter `http`.
    pub credential: Option<SealedBlob>,
}

/// Audited state: everything but the credential.
#[derive(Serialize)]
struct VendorAuditState<'a> {
    #[serde(flatten)]
    vendor: &'a Vendor,
    credentials_changed: bool,
}

/// Runs a statement that returns vendors; `$before` and `$after` enclose the columns.
macro_rules! query_vendors {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $before
                + r#" vendor_id, adapter AS "adapter: AdapterKind", url, key_id, nonce AS "nonce: [u8; 12]", ciphertext,
                      concurrency, updated_at "#
                + $after,
            $($argument),*
        )
        .try_map(|row| {
            let credential = match (row.key_id, row.nonce, row.ciphertext) {
                (Some(key_id), Some(nonce), Some(ciphertext)) => Some(SealedBlob { key_id: KeyId(key_id), nonce, ciphertext }),
                _ => None,
            };
            let concurrency = u16::try_from(row.concurrency);
            let vendor = Vendor {
                vendor_id: row.vendor_id,
                adapter: row.adapter,
                url: row.url,
                has_credentials: credential.is_some(),
                concurrency: concurrency.map_err(|error| sqlx::Error::Decode(error.into()))?,
                updated_at: row.updated_at,
            };
            Ok(VendorWithCredential { vendor, credential })
        })
    };
}

/// Vendors: adapter, URL and sealed credential.
#[derive(Debug, Clone)]
pub struct VendorConfigs(pub(super) Database);

impl VendorConfigs {
    /// Creates a vendor or replaces the one with its id.
    #[boxed]
    pub async fn put(&self, terms: VendorConfig, actor: AuditActor) -> Result<PutVendorOutcome, StoreError> {
        transaction!(self.0, "vendor.put", async |transaction| {
            // Without the lock, two concurrent creations of a vendor would both see none.
            sqlx::query!("LOCK TABLE vendors IN SHARE ROW EXCLUSIVE MODE")
                .execute(&mut **transaction)
                .await?;
            let before = find(&terms.vendor_id).fetch_optional(&mut **transaction).await?;
            let credentials_changed = terms.credential.is_some();
            let terms = keep_existing_credential(terms, before.as_ref());
            if terms.adapter == AdapterKind::Http && terms.credential.is_none() {
                return Ok(PutVendorOutcome::CredentialMissing);
            }
            let vendor = write(transaction, terms).await?;
            let before = before.map(|before| before.vendor);
            let after = VendorAuditState {
                vendor: &vendor,
                credentials_changed,
            };
            audit::write(
                transaction,
                &actor,
                AuditAction::PutVendor,
                &vendor.vendor_id,
                before.as_ref(),
                Some(&after),
            )
            .await?;
            Ok(match before {
                Some(_) => PutVendorOutcome::Replaced(vendor),
                None => PutVendorOutcome::Created(vendor),
            })
        })
    }

    /// Lists all vendors in byte order of their ids. Not paginated: operators create vendors by hand, so
    /// there are few.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<Vendor>, StoreError> {
        let statement = query_vendors!("SELECT", r#"FROM vendors ORDER BY vendor_id COLLATE "C""#);
        self.0.fetch_all(statement.map(|found| found.vendor)).await
    }

    /// Finds a vendor with its credential.
    #[boxed]
    pub async fn find(&self, vendor_id: String) -> Result<Option<VendorWithCredential>, StoreError> {
        self.0.fetch_optional(find(&vendor_id)).await
    }
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

fn find(
    vendor_id: &str,
) -> Statement<impl FnMut(PgRow) -> Result<VendorWithCredential, sqlx::Error> + Send + use<>> {
    query_vendors!("SELECT", "FROM vendors WHERE vendor_id = $1", vendor_id)
}

async fn write(connection: &mut PgConnection, terms: VendorConfig) -> Result<Vendor, sqlx::Error> {
    let credential = terms.credential.as_ref();
    query_vendors!(
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
         RETURNING",
        "",
        terms.vendor_id,
        terms.adapter as _,
        terms.url,
        credential.map(|sealed| sealed.key_id.0),
        credential.map(|sealed| &sealed.nonce[..]),
        credential.map(|sealed| &sealed.ciphertext[..]),
        i32::from(terms.concurrency),
    )
    .map(|written| written.vendor)
    .fetch_one(connection)
    .await
}
