//! Partner credentials: key and secret hashes, validity, revocation, and the data that access control loads
//! at start.

mod retention;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_audit_log::{self as audit, AuditActor, ChangedObjects, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::api_scope::ApiScopes;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_security::credential::{ApiKeyHash, ApiSecretHash, Credential};
use vouchsafe_security::credential_summary::CredentialSummary;
use vouchsafe_security::vault::grant_key::Grant;

pub use self::retention::ENDED_DAYS;
use super::access::{LoadedAccess, read_rows};
use super::partners;
use vouchsafe_database::database::{Database, Statement};
use vouchsafe_operators::grants::{Grants, StoredGrant};

/// Maximum of live credentials per partner (contract §3). Leaves room for overlapping rotations on several
/// systems.
pub const MAX_LIVE_CREDENTIALS: i64 = 5;

/// Whether a live credential requires certification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificationPolicy {
    /// Production: the partner must be certified and must have signed the agreement.
    Required,
    NotRequired,
}

/// Result of issuing a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueOutcome {
    Issued,
    /// The same call has issued it before.
    IssuedBefore,
    PartnerNotFound,
    /// Certification or agreement is missing.
    Uncertified,
    /// The partner has [`MAX_LIVE_CREDENTIALS`].
    TooMany,
}

/// Selects credentials with the rest of a statement.
macro_rules! select_credentials {
    ($rest:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            r#"SELECT credential_id AS "credential_id: CredentialId", partner_id AS "partner_id: PartnerId",
                      key_hash AS "key_hash: [u8; 32]", secret_hash AS "secret_hash: [u8; 32]",
                       allowlist AS "allowlist: Allowlist", scopes AS "scopes: Vec<String>", not_before, not_after, revoked_at,
                       rotated_from AS "rotated_from: CredentialId", rotated_at, first_used_at, mac,
                       family_id AS "family_id: CredentialId"
                 FROM credentials "# + $rest
            $(, $argument)*
        )
        .map(|row| {
            let credential = Credential {
            credential_id: row.credential_id,
            partner_id: row.partner_id,
            key_hash: ApiKeyHash::from_bytes(row.key_hash),
            secret_hash: ApiSecretHash::from_bytes(row.secret_hash),
            allowlist: row.allowlist,
            scopes: row.scopes.as_deref().map(ApiScopes::from_labels),
            not_before: row.not_before,
            not_after: row.not_after,
            revoked_at: row.revoked_at,
            rotated_from: row.rotated_from,
            rotated_at: row.rotated_at,
            first_used_at: row.first_used_at,
            family_id: row.family_id,
        };
            let stored = StoredGrant {
                table: "credentials",
                id: credential.credential_id.to_string(),
                partner_id: Some(credential.partner_id),
                grant: Grant::of_credential(&credential, row.scopes.as_deref()),
                mac: row.mac,
            };
            (credential, stored)
        })
    };
}

/// Credentials of the partners.
#[derive(Debug, Clone)]
pub struct Credentials(pub(super) Database, pub(super) Grants);

impl Credentials {
    /// Loads all partners and all live credentials.
    #[boxed]
    pub async fn load_access(&self) -> Result<LoadedAccess, StoreError> {
        let partners = sqlx::query_scalar!(r#"SELECT partner_id AS "partner_id: PartnerId" FROM partners"#);
        let credentials = sqlx::query_scalar!(
            r#"SELECT credential_id AS "credential_id: CredentialId"
                 FROM credentials
                WHERE revoked_at IS NULL AND (not_after IS NULL OR not_after > now())"#
        );
        let partners = self
            .0
            .run(|pool| async move { partners.fetch_all(&pool).await })
            .await?;
        let credentials = self
            .0
            .run(|pool| async move { credentials.fetch_all(&pool).await })
            .await?;
        self.load(&partners, &credentials).await
    }

    /// Loads these partners and credentials, which may have ended.
    #[boxed]
    pub async fn load_changed_access(&self, changed: ChangedObjects) -> Result<LoadedAccess, StoreError> {
        self.load(&changed.partners, &changed.credentials).await
    }

    async fn load(
        &self,
        partner_ids: &[PartnerId],
        credential_ids: &[CredentialId],
    ) -> Result<LoadedAccess, StoreError> {
        let partners = read_rows(&self.0, partner_ids, partners::find_all).await?;
        let credentials = read_rows(&self.0, credential_ids, find_all).await?;
        Ok(LoadedAccess::of(&self.1, partners, credentials))
    }

    /// Issues a credential.
    #[boxed]
    pub async fn issue(
        &self,
        credential: Credential,
        policy: CertificationPolicy,
        actor: AuditActor,
    ) -> Result<IssueOutcome, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "credential.issue", async |transaction| {
            // The lock serializes the check of the maximum.
            let Some(partner) = partners::lock_valid(transaction, &grants, credential.partner_id).await?
            else {
                return Ok(IssueOutcome::PartnerNotFound);
            };
            if lock(transaction, credential.credential_id).await?.is_some() {
                return Ok(IssueOutcome::IssuedBefore);
            }
            if policy == CertificationPolicy::Required && !partner.is_certified() {
                return Ok(IssueOutcome::Uncertified);
            }
            if count_live(transaction, partner.partner_id).await? >= MAX_LIVE_CREDENTIALS {
                return Ok(IssueOutcome::TooMany);
            }
            insert(transaction, &grants, &credential, &actor).await?;
            Ok(IssueOutcome::Issued)
        })
    }

    /// Finds a credential, also one that has ended.
    #[boxed]
    pub async fn find(&self, credential_id: CredentialId) -> Result<Option<Credential>, StoreError> {
        let statement = select_credentials!("WHERE credential_id = $1", credential_id as _);
        let found = self.0.fetch_optional(statement).await?;
        Ok(found.map(|(credential, _)| credential))
    }

    /// Lists up to `limit` credentials of a partner older than `before`, newest first, including those no
    /// longer valid.
    #[boxed]
    pub async fn list(
        &self,
        partner_id: PartnerId,
        before: Option<CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError> {
        let statement = select_credentials!(
            "WHERE partner_id = $1
               AND ($2::uuid IS NULL OR credential_id < $2)
             ORDER BY credential_id DESC
             LIMIT $3",
            partner_id as _,
            before as _,
            to_bigint(limit),
        );
        let listed = self.0.fetch_all(statement).await?;
        Ok(listed.into_iter().map(|(credential, _)| credential).collect())
    }
}

pub(super) async fn count_live(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM credentials
          WHERE partner_id = $1
            AND revoked_at IS NULL
            AND (not_after IS NULL OR not_after > now())"#,
        partner_id as _,
    )
    .fetch_one(connection)
    .await
}

/// Inserts the credential and its audit entry in an open transaction.
pub(super) async fn insert(
    connection: &mut PgConnection,
    grants: &Grants,
    credential: &Credential,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after,
                                  rotated_from, family_id, scopes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        credential.credential_id as _,
        credential.partner_id as _,
        &credential.key_hash.as_bytes()[..],
        &credential.secret_hash.as_bytes()[..],
        credential.allowlist.as_ref() as _,
        credential.not_before,
        credential.not_after,
        credential.rotated_from as _,
        credential.family_id as _,
        credential.scopes.as_ref() as _,
    )
    .execute(&mut *connection)
    .await?;
    write_mac(connection, grants, credential.credential_id).await?;
    let (subject, summary) = (&credential.credential_id, CredentialSummary::from(credential));
    audit::write_of_partner(
        connection,
        actor,
        credential.partner_id,
        AuditAction::IssueCredential,
        subject,
        NO_STATE,
        Some(&summary),
    )
    .await
}

/// Computes the HMAC of a row as it is stored, after each change of it.
pub(super) async fn write_mac(
    connection: &mut PgConnection,
    grants: &Grants,
    credential_id: CredentialId,
) -> Result<(), sqlx::Error> {
    let stored = find_all(&[credential_id]);
    let (_, stored) = stored.fetch_one(&mut *connection).await?;
    sqlx::query!(
        "UPDATE credentials SET mac = $2 WHERE credential_id = $1",
        credential_id as _,
        grants.mac(&stored.grant)?,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Loads a credential and locks its row.
pub(super) async fn lock(
    connection: &mut PgConnection,
    credential_id: CredentialId,
) -> Result<Option<(Credential, StoredGrant)>, sqlx::Error> {
    select_credentials!("WHERE credential_id = $1 FOR NO KEY UPDATE", credential_id as _)
        .fetch_optional(connection)
        .await
}

/// The credentials that are not revoked, also those that have ended.
pub(super) fn all_unrevoked()
-> Statement<impl FnMut(PgRow) -> Result<(Credential, StoredGrant), sqlx::Error> + Send> {
    select_credentials!("WHERE revoked_at IS NULL ORDER BY credential_id")
}

/// The credentials with these IDs, which may have ended.
pub(super) fn find_all(
    credential_ids: &[CredentialId],
) -> Statement<impl FnMut(PgRow) -> Result<(Credential, StoredGrant), sqlx::Error> + Send + use<>> {
    let ids: Vec<Uuid> = credential_ids.iter().map(|id| id.as_uuid()).collect();
    select_credentials!("WHERE credential_id = ANY ($1)", &ids)
}

/// The live credentials that came from a credential by rotation, directly or through others; locks their
/// rows.
pub(super) fn live_descendants(
    credential_id: CredentialId,
) -> Statement<impl FnMut(PgRow) -> Result<(Credential, StoredGrant), sqlx::Error> + Send + use<>> {
    select_credentials!(
        "WHERE revoked_at IS NULL
           AND (not_after IS NULL OR not_after > now())
           AND credential_id IN (
                WITH RECURSIVE descendants AS (
                     SELECT successor.credential_id
                       FROM credentials AS successor
                      WHERE successor.rotated_from = $1
                      UNION
                     SELECT successor.credential_id
                       FROM credentials AS successor
                       JOIN descendants ON successor.rotated_from = descendants.credential_id)
                SELECT descendants.credential_id FROM descendants)
         ORDER BY credential_id
           FOR NO KEY UPDATE",
        credential_id as _,
    )
}

/// The successors of a credential that were neither used nor revoked; locks their rows.
pub(super) fn unused_successors(
    credential_id: CredentialId,
) -> Statement<impl FnMut(PgRow) -> Result<(Credential, StoredGrant), sqlx::Error> + Send + use<>> {
    select_credentials!(
        "WHERE rotated_from = $1
           AND revoked_at IS NULL
           AND first_used_at IS NULL
         ORDER BY credential_id
           FOR NO KEY UPDATE",
        credential_id as _,
    )
}

/// Revokes a locked live credential and writes the audit entry.
pub(super) async fn revoke_locked(
    connection: &mut PgConnection,
    credential: &Credential,
    actor: &AuditActor,
) -> Result<OffsetDateTime, sqlx::Error> {
    let revoked_at = sqlx::query_scalar!(
        r#"UPDATE credentials
            SET revoked_at = clock_timestamp(), mac = NULL
          WHERE credential_id = $1
         RETURNING revoked_at AS "revoked_at!""#,
        credential.credential_id as _,
    );
    let revoked_at = revoked_at.fetch_one(&mut *connection).await?;
    let before = CredentialSummary::from(credential);
    let after = CredentialSummary {
        revoked_at: Some(revoked_at),
        ..before.clone()
    };
    let subject = &credential.credential_id;
    audit::write_of_partner(
        connection,
        actor,
        credential.partner_id,
        AuditAction::RevokeCredential,
        subject,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(revoked_at)
}
