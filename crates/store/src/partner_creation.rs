//! Creation of a partner with its first credential, in one transaction.

use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::partner::Partner;
use vouchsafe_security::credential::Credential;

use super::credentials;
use super::partners::{self, Partners};

impl Partners {
    /// Creates a partner and, optionally, its first credential.
    #[boxed]
    pub async fn create(
        &self,
        partner: Partner,
        credential: Option<Credential>,
        actor: AuditActor,
    ) -> Result<(), StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "partner.create", async |transaction| {
            partners::insert(transaction, &grants, &partner).await?;
            audit::write_of_partner(
                transaction,
                &actor,
                partner.partner_id,
                AuditAction::CreatePartner,
                &partner.partner_id,
                NO_STATE,
                Some(&partner),
            )
            .await?;
            if let Some(credential) = &credential {
                credentials::insert(transaction, &grants, credential, &actor).await?;
            }
            Ok(())
        })
    }
}
