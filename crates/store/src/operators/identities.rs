//! Operators who sign in at an identity provider: their accounts, and the sessions that begin there.

use sqlx::{PgConnection, PgPool};
use vouchsafe_domain::operator::{OperatorAccount, OperatorName, Role};
use vouchsafe_domain::operator_session::{OperatorSession, SignInMethod};

use super::sessions::{self, NewSession};
use super::{Operators, change, insert, lock};
use crate::audit::AuditActor;

/// A person whom an identity provider has identified.
#[derive(Debug, Clone)]
pub struct ProviderIdentity {
    pub issuer: String,
    /// Identifies the person at the provider, permanently.
    pub subject: String,
    /// Name of the account that the first sign-in creates, or takes if an admin has created it.
    pub name: OperatorName,
    /// From the settings' mapping.
    pub role: Role,
}

/// Result of a sign-in at an identity provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderSignIn {
    Started(OperatorSession),
    /// The account is disabled.
    Disabled(OperatorName),
    /// The account with this name belongs to another person.
    NameTaken(OperatorName),
}

impl Operators {
    /// Starts a session of the person's account. Creates the account at the first sign-in, and gives it the mapped role at each.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn sign_in_identity(
        &self,
        identity: ProviderIdentity,
        session: NewSession,
    ) -> Result<ProviderSignIn, sqlx::Error> {
        self.0
            .run(move |pool| async move { sign_in(&pool, &identity, session).await })
            .await
    }
}

async fn sign_in(
    pool: &PgPool,
    identity: &ProviderIdentity,
    session: NewSession,
) -> Result<ProviderSignIn, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(account) = find_or_create(&mut transaction, identity).await? else {
        return Ok(ProviderSignIn::NameTaken(identity.name.clone()));
    };
    if account.disabled {
        return Ok(ProviderSignIn::Disabled(account.name));
    }
    let role = Some(identity.role);
    change(
        &mut transaction,
        &account.name,
        role,
        None,
        &AuditActor::service(),
    )
    .await?;
    let started = sessions::start(&mut transaction, &account.name, SignInMethod::Oidc, session).await?;
    transaction.commit().await?;
    Ok(ProviderSignIn::Started(started))
}

/// The account of the person; `None` if another person has the name.
async fn find_or_create(
    connection: &mut PgConnection,
    identity: &ProviderIdentity,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let known = find(connection, identity).await?;
    let is_new = known.is_none();
    let name = known.unwrap_or_else(|| identity.name.clone());
    if is_new {
        insert(connection, &name, identity.role, &AuditActor::service()).await?;
    }
    // Serializes first sign-ins with one name.
    let account = lock(&name).fetch_optional(&mut *connection).await?;
    if is_new {
        let linked = sqlx::query!(
            "INSERT INTO operator_identities (issuer, subject, operator) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            identity.issuer,
            identity.subject,
            name as _,
        );
        let linked = linked.execute(&mut *connection).await?.rows_affected();
        // A concurrent first sign-in of the same person has linked the account.
        if linked == 0 && find(connection, identity).await?.as_ref() != Some(&name) {
            return Ok(None);
        }
    }
    Ok(account)
}

async fn find(
    connection: &mut PgConnection,
    identity: &ProviderIdentity,
) -> Result<Option<OperatorName>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT operator AS "operator: OperatorName" FROM operator_identities WHERE issuer = $1 AND subject = $2"#,
        identity.issuer,
        identity.subject,
    );
    found.fetch_optional(connection).await
}
