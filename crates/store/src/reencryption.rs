//! Re-encryption of old codes under the newest data key, in the background.
//!
//! A request is a row with a position. Each batch reads the codes after the position, encrypts them again
//! outside of a transaction, and stores them with the new position in one: it can be interrupted at any time,
//! and on concurrent calls one node stores the batch. A code is replaced only if it is still the one that was
//! read. Orders, voiding and retrieval do not change these columns, and a reader sees key, nonce and
//! ciphertext of one version of the row.

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::{CodeId, OpenError, SealError, SealedBlob, Vault};

use crate::data_keys::check_stored;
use crate::stock::sealed_blob;
use vouchsafe_database::database::Database;

/// Codes per transaction: some ten milliseconds of encryption and a commit of half a MiB.
const MAX_CODES: usize = 1_000;

/// Per batch: all codes under a damaged key fail.
const MAX_LOGGED_FAILURES: usize = 10;

/// Requests that are listed.
const MAX_LISTED: i64 = 10;

/// Codes under an older key that a node still stores after this time are left to the next request: nodes load
/// a new key within ten seconds. Seconds.
const KEY_LEARNING_TIME_S: f64 = 60.0;

/// A request to encrypt old codes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReencryptionRow {
    pub reencryption_id: i32,
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub requested_at: OffsetDateTime,
    /// Codes under older data keys are encrypted again.
    pub key_id: i32,
    /// Codes up to this id are done.
    pub position: i64,
    pub codes: i64,
    /// Codes that cannot be decrypted, and stay as they are.
    pub failures: i64,
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    pub ended_at: Option<OffsetDateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    Requested(ReencryptionRow),
    /// One has not ended yet.
    InProgress(ReencryptionRow),
    /// There is no older data key for codes.
    NoOlderKey,
}

/// A stored code.
#[derive(Debug)]
pub struct StoredCode {
    pub code_id: CodeId,
    pub sku: Sku,
    pub sealed: SealedBlob,
}

/// Codes after the position of a request.
#[derive(Debug)]
pub struct ReencryptionBatch {
    reencryption_id: i32,
    position: i64,
    key_id: KeyId,
    codes: Vec<StoredCode>,
}

/// A code under its new data key.
#[derive(Debug)]
pub struct ReencryptedCode {
    pub code_id: CodeId,
    pub before: SealedBlob,
    pub after: SealedBlob,
}

impl StoredCode {
    fn encrypt_again(&self, vault: &Vault) -> Result<Result<ReencryptedCode, OpenError>, SealError> {
        let Self { code_id, sku, sealed } = self;
        let code = match vault.open(*code_id, sku, sealed) {
            Ok(code) => code,
            Err(error) => return Ok(Err(error)),
        };
        let after = vault.seal(*code_id, sku, &code)?;
        // It replaces the only copy of the code.
        Ok(match vault.open(*code_id, sku, &after) {
            Ok(opened) if opened.parts().eq(code.parts()) => Ok(ReencryptedCode {
                code_id: *code_id,
                before: sealed.clone(),
                after,
            }),
            Ok(_) => Err(OpenError::AuthenticationFailed { code_id: *code_id }),
            Err(error) => Err(error),
        })
    }
}

impl ReencryptionBatch {
    /// The codes that need a newer data key.
    pub fn old_codes(&self) -> impl Iterator<Item = &StoredCode> {
        self.codes.iter().filter(|code| code.sealed.key_id < self.key_id)
    }

    /// Encrypts the old codes under the active key of the vault, for the same row and SKU. A code that cannot
    /// be decrypted is left out; the first ones are logged.
    ///
    /// # Errors
    /// [`SealError`]; nothing was changed.
    pub fn encrypt_again(&self, vault: &Vault) -> Result<Vec<ReencryptedCode>, SealError> {
        let mut codes = Vec::with_capacity(self.codes.len());
        let mut failures = 0;
        for code in self.old_codes() {
            match code.encrypt_again(vault)? {
                Ok(reencrypted) => codes.push(reencrypted),
                Err(error) => {
                    failures += 1;
                    if failures <= MAX_LOGGED_FAILURES {
                        tracing::error!(code.id = code.code_id.0, error.message = %error, "cannot encrypt a code again");
                    }
                }
            }
        }
        if failures > MAX_LOGGED_FAILURES {
            tracing::error!(
                codes.failed = failures,
                "cannot encrypt codes again; the first ones are logged"
            );
        }
        Ok(codes)
    }

    /// The newest data key at the request: codes under older ones are encrypted again.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    const fn is_last(&self) -> bool {
        self.codes.len() < MAX_CODES
    }
}

/// Requests the re-encryption of all codes under older data keys than the newest.
#[boxed]
pub async fn request_reencryption(database: &PgConnectOptions) -> Result<RequestOutcome, StoreError> {
    let mut connection = connect(database).await?;
    let mut transaction = connection.begin().await?;
    let keys =
        sqlx::query_scalar!("SELECT key_id FROM data_keys WHERE purpose = 'codes' ORDER BY key_id DESC");
    let keys = keys.fetch_all(&mut *transaction).await?;
    let [newest, _, ..] = keys[..] else {
        return Ok(RequestOutcome::NoOlderKey);
    };
    let inserted = sqlx::query!(
        "INSERT INTO code_reencryptions (key_id) VALUES ($1) ON CONFLICT DO NOTHING",
        newest
    );
    let is_new = inserted.execute(&mut *transaction).await?.rows_affected() == 1;
    if is_new {
        let actor = AuditActor::command_line();
        audit::write(
            &mut transaction,
            &actor,
            AuditAction::ReencryptCodes,
            &newest,
            NO_STATE,
            NO_STATE,
        )
        .await?;
    }
    let open = list_reencryptions(&mut transaction).await?;
    transaction.commit().await?;
    let newest = open.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    Ok(if is_new {
        RequestOutcome::Requested(newest)
    } else {
        RequestOutcome::InProgress(newest)
    })
}

/// The latest requests, newest first.
pub(super) async fn list_reencryptions(
    connection: &mut PgConnection,
) -> Result<Vec<ReencryptionRow>, sqlx::Error> {
    sqlx::query_as!(
        ReencryptionRow,
        "SELECT reencryption_id, requested_at, key_id, position, codes, failures, ended_at
           FROM code_reencryptions
          ORDER BY reencryption_id DESC
          LIMIT $1",
        MAX_LISTED,
    )
    .fetch_all(connection)
    .await
}

/// The background job that encrypts old codes again.
#[derive(Debug, Clone)]
pub struct Reencryptions(pub(super) Database);

impl Reencryptions {
    /// Reads the next codes of the open request, if there is one and all nodes have had the time to load its
    /// data key.
    #[boxed]
    pub async fn next_batch(&self) -> Result<Option<ReencryptionBatch>, StoreError> {
        self.0.run(|pool| async move { next_batch(&pool).await }).await
    }

    /// Stores codes of the batch, and the position after it. The others of its old codes count as failures.
    /// Returns whether there is more to do.
    ///
    /// # Errors
    /// Repeating is safe.
    #[boxed]
    pub async fn store(
        &self,
        batch: ReencryptionBatch,
        codes: Vec<ReencryptedCode>,
    ) -> Result<bool, StoreError> {
        transaction!(self.0, "code.reencrypt", async |transaction| {
            store(transaction, &batch, &codes).await
        })
    }
}

async fn next_batch(pool: &PgPool) -> Result<Option<ReencryptionBatch>, sqlx::Error> {
    let open = sqlx::query!(
        "SELECT r.reencryption_id, r.position, r.key_id
           FROM code_reencryptions AS r
           JOIN data_keys AS k ON k.key_id = r.key_id
          WHERE r.ended_at IS NULL AND k.created_at < clock_timestamp() - make_interval(secs => $1)",
        KEY_LEARNING_TIME_S,
    );
    let Some(open) = open.fetch_optional(pool).await? else {
        return Ok(None);
    };
    let codes = sqlx::query!(
        r#"SELECT code_id, product_id AS "product_id: ProductId", denomination AS "denomination: Amount", key_id, nonce, ciphertext
             FROM codes
            WHERE code_id > $1
            ORDER BY code_id
            LIMIT $2"#,
        open.position,
        to_bigint(MAX_CODES),
    )
    .try_map(|row| {
        Ok(StoredCode {
            code_id: CodeId(row.code_id),
            sku: Sku {
                product_id: row.product_id,
                denomination: row.denomination,
            },
            sealed: sealed_blob(row.key_id, row.nonce, row.ciphertext)?,
        })
    });
    Ok(Some(ReencryptionBatch {
        reencryption_id: open.reencryption_id,
        position: open.position,
        key_id: KeyId(open.key_id),
        codes: codes.fetch_all(pool).await?,
    }))
}

/// Locks the request, then codes, then the data key.
async fn store(
    transaction: &mut PgConnection,
    batch: &ReencryptionBatch,
    codes: &[ReencryptedCode],
) -> Result<bool, sqlx::Error> {
    let is_current = sqlx::query_scalar!(
        r#"SELECT true AS "is_current!"
             FROM code_reencryptions
            WHERE reencryption_id = $1 AND position = $2 AND ended_at IS NULL
              FOR UPDATE SKIP LOCKED"#,
        batch.reencryption_id,
        batch.position,
    );
    if is_current.fetch_optional(&mut *transaction).await?.is_none() {
        // Another node stores this batch, or has stored it.
        return Ok(false);
    }
    check_stored(transaction, codes.iter().map(|code| code.after.key_id)).await?;
    let old_nonces: Vec<&[u8]> = codes.iter().map(|code| &code.before.nonce[..]).collect();
    let nonces: Vec<&[u8]> = codes.iter().map(|code| &code.after.nonce[..]).collect();
    let ciphertexts: Vec<&[u8]> = codes.iter().map(|code| &code.after.ciphertext[..]).collect();
    let updated = sqlx::query!(
        "UPDATE codes AS c
            SET key_id = n.key_id, nonce = n.nonce, ciphertext = n.ciphertext
           FROM unnest($1::bigint[], $2::integer[], $3::bytea[], $4::integer[], $5::bytea[], $6::bytea[])
                AS n (code_id, old_key_id, old_nonce, key_id, nonce, ciphertext)
          WHERE c.code_id = n.code_id AND c.key_id = n.old_key_id AND c.nonce = n.old_nonce",
        &codes.iter().map(|code| code.code_id.0).collect::<Vec<_>>(),
        &codes.iter().map(|code| code.before.key_id.0).collect::<Vec<_>>(),
        &old_nonces as _,
        &codes.iter().map(|code| code.after.key_id.0).collect::<Vec<_>>(),
        &nonces as _,
        &ciphertexts as _,
    );
    let updated = updated.execute(&mut *transaction).await?.rows_affected();
    let updated = updated.cast_signed();
    let position = batch.codes.last().map_or(batch.position, |code| code.code_id.0);
    let failures = to_bigint(batch.old_codes().count().saturating_sub(codes.len()));
    sqlx::query!(
        "UPDATE code_reencryptions
            SET position = $2,
                codes = codes + $3,
                failures = failures + $4,
                ended_at = CASE WHEN $5 THEN clock_timestamp() END
          WHERE reencryption_id = $1",
        batch.reencryption_id,
        position,
        updated,
        failures,
        batch.is_last(),
    )
    .execute(&mut *transaction)
    .await?;
    if let Some(code) = codes.first() {
        sqlx::query!(
            "UPDATE data_keys SET reencrypted = reencrypted + $2 WHERE key_id = $1",
            code.after.key_id.0,
            updated,
        )
        .execute(&mut *transaction)
        .await?;
    }
    Ok(!batch.is_last())
}
