//! One-time links that begin a session of an operator.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_domain::operator_session::{OperatorSession, SignInMethod};
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
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn issue_sign_in_link(
        &self,
        operator: OperatorName,
        hash: OperatorTokenHash,
        actor: AuditActor,
    ) -> Result<IssueLinkOutcome, StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                issue(&mut connection, &grants, &operator, hash, &actor).await
            })
            .await
    }

    /// The enabled operator of a valid link, which stays valid.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn find_sign_in_link(
        &self,
        hash: OperatorTokenHash,
    ) -> Result<Option<OperatorName>, StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                find(&mut transaction, &grants, &hash).await
            })
            .await
    }

    /// Uses up a valid link of an enabled operator and starts a session. Returns `None` if there is no such link.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn redeem_sign_in_link(
        &self,
        hash: OperatorTokenHash,
        session: NewSession,
    ) -> Result<Option<OperatorSession>, StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move { redeem(&pool, &grants, hash, session).await })
            .await
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
    let actor = AuditActor::command_line();
    Ok(issue(&mut connection, grants, operator, hash, &actor).await?)
}

async fn issue(
    connection: &mut PgConnection,
    grants: &Grants,
    operator: &OperatorName,
    hash: OperatorTokenHash,
    actor: &AuditActor,
) -> Result<IssueLinkOutcome, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    match lock_valid(&mut transaction, grants, operator).await? {
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
    let expires_at = expires_at.fetch_one(&mut *transaction).await?;
    let mac = grants.mac(&Grant::of_sign_in_link(operator, &hash, expires_at))?;
    let update = sqlx::query!(
        "UPDATE operator_sign_in_links SET mac = $2 WHERE operator = $1",
        operator as _,
        mac
    );
    update.execute(&mut *transaction).await?;
    let action = "operator_sign_in_link.issue";
    audit::write(&mut transaction, actor, action, operator, NO_STATE, NO_STATE).await?;
    transaction.commit().await?;
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

async fn redeem(
    pool: &PgPool,
    grants: &Grants,
    hash: OperatorTokenHash,
    session: NewSession,
) -> Result<Option<OperatorSession>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(operator) = find(&mut transaction, grants, &hash).await? else {
        return Ok(None);
    };
    // A concurrent redemption has waited for the account, and finds no row then.
    let used = sqlx::query!(
        "DELETE FROM operator_sign_in_links WHERE token_hash = $1",
        &hash.as_bytes()[..],
    );
    if used.execute(&mut *transaction).await?.rows_affected() == 0 {
        return Ok(None);
    }
    let started = sessions::start(&mut transaction, grants, &operator, SignInMethod::Link, session).await?;
    transaction.commit().await?;
    Ok(Some(started))
}
