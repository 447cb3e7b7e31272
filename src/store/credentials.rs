//! Credentials: what is kept of each key and secret, and what access starts with.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};

use super::PgStore;
use super::audit::{self, By, Deed, NOTHING, rows};
use super::partners::{self, Partner, PartnerRow, read_allowlist};
use crate::access::allowlist::Allowlist;
use crate::access::credential::{ApiKeyHash, ApiSecretHash, Credential};
use crate::access::register::PartnerAccess;

/// Most live credentials of a partner (contract §3): room for rotation with overlap on every system it calls from.
pub const MAX_LIVE_CREDENTIALS: i64 = 5;

/// Whether the partner's papers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Papers {
    /// Certification and agreement must be on record: production.
    Required,
    /// Anybody gets one: the sandbox.
    NotRequired,
}

/// What became of a wish for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    /// It is in force.
    Issued,
    /// There is no such partner.
    PartnerNotFound,
    /// Certification or agreement are missing.
    Uncertified,
    /// The partner has [`MAX_LIVE_CREDENTIALS`].
    TooMany,
}

/// A credential as operators and the trail see it: neither key nor secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Credential)]
pub struct CredentialSummary {
    /// Its public name.
    pub credential_id: CredentialId,
    /// Whose it is.
    pub partner_id: PartnerId,
    /// Narrows the partner's list; without one it stays as it is.
    #[schema(required)]
    pub allowlist: Option<Allowlist>,
    /// Works from this moment on.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    pub not_before: OffsetDateTime,
    /// Works up to this moment, exclusive; without one until revoked.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub not_after: Option<OffsetDateTime>,
    /// When it was revoked.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub revoked_at: Option<OffsetDateTime>,
    /// Which credential asked for it, in a rotation; without one an operator issued it.
    #[schema(required)]
    pub rotated_from: Option<CredentialId>,
    /// When it last asked for the one that follows it.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub rotated_at: Option<OffsetDateTime>,
    /// When it was first used; kept for one that came from a rotation alone.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub first_used_at: Option<OffsetDateTime>,
}

impl From<&Credential> for CredentialSummary {
    fn from(credential: &Credential) -> Self {
        Self {
            credential_id: credential.credential_id,
            partner_id: credential.partner_id,
            allowlist: credential.allowlist.clone(),
            not_before: credential.not_before,
            not_after: credential.not_after,
            revoked_at: credential.revoked_at,
            rotated_from: credential.rotated_from,
            rotated_at: credential.rotated_at,
            first_used_at: credential.first_used_at,
        }
    }
}

/// The columns of `credentials`.
#[derive(sqlx::FromRow)]
pub(super) struct CredentialRow {
    credential_id: Uuid,
    partner_id: Uuid,
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
            credential_id: CredentialId::from_uuid(row.credential_id),
            partner_id: PartnerId::from_uuid(row.partner_id),
            key_hash: ApiKeyHash::from_bytes(hash(row.key_hash)?),
            secret_hash: ApiSecretHash::from_bytes(hash(row.secret_hash)?),
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

fn hash(bytes: Vec<u8>) -> Result<[u8; 32], sqlx::Error> {
    bytes
        .try_into()
        .map_err(|_| sqlx::Error::Decode("the hash of a credential has 32 bytes".into()))
}

impl PgStore {
    /// Every partner, and every credential that was not revoked: read once, at the start.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn load_access(&self) -> Result<(Vec<PartnerAccess>, Vec<Credential>), sqlx::Error> {
        self.run(|pool| async move { load(&pool).await }).await
    }

    /// Puts a credential in force.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn insert_credential(
        &self,
        credential: Credential,
        papers: Papers,
        by: By,
    ) -> Result<Issued, sqlx::Error> {
        self.run(move |pool| async move { issue(&pool, &credential, papers, &by).await })
            .await
    }

    /// Takes a credential out of force; `None` if there is none of this id. Revoking again changes nothing.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn revoke_credential(
        &self,
        credential_id: CredentialId,
        by: By,
    ) -> Result<Option<OffsetDateTime>, sqlx::Error> {
        self.run(move |pool| async move { revoke(&pool, credential_id, &by).await })
            .await
    }

    /// Up to `limit` credentials of a partner, newest first, older than `before`, those out of force too.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_credentials(
        &self,
        partner_id: PartnerId,
        before: Option<CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, sqlx::Error> {
        self.run(move |pool| async move { of_partner(&pool, partner_id, before, limit).await })
            .await
    }
}

async fn load(pool: &PgPool) -> Result<(Vec<PartnerAccess>, Vec<Credential>), sqlx::Error> {
    let partners: Vec<PartnerRow> = sqlx::query_as("SELECT * FROM partners").fetch_all(pool).await?;
    let credentials: Vec<CredentialRow> =
        sqlx::query_as("SELECT * FROM credentials WHERE revoked_at IS NULL")
            .fetch_all(pool)
            .await?;
    let partners = partners
        .into_iter()
        .map(|row| Partner::try_from(row).map(|partner| partner.access()));
    let credentials = credentials.into_iter().map(Credential::try_from);
    Ok((
        partners.collect::<Result<_, _>>()?,
        credentials.collect::<Result<_, _>>()?,
    ))
}

/// The partner's row is locked first, so that two wishes at once do not both count four.
async fn issue(
    pool: &PgPool,
    credential: &Credential,
    papers: Papers,
    by: &By,
) -> Result<Issued, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(partner) = partners::lock(&mut transaction, credential.partner_id).await? else {
        return Ok(Issued::PartnerNotFound);
    };
    if papers == Papers::Required && !partner.is_certified() {
        return Ok(Issued::Uncertified);
    }
    if count_live(&mut transaction, partner.partner_id).await? >= MAX_LIVE_CREDENTIALS {
        return Ok(Issued::TooMany);
    }
    insert(&mut transaction, credential, by).await?;
    transaction.commit().await?;
    Ok(Issued::Issued)
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
    .bind(partner_id.as_uuid())
    .fetch_one(connection)
    .await
}

/// Writes the credential and its entry in the trail into an open transaction.
pub(super) async fn insert(
    connection: &mut PgConnection,
    credential: &Credential,
    by: &By,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after,
                                  rotated_from)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(credential.credential_id.as_uuid())
    .bind(credential.partner_id.as_uuid())
    .bind(&credential.key_hash.as_bytes()[..])
    .bind(&credential.secret_hash.as_bytes()[..])
    .bind(credential.allowlist.clone().map(Vec::from))
    .bind(credential.not_before)
    .bind(credential.not_after)
    .bind(credential.rotated_from.map(CredentialId::as_uuid))
    .execute(&mut *connection)
    .await?;
    let (subject, summary) = (
        credential.credential_id.to_string(),
        CredentialSummary::from(credential),
    );
    let deed = Deed {
        action: "credential.issue",
        subject: &subject,
    };
    audit::write(connection, by, deed, NOTHING, Some(&summary)).await
}

async fn revoke(
    pool: &PgPool,
    credential_id: CredentialId,
    by: &By,
) -> Result<Option<OffsetDateTime>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(before) = lock(&mut transaction, credential_id).await? else {
        return Ok(None);
    };
    if before.revoked_at.is_some() {
        return Ok(before.revoked_at);
    }
    let revoked_at = take_back(&mut transaction, &before, by).await?;
    transaction.commit().await?;
    Ok(Some(revoked_at))
}

/// The credential's row stays locked until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    credential_id: CredentialId,
) -> Result<Option<Credential>, sqlx::Error> {
    let row: Option<CredentialRow> =
        sqlx::query_as("SELECT * FROM credentials WHERE credential_id = $1 FOR NO KEY UPDATE")
            .bind(credential_id.as_uuid())
            .fetch_optional(connection)
            .await?;
    row.map(Credential::try_from).transpose()
}

/// Revokes a credential that is locked and in force, and writes its entry in the trail.
pub(super) async fn take_back(
    connection: &mut PgConnection,
    credential: &Credential,
    by: &By,
) -> Result<OffsetDateTime, sqlx::Error> {
    let revoked_at: OffsetDateTime = sqlx::query_scalar(
        "UPDATE credentials SET revoked_at = clock_timestamp() WHERE credential_id = $1 RETURNING revoked_at",
    )
    .bind(credential.credential_id.as_uuid())
    .fetch_one(&mut *connection)
    .await?;
    let before = CredentialSummary::from(credential);
    let after = CredentialSummary {
        revoked_at: Some(revoked_at),
        ..before.clone()
    };
    let subject = credential.credential_id.to_string();
    let deed = Deed {
        action: "credential.revoke",
        subject: &subject,
    };
    audit::write(connection, by, deed, Some(&before), Some(&after)).await?;
    Ok(revoked_at)
}

async fn of_partner(
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
    .bind(partner_id.as_uuid())
    .bind(before.map(CredentialId::as_uuid))
    .bind(rows(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Credential::try_from).collect()
}
