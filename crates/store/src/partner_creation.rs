//! Creation of a partner with its first credential, in one transaction.

use sqlx::PgPool;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::partner::Partner;
use vouchsafe_security::credential::Credential;

use super::credentials;
use super::partners::{self, Partners};
use vouchsafe_operators::grants::Grants;

impl Partners {
    /// Creates a partner and, optionally, its first credential.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn create(
        &self,
        partner: Partner,
        credential: Option<Credential>,
        actor: AuditActor,
    ) -> Result<(), StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move { create(&pool, &grants, &partner, credential.as_ref(), &actor).await })
            .await
    }
}

async fn create(
    pool: &PgPool,
    grants: &Grants,
    partner: &Partner,
    credential: Option<&Credential>,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    partners::insert(&mut transaction, grants, partner).await?;
    audit::write_of_partner(
        &mut transaction,
        actor,
        partner.partner_id,
        "partner.create",
        &partner.partner_id,
        NO_STATE,
        Some(partner),
    )
    .await?;
    if let Some(credential) = credential {
        credentials::insert(&mut transaction, grants, credential, actor).await?;
    }
    transaction.commit().await
}
