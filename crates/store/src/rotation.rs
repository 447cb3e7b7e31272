//! Credential rotation: a credential requests its successor and its own expiry after an overlap.
//!
//! | Step, in one transaction | Why |
//! |---|---|
//! | lock the partner, then the old credential | serializes concurrent rotations, so the maximums hold |
//! | count the rotations of its family within a day, for a partner | a leaked secret or a faulty client cannot rotate without end |
//! | revoke unused successors of earlier rotations | their responses were lost |
//! | set the expiry of the old credential | a later rotation may bring it forward, never postpone it |
//! | count the live credentials | at most [`MAX_LIVE_CREDENTIALS`] |
//! | insert the new credential with the allowlist, the scopes and the family of the old one | a rotation grants no further access and no further requests |
//!
//! First use and revocation of a successor are each conditional on the other not having happened; the row
//! lock orders them.

use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::transaction::Transaction;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_security::credential::Credential;
use vouchsafe_security::credential_summary::CredentialSummary;

use super::credentials::{self, Credentials, MAX_LIVE_CREDENTIALS};
use super::partners;
use vouchsafe_operators::grants::Grants;

const DAY_S: u32 = 86_400;

#[derive(Debug, Clone)]
pub struct RotationRequest {
    /// The credential that requests the rotation.
    pub credential_id: CredentialId,
    /// Its successor, newly generated.
    pub next: Credential,
    /// How long the old credential stays valid.
    pub overlap: Duration,
    /// Rotations of a credential's family within 24 hours, if they are limited.
    pub max_per_day: Option<u32>,
    pub now: OffsetDateTime,
}

#[derive(Debug, Clone)]
pub enum RotationOutcome {
    Rotated(Box<RotationResult>),
    /// The same call has issued the successor before.
    RotatedBefore(CredentialId),
    /// The old credential is revoked or expired.
    NotLive,
    /// The partner has [`MAX_LIVE_CREDENTIALS`].
    TooMany,
    /// The credential's family had its rotations of 24 hours.
    TooFrequent {
        /// Seconds until the next rotation is possible.
        retry_after_s: u32,
    },
}

#[derive(Debug, Clone)]
pub struct RotationResult {
    /// The old credential with its expiry.
    pub previous: Credential,
    pub previous_ends_at: OffsetDateTime,
    pub next: Credential,
    /// Unused successors of earlier rotations.
    pub revoked: Vec<CredentialId>,
}

impl Credentials {
    /// Issues the successor of a credential and sets the expiry of the old one.
    #[boxed]
    pub async fn rotate(
        &self,
        rotation: RotationRequest,
        actor: AuditActor,
    ) -> Result<RotationOutcome, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "credential.rotate", async |transaction| {
            rotate(transaction, &grants, rotation, &actor).await
        })
    }

    /// Records the use of a credential from a rotation and returns the time of its first use, or `None` if it
    /// was revoked.
    #[boxed]
    pub async fn record_first_use(
        &self,
        credential_id: CredentialId,
    ) -> Result<Option<OffsetDateTime>, StoreError> {
        let statement = sqlx::query!(
            r#"UPDATE credentials
                SET first_used_at = CASE WHEN rotated_from IS NOT NULL THEN COALESCE(first_used_at, clock_timestamp()) END
              WHERE credential_id = $1
                AND revoked_at IS NULL
             RETURNING COALESCE(first_used_at, clock_timestamp()) AS "first_used_at!""#,
            credential_id as _,
        )
        .map(|row| row.first_used_at);
        self.0.fetch_optional(statement).await
    }
}

#[boxed]
async fn rotate(
    transaction: &mut Transaction,
    grants: &Grants,
    rotation: RotationRequest,
    actor: &AuditActor,
) -> Result<RotationOutcome, sqlx::Error> {
    let RotationRequest {
        credential_id,
        next,
        overlap,
        max_per_day,
        now,
    } = rotation;
    let partner = partners::lock_valid(transaction, grants, next.partner_id).await?;
    let next_id = next.credential_id;
    if credentials::lock(transaction, next_id).await?.is_some() {
        return Ok(RotationOutcome::RotatedBefore(next_id));
    }
    let before = credentials::lock(transaction, credential_id).await?;
    let before = before.filter(|(before, _)| partner.is_some() && before.is_live(now));
    let Some((before, stored)) = before else {
        return Ok(RotationOutcome::NotLive);
    };
    // The successor of a forged credential would have a valid HMAC.
    grants.check(&stored)?;
    if let Some(max_per_day) = max_per_day
        && let Some(retry_after_s) = wait_for_next(transaction, &before, max_per_day).await?
    {
        return Ok(RotationOutcome::TooFrequent { retry_after_s });
    }
    let revoked = revoke_unused_successors(transaction, credential_id, actor).await?;
    let end = now + overlap;
    let previous_ends_at = before.not_after.map_or(end, |set| set.min(end));
    let previous = Credential {
        not_after: Some(previous_ends_at),
        rotated_at: Some(now),
        ..before.clone()
    };
    write_expiry(transaction, grants, &before, &previous, actor).await?;
    if credentials::count_live(transaction, before.partner_id).await? >= MAX_LIVE_CREDENTIALS {
        transaction.abandon();
        return Ok(RotationOutcome::TooMany);
    }
    let next = Credential {
        allowlist: before.allowlist,
        scopes: before.scopes,
        rotated_from: Some(credential_id),
        family_id: before.family_id,
        ..next
    };
    credentials::insert(transaction, grants, &next, actor).await?;
    Ok(RotationOutcome::Rotated(Box::new(RotationResult {
        previous,
        previous_ends_at,
        next,
        revoked,
    })))
}

/// The seconds until the family of a credential may be rotated again; `None` if it may now. Counts the
/// credentials that rotations issued, also those that were revoked or that another node wrote, by the
/// database's clock.
async fn wait_for_next(
    connection: &mut PgConnection,
    credential: &Credential,
    max_per_day: u32,
) -> Result<Option<u32>, sqlx::Error> {
    let wait_s = sqlx::query_scalar!(
        r#"SELECT ceil(extract(epoch FROM issued_at + interval '1 day' - clock_timestamp()))::bigint AS "wait_s!"
             FROM credentials
            WHERE partner_id = $1
              AND rotated_from IS NOT NULL
              AND issued_at > clock_timestamp() - interval '1 day'
              AND family_id = $2
            ORDER BY issued_at DESC
           OFFSET $3
            LIMIT 1"#,
        credential.partner_id as _,
        credential.family_id as _,
        i64::from(max_per_day.saturating_sub(1)),
    );
    let wait_s = wait_s.fetch_optional(connection).await?;
    // Above a day only after the database's clock was set back.
    Ok(wait_s.map(|wait_s| u32::try_from(wait_s).unwrap_or_default().clamp(1, DAY_S)))
}

/// At most one, since each rotation revokes the previous unused successor.
async fn revoke_unused_successors(
    connection: &mut PgConnection,
    credential_id: CredentialId,
    actor: &AuditActor,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let unused = credentials::unused_successors(credential_id);
    let unused = unused.fetch_all(&mut *connection).await?;
    let mut revoked = Vec::with_capacity(unused.len());
    for (credential, _) in unused {
        credentials::revoke_locked(connection, &credential, actor).await?;
        revoked.push(credential.credential_id);
    }
    Ok(revoked)
}

async fn write_expiry(
    connection: &mut PgConnection,
    grants: &Grants,
    before: &Credential,
    after: &Credential,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE credentials
            SET not_after = $2,
                rotated_at = $3
          WHERE credential_id = $1",
        after.credential_id as _,
        after.not_after,
        after.rotated_at,
    )
    .execute(&mut *connection)
    .await?;
    credentials::write_mac(connection, grants, after.credential_id).await?;
    let subject = &after.credential_id;
    let (before, after) = (CredentialSummary::from(before), CredentialSummary::from(after));
    audit::write_of_partner(
        connection,
        actor,
        after.partner_id,
        AuditAction::RotateCredential,
        subject,
        Some(&before),
        Some(&after),
    )
    .await
}
