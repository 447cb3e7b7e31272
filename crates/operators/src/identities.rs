//! Operators who sign in at an identity provider: the links of their accounts, and the sessions that begin
//! there.

use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::operator::{OperatorAccount, OperatorIdentity, OperatorName, Role};
use vouchsafe_domain::operator_session::OperatorSession;
use vouchsafe_security::vault::grant_key::Grant;

use super::sessions::{self, NewSession};
use super::token_state::{self, Issuer};
use super::{AccountChanges, Operators, change, insert, lock, lock_valid};
use crate::grants::{Grants, StoredGrant};
use vouchsafe_database::database::Statement;

/// A person whom an identity provider has identified.
#[derive(Debug, Clone)]
pub struct ProviderIdentity {
    pub identity: OperatorIdentity,
    /// Name of the account that the first sign-in creates, or takes if an admin has created it.
    pub name: OperatorName,
    /// The settings map a group or claim to it.
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
    /// Starts a session of the person's account. Creates the account at the first sign-in, and gives it the
    /// mapped role at each.
    #[boxed]
    pub async fn sign_in_identity(
        &self,
        identity: ProviderIdentity,
        session: NewSession,
    ) -> Result<ProviderSignIn, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_identity.sign_in", async |transaction| {
            // A sign-in that is refused leaves neither an account nor a link.
            let Some(account) = find_or_create(transaction, &grants, &identity).await? else {
                transaction.abandon();
                return Ok(ProviderSignIn::NameTaken(identity.name.clone()));
            };
            if account.disabled {
                transaction.abandon();
                return Ok(ProviderSignIn::Disabled(account.name));
            }
            // The provider has identified the person, so the account needs no activation.
            let changes = AccountChanges {
                role: Some(identity.role),
                disabled: None,
                activates: true,
            };
            change(
                transaction,
                &grants,
                &account.name,
                changes,
                &AuditActor::service(),
            )
            .await?;
            let started = sessions::start(transaction, &grants, &account.name, session).await?;
            Ok(ProviderSignIn::Started(started))
        })
    }

    /// The identity of an operator.
    #[boxed]
    pub async fn find_identity(
        &self,
        operator: OperatorName,
    ) -> Result<Option<OperatorIdentity>, StoreError> {
        let found = sqlx::query_as!(
            OperatorIdentity,
            "SELECT issuer, subject FROM operator_identities WHERE operator = $1",
            operator as _,
        );
        self.0
            .run(|pool| async move { found.fetch_optional(&pool).await })
            .await
    }

    /// Removes the link of an operator to an identity, and ends what the person holds of the account:
    /// sessions, sign-in link and API tokens. Does nothing without a link.
    #[boxed]
    pub async fn unlink_identity(&self, operator: OperatorName, actor: AuditActor) -> Result<(), StoreError> {
        transaction!(self.0, "operator_identity.unlink", async |transaction| {
            unlink(transaction, &operator, &actor).await
        })
    }
}

async fn unlink(
    transaction: &mut PgConnection,
    operator: &OperatorName,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    // Waits for a sign-in in progress, whose session is ended, too.
    lock(operator).fetch_optional(&mut *transaction).await?;
    let removed = sqlx::query_as!(
        OperatorIdentity,
        "DELETE FROM operator_identities WHERE operator = $1 RETURNING issuer, subject",
        operator as _,
    );
    let Some(removed) = removed.fetch_optional(&mut *transaction).await? else {
        return Ok(());
    };
    sessions::end_all(transaction, operator, actor).await?;
    token_state::revoke_all(transaction, operator, Issuer::Anything, actor).await?;
    let action = AuditAction::UnlinkIdentity;
    audit::write(transaction, actor, action, operator, Some(&removed), NO_STATE).await?;
    Ok(())
}

/// The account of the person; `None` if another person has the name.
async fn find_or_create(
    connection: &mut PgConnection,
    grants: &Grants,
    identity: &ProviderIdentity,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let known = find(connection, grants, identity).await?;
    let is_new = known.is_none();
    let name = known.unwrap_or_else(|| identity.name.clone());
    if is_new {
        insert(
            connection,
            grants,
            &name,
            identity.role,
            true,
            &AuditActor::service(),
        )
        .await?;
    }
    // Serializes first sign-ins with one name, and waits for a change that removes the link.
    let account = lock_valid(connection, grants, &name).await?;
    if !(is_new && link(connection, grants, identity, &name).await?) {
        // Unlinked since it was found, linked by a concurrent first sign-in of the same person, or another
        // person's.
        let is_own = find(connection, grants, identity).await?.as_ref() == Some(&name);
        return Ok(account.filter(|_| is_own));
    }
    Ok(account)
}

/// Links an account, with its audit entry. Returns whether neither the account nor the person had a link.
async fn link(
    connection: &mut PgConnection,
    grants: &Grants,
    identity: &ProviderIdentity,
    name: &OperatorName,
) -> Result<bool, sqlx::Error> {
    let linked = sqlx::query!(
        "INSERT INTO operator_identities (issuer, subject, operator, mac) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        identity.identity.issuer,
        identity.identity.subject,
        name as _,
        grants.mac(&Grant::of_identity(&identity.identity, name))?,
    );
    if linked.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let (actor, action) = (AuditActor::service(), AuditAction::LinkIdentity);
    audit::write(
        connection,
        &actor,
        action,
        name,
        NO_STATE,
        Some(&identity.identity),
    )
    .await?;
    Ok(true)
}

/// The account of a person. A link whose row has no valid HMAC is none.
async fn find(
    connection: &mut PgConnection,
    grants: &Grants,
    identity: &ProviderIdentity,
) -> Result<Option<OperatorName>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT operator AS "operator: OperatorName", mac FROM operator_identities WHERE issuer = $1 AND subject = $2"#,
        identity.identity.issuer,
        identity.identity.subject,
    );
    let Some(found) = found.fetch_optional(connection).await? else {
        return Ok(None);
    };
    let stored = stored_identity(&identity.identity, &found.operator, found.mac);
    Ok(grants.verify(&stored).then_some(found.operator))
}

fn stored_identity(
    identity: &OperatorIdentity,
    operator: &OperatorName,
    mac: Option<Vec<u8>>,
) -> StoredGrant {
    StoredGrant {
        table: "operator_identities",
        id: operator.to_string(),
        partner_id: None,
        grant: Grant::of_identity(identity, operator),
        mac,
    }
}

pub(super) fn all() -> Statement<impl FnMut(PgRow) -> Result<StoredGrant, sqlx::Error> + Send> {
    sqlx::query!(
        r#"SELECT issuer, subject, operator AS "operator: OperatorName", mac FROM operator_identities ORDER BY operator"#
    )
    .map(|row| {
        let identity = OperatorIdentity {
            issuer: row.issuer,
            subject: row.subject,
        };
        stored_identity(&identity, &row.operator, row.mac)
    })
}
