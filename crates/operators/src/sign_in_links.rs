//! One-time links that begin a session of an operator.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_domain::operator_session::OperatorSession;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::vault::grant_key::Grant;

use super::sessions::{self, NewSession};
use super::{Operators, lock_valid};
use crate::grants::{Grants, StoredGrant};

/// Validity of a link. Long enough to paste it into a browser.
const LINK_MINUTES: i32 = 10;

/// Result of issuing a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueLinkOutcome {
    Issued { expires_at: OffsetDateTime },
    OperatorNotFound,
    OperatorDisabled,
}

impl Operators {
    /// Stores a link, which replaces the operator's earlier one.
    #[boxed]
    pub async fn issue_sign_in_link(
        &self,
        operator: OperatorName,
        hash: OperatorTokenHash,
        actor: AuditActor,
    ) -> Result<IssueLinkOutcome, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_sign_in_link.issue", async |transaction| {
            issue(transaction, &grants, &operator, hash, &actor).await
        })
    }

    /// The enabled operator of a valid link, which stays valid.
    #[boxed]
    pub async fn find_sign_in_link(
        &self,
        hash: OperatorTokenHash,
    ) -> Result<Option<OperatorName>, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_sign_in_link.find", async |transaction| {
            // It has locked the account and changed nothing.
            transaction.abandon();
            find(transaction, &grants, &hash).await
        })
    }

    /// Uses up a valid link of an enabled operator and starts a session. Returns `None` if there is no such
    /// link.
    #[boxed]
    pub async fn redeem_sign_in_link(
        &self,
        hash: OperatorTokenHash,
        session: NewSession,
    ) -> Result<Option<OperatorSession>, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_sign_in_link.redeem", async |transaction| {
            let Some(operator) = find(transaction, &grants, &hash).await? else {
                return Ok(None);
            };
            // A concurrent redemption has waited for the account, and finds no row then.
            let used = sqlx::query!(
                "DELETE FROM operator_sign_in_links WHERE token_hash = $1",
                &hash.as_bytes()[..],
            );
            if used.execute(&mut **transaction).await?.rows_affected() == 0 {
                return Ok(None);
            }
            let started = sessions::start(transaction, &grants, &operator, session).await?;
            Ok(Some(started))
        })
    }
}

/// Issues a link on a connection of its own, without the service.
///
/// # Errors
/// [`StoreError`] when the database does not answer or is not migrated.
#[boxed]
pub async fn issue_sign_in_link(
    database: &PgConnectOptions,
    grants: &Grants,
    operator: &OperatorName,
    hash: OperatorTokenHash,
) -> Result<IssueLinkOutcome, StoreError> {
    let mut connection = connect(database).await?;
    let mut transaction = connection.begin().await?;
    let issued = issue(
        &mut transaction,
        grants,
        operator,
        hash,
        &AuditActor::command_line(),
    )
    .await?;
    transaction.commit().await?;
    Ok(issued)
}

async fn issue(
    connection: &mut PgConnection,
    grants: &Grants,
    operator: &OperatorName,
    hash: OperatorTokenHash,
    actor: &AuditActor,
) -> Result<IssueLinkOutcome, sqlx::Error> {
    match lock_valid(connection, grants, operator).await? {
        None => return Ok(IssueLinkOutcome::OperatorNotFound),
        Some(account) if account.disabled || !account.active => {
            return Ok(IssueLinkOutcome::OperatorDisabled);
        }
        Some(_) => {}
    }
    let expires_at = sqlx::query_scalar!(
        "INSERT INTO operator_sign_in_links (operator, token_hash, expires_at)
         VALUES ($1, $2, now() + make_interval(mins => $3))
         ON CONFLICT (operator) DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at
         RETURNING expires_at",
        operator as _,
        &hash.as_bytes()[..],
        LINK_MINUTES,
    );
    let expires_at = expires_at.fetch_one(&mut *connection).await?;
    let mac = grants.mac(&Grant::of_sign_in_link(operator, &hash, expires_at))?;
    let update = sqlx::query!(
        "UPDATE operator_sign_in_links SET mac = $2 WHERE operator = $1",
        operator as _,
        mac
    );
    update.execute(&mut *connection).await?;
    let action = AuditAction::IssueSignInLink;
    audit::write(connection, actor, action, operator, NO_STATE, NO_STATE).await?;
    Ok(IssueLinkOutcome::Issued { expires_at })
}

/// The enabled operator of a valid link; locks the account.
async fn find(
    connection: &mut PgConnection,
    grants: &Grants,
    hash: &OperatorTokenHash,
) -> Result<Option<OperatorName>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT operator AS "operator: OperatorName", expires_at, mac
             FROM operator_sign_in_links
            WHERE token_hash = $1 AND expires_at > now()"#,
        &hash.as_bytes()[..],
    );
    let Some(found) = found.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    let stored = StoredGrant {
        table: "operator_sign_in_links",
        id: found.operator.to_string(),
        partner_id: None,
        grant: Grant::of_sign_in_link(&found.operator, hash, found.expires_at),
        mac: found.mac,
    };
    // Waits for a change that disables the account: it ends the sessions that it sees, and removes the link.
    let account = lock_valid(connection, grants, &found.operator).await?;
    let is_enabled = account.is_some_and(|account| account.active && !account.disabled);
    Ok((is_enabled && grants.verify(&stored)).then_some(found.operator))
}
