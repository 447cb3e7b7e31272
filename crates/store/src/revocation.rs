//! Revocation of a credential, with the credentials rotated from it.
//!
//! | Step, in one transaction | Why |
//! |---|---|
//! | lock the partner | no rotation adds a descendant meanwhile |
//! | lock the credential, then its live descendants | the first use of a credential and its revocation exclude each other |
//! | revoke those that are live, each with an audit entry | other nodes learn from the audit trail which credentials changed |

use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::revocation::{DescendantPolicy, Revocation};

use super::credentials::{self, Credentials};
use super::partners;

impl Credentials {
    /// Revokes a credential. Idempotent. Returns `None` if the credential does not exist. One that this node
    /// holds in memory, for a partner, and that a database user has deleted, gets the audit entry with which
    /// nodes forget it.
    #[boxed]
    pub async fn revoke(
        &self,
        credential_id: CredentialId,
        descendants: DescendantPolicy,
        holder: Option<PartnerId>,
        actor: AuditActor,
    ) -> Result<Option<Revocation>, StoreError> {
        transaction!(self.0, "credential.revoke", async |transaction| {
            let revoked = revoke(transaction, credential_id, descendants, &actor).await?;
            match (revoked, holder) {
                (None, Some(partner_id)) => revoke_deleted(transaction, credential_id, partner_id, &actor)
                    .await
                    .map(Some),
                (revoked, _) => Ok(revoked),
            }
        })
    }
}

async fn revoke_deleted(
    connection: &mut PgConnection,
    credential_id: CredentialId,
    partner_id: PartnerId,
    actor: &AuditActor,
) -> Result<Revocation, sqlx::Error> {
    audit::write_of_partner(
        connection,
        actor,
        partner_id,
        AuditAction::RevokeCredential,
        &credential_id,
        NO_STATE,
        NO_STATE,
    )
    .await?;
    Ok(Revocation {
        credential_id,
        revoked: vec![credential_id],
        live_descendants: Vec::new(),
    })
}

async fn revoke(
    connection: &mut PgConnection,
    credential_id: CredentialId,
    descendants: DescendantPolicy,
    actor: &AuditActor,
) -> Result<Option<Revocation>, sqlx::Error> {
    // A rotation locks the partner before the credential: the partner is read first, without a lock.
    let found = credentials::find_all(&[credential_id]);
    let Some((found, _)) = found.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    partners::lock(connection, found.partner_id).await?;
    let Some((credential, _)) = credentials::lock(connection, credential_id).await? else {
        return Ok(None);
    };
    let live = credentials::live_descendants(credential_id);
    let live = live.fetch_all(&mut *connection).await?;
    let live: Vec<_> = live.into_iter().map(|(credential, _)| credential).collect();
    let (covered, kept) = match descendants {
        DescendantPolicy::Revoke => (live, Vec::new()),
        DescendantPolicy::Keep => (Vec::new(), live),
    };
    let mut revocation = Revocation {
        credential_id,
        revoked: Vec::new(),
        live_descendants: kept.iter().map(|kept| kept.credential_id).collect(),
    };
    let unrevoked = Some(credential).filter(|credential| credential.revoked_at.is_none());
    for credential in unrevoked.into_iter().chain(covered) {
        credentials::revoke_locked(connection, &credential, actor).await?;
        revocation.revoked.push(credential.credential_id);
    }
    Ok(Some(revocation))
}
