//! Partner credentials: key and secret hashes, validity, revocation, and the data that access control loads at start.

use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::partner::Partner;
use vouchsafe_security::credential::{ApiKeyHash, ApiSecretHash, Credential};
use vouchsafe_security::credential_summary::CredentialSummary;
use vouchsafe_security::registry::PartnerAccess;

use super::audit::{self, AuditActor, NO_STATE, to_bigint};
use super::database::Database;
use super::partners::{self, PartnerRow, read_allowlist};

/// Maximum of live credentials per partner (contract §3). Leaves room for overlapping rotations on several systems.
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
    PartnerNotFound,
    /// Certification or agreement is missing.
    Uncertified,
    /// The partner has [`MAX_LIVE_CREDENTIALS`].
    TooMany,
}

#[derive(sqlx::FromRow)]
pub(super) struct CredentialRow {
    credential_id: CredentialId,
    partner_id: PartnerId,
    key_hash: Vec<u8>,
    secret_hash: Vec<u8>,
    allowlist: Option<Vec<String>>,
    not_before: OffsetDateTime,
    not_after: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
    rotated_from: Option<Uuid>,
    rotated_at: Option<OffsetDateTime>,
    first_used_at: Option<OffsetDateTime>,
}

impl TryFrom<CredentialRow> for Credential {
    type Error = sqlx::Error;

    fn try_from(row: CredentialRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            credential_id: row.credential_id,
            partner_id: row.partner_id,
            key_hash: ApiKeyHash::from_bytes(parse_hash(row.key_hash)?),
            secret_hash: ApiSecretHash::from_bytes(parse_hash(row.secret_hash)?),
            allowlist: row.allowlist.map(read_allowlist).transpose()?,
            not_before: row.not_before,
            not_after: row.not_after,
            revoked_at: row.revoked_at,
            rotated_from: row.rotated_from.map(CredentialId::from_uuid),
            rotated_at: row.rotated_at,
            first_used_at: row.first_used_at,
        })
    }
}

fn parse_hash(bytes: Vec<u8>) -> Result<[u8; 32], sqlx::Error> {
    bytes
        .try_into()
        .map_err(|_| sqlx::Error::Decode("a credential hash does not have 32 bytes".into()))
}

/// Credentials of the partners.
#[derive(Debug, Clone)]
pub struct Credentials(pub(super) Database);

impl Credentials {
    /// Loads all partners and all credentials that are not revoked, at the start.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn load_access(&self) -> Result<(Vec<PartnerAccess>, Vec<Credential>), sqlx::Error> {
        self.0.run(|pool| async move { load_access(&pool).await }).await
    }

    /// Issues a credential.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn issue(
        &self,
        credential: Credential,
        policy: CertificationPolicy,
        actor: AuditActor,
    ) -> Result<IssueOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move { issue(&pool, &credential, policy, &actor).await })
            .await
    }

    /// Revokes a credential and returns the time of revocation. Idempotent. Returns `None` if the credential does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn revoke(
        &self,
        credential_id: CredentialId,
        actor: AuditActor,
    ) -> Result<Option<OffsetDateTime>, sqlx::Error> {
        self.0
            .run(move |pool| async move { revoke(&pool, credential_id, &actor).await })
            .await
    }

    /// Lists up to `limit` credentials of a partner older than `before`, newest first, including those no longer valid.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        partner_id: PartnerId,
        before: Option<CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, sqlx::Error> {
        self.0
            .run(move |pool| async move { list(&pool, partner_id, before, limit).await })
            .await
    }
}

async fn load_access(pool: &PgPool) -> Result<(Vec<PartnerAccess>, Vec<Credential>), sqlx::Error> {
    let partners: Vec<PartnerRow> = sqlx::query_as("SELECT * FROM partners").fetch_all(pool).await?;
    let credentials: Vec<CredentialRow> =
        sqlx::query_as("SELECT * FROM credentials WHERE revoked_at IS NULL")
            .fetch_all(pool)
            .await?;
    let partners = partners
        .into_iter()
        .map(|row| Partner::try_from(row).map(|partner| PartnerAccess::from(&partner)));
    let credentials = credentials.into_iter().map(Credential::try_from);
    Ok((
        partners.collect::<Result<_, _>>()?,
        credentials.collect::<Result<_, _>>()?,
    ))
}

async fn issue(
    pool: &PgPool,
    credential: &Credential,
    policy: CertificationPolicy,
    actor: &AuditActor,
) -> Result<IssueOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    // The lock serializes the check of the maximum.
    let Some(partner) = partners::lock(&mut transaction, credential.partner_id).await? else {
        return Ok(IssueOutcome::PartnerNotFound);
    };
    if policy == CertificationPolicy::Required && !partner.is_certified() {
        return Ok(IssueOutcome::Uncertified);
    }
    if count_live(&mut transaction, partner.partner_id).await? >= MAX_LIVE_CREDENTIALS {
        return Ok(IssueOutcome::TooMany);
    }
    insert(&mut transaction, credential, actor).await?;
    transaction.commit().await?;
    Ok(IssueOutcome::Issued)
}

pub(super) async fn count_live(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(*)
           FROM credentials
          WHERE partner_id = $1
            AND revoked_at IS NULL
            AND (not_after IS NULL OR not_after > now())",
    )
    .bind(partner_id)
    .fetch_one(connection)
    .await
}

/// Inserts the credential and its audit entry in an open transaction.
pub(super) async fn insert(
    connection: &mut PgConnection,
    credential: &Credential,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after,
                                  rotated_from)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(credential.credential_id)
    .bind(credential.partner_id)
    .bind(&credential.key_hash.as_bytes()[..])
    .bind(&credential.secret_hash.as_bytes()[..])
    .bind(credential.allowlist.clone().map(Vec::from))
    .bind(credential.not_before)
    .bind(credential.not_after)
    .bind(credential.rotated_from)
    .execute(&mut *connection)
    .await?;
    let (subject, summary) = (&credential.credential_id, CredentialSummary::from(credential));
    audit::write(connection, actor, "credential.issue", subject, NO_STATE, Some(&summary)).await
}

async fn revoke(
    pool: &PgPool,
    credential_id: CredentialId,
    actor: &AuditActor,
) -> Result<Option<OffsetDateTime>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(before) = lock(&mut transaction, credential_id).await? else {
        return Ok(None);
    };
    if before.revoked_at.is_some() {
        return Ok(before.revoked_at);
    }
    let revoked_at = revoke_locked(&mut transaction, &before, actor).await?;
    transaction.commit().await?;
    Ok(Some(revoked_at))
}

/// Loads a credential and locks its row.
pub(super) async fn lock(
    connection: &mut PgConnection,
    credential_id: CredentialId,
) -> Result<Option<Credential>, sqlx::Error> {
    let row: Option<CredentialRow> =
        sqlx::query_as("SELECT * FROM credentials WHERE credential_id = $1 FOR NO KEY UPDATE")
            .bind(credential_id)
            .fetch_optional(connection)
            .await?;
    row.map(Credential::try_from).transpose()
}

/// Revokes a locked live credential and writes the audit entry.
pub(super) async fn revoke_locked(
    connection: &mut PgConnection,
    credential: &Credential,
    actor: &AuditActor,
) -> Result<OffsetDateTime, sqlx::Error> {
    let revoked_at: OffsetDateTime = sqlx::query_scalar(
        "UPDATE credentials SET revoked_at = clock_timestamp() WHERE credential_id = $1 RETURNING revoked_at",
    )
    .bind(credential.credential_id)
    .fetch_one(&mut *connection)
    .await?;
    let before = CredentialSummary::from(credential);
    let after = CredentialSummary {
        revoked_at: Some(revoked_at),
        ..before.clone()
    };
    let subject = &credential.credential_id;
    audit::write(
        connection,
        actor,
        "credential.revoke",
        subject,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(revoked_at)
}

async fn list(
    pool: &PgPool,
    partner_id: PartnerId,
    before: Option<CredentialId>,
    limit: usize,
) -> Result<Vec<Credential>, sqlx::Error> {
    let found: Vec<CredentialRow> = sqlx::query_as(
        "SELECT *
           FROM credentials
          WHERE partner_id = $1
            AND ($2::uuid IS NULL OR credential_id < $2)
          ORDER BY credential_id DESC
          LIMIT $3",
    )
    .bind(partner_id)
    .bind(before)
    .bind(to_bigint(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Credential::try_from).collect()
}
