//! Revocation of a credential, with the credentials rotated from it.
//!
//! | Step, in one transaction | Why |
//! |---|---|
//! | lock the partner | no rotation adds a descendant meanwhile |
//! | lock the credential, then its live descendants | the first use of a credential and its revocation exclude each other |
//! | revoke those that are live, each with an audit entry | other nodes learn from the audit trail which credentials changed |

use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::revocation::{DescendantPolicy, Revocation};

use super::credentials::{self, Credentials};
use super::partners;

impl Credentials {
    /// Revokes a credential. Idempotent. Returns `None` if the credential does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn revoke(
        &self,
        credential_id: CredentialId,
        descendants: DescendantPolicy,
        actor: AuditActor,
    ) -> Result<Option<Revocation>, StoreError> {
        transaction!(self.0, "credential.revoke", async |transaction| {
            // A rotation locks the partner before the credential: the partner is read first, without a lock.
            let found = credentials::find_all(&[credential_id]);
            let Some((found, _)) = found.fetch_optional(&mut **transaction).await? else {
                return Ok(None);
            };
            partners::lock(transaction, found.partner_id).await?;
            let Some((credential, _)) = credentials::lock(transaction, credential_id).await? else {
                return Ok(None);
            };
            let live = credentials::live_descendants(credential_id);
            let live = live.fetch_all(&mut **transaction).await?;
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
                credentials::revoke_locked(transaction, &credential, &actor).await?;
                revocation.revoked.push(credential.credential_id);
            }
            Ok(Some(revocation))
        })
    }
}
