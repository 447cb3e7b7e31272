//! One-time links that begin a session of an operator.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_domain::operator_session::{OperatorSession, SignInMethod};
use vouchsafe_security::operator_token::OperatorTokenHash;

use super::sessions::{self, NewSession};
use super::{Operators, lock};

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
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn issue_sign_in_link(
        &self,
        operator: OperatorName,
        hash: OperatorTokenHash,
        actor: AuditActor,
    ) -> Result<IssueLinkOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                issue(&mut connection, &operator, hash, &actor).await
            })
            .await
    }

    /// The enabled operator of a valid link, which stays valid.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn find_sign_in_link(
        &self,
        hash: OperatorTokenHash,
    ) -> Result<Option<OperatorName>, sqlx::Error> {
        let found = sqlx::query_scalar!(
            r#"SELECT operator AS "operator: OperatorName"
                 FROM operator_sign_in_links
                 JOIN operators ON name = operator
                WHERE token_hash = $1
                  AND expires_at > now()
                  AND NOT disabled"#,
            &hash.as_bytes()[..],
        );
        self.0
            .run(|pool| async move { found.fetch_optional(&pool).await })
            .await
    }

    /// Uses up a valid link of an enabled operator and starts a session. Returns `None` if there is no such link.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn redeem_sign_in_link(
        &self,
        hash: OperatorTokenHash,
        session: NewSession,
    ) -> Result<Option<OperatorSession>, sqlx::Error> {
        self.0
            .run(move |pool| async move { redeem(&pool, hash, session).await })
            .await
    }
}

/// Issues a link on a connection of its own, without the service.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer or is not migrated.
#[boxed]
pub async fn issue_sign_in_link(
    database: &PgConnectOptions,
    operator: &OperatorName,
    hash: OperatorTokenHash,
) -> Result<IssueLinkOutcome, sqlx::Error> {
    let mut connection = PgConnection::connect_with(database).await?;
    let issued = issue(&mut connection, operator, hash, &AuditActor::command_line()).await?;
    connection.close().await?;
    Ok(issued)
}

async fn issue(
    connection: &mut PgConnection,
    operator: &OperatorName,
    hash: OperatorTokenHash,
    actor: &AuditActor,
) -> Result<IssueLinkOutcome, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    match lock(operator).fetch_optional(&mut *transaction).await? {
        None => return Ok(IssueLinkOutcome::OperatorNotFound),
        Some(account) if account.disabled => return Ok(IssueLinkOutcome::OperatorDisabled),
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
    let action = "operator_sign_in_link.issue";
    audit::write(&mut transaction, actor, action, operator, NO_STATE, NO_STATE).await?;
    transaction.commit().await?;
    Ok(IssueLinkOutcome::Issued { expires_at })
}

async fn redeem(
    pool: &PgPool,
    hash: OperatorTokenHash,
    session: NewSession,
) -> Result<Option<OperatorSession>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let found = sqlx::query_scalar!(
        r#"SELECT operator AS "operator: OperatorName" FROM operator_sign_in_links WHERE token_hash = $1"#,
        &hash.as_bytes()[..],
    );
    let Some(operator) = found.fetch_optional(&mut *transaction).await? else {
        return Ok(None);
    };
    // Waits for a change that disables the account: it ends the sessions that it sees, and removes the link.
    lock(&operator).fetch_optional(&mut *transaction).await?;
    // A concurrent redemption waits for this one and then finds no row.
    let operator = sqlx::query_scalar!(
        r#"DELETE FROM operator_sign_in_links
            USING operators
            WHERE token_hash = $1
              AND expires_at > now()
              AND name = operator
              AND NOT disabled
           RETURNING operator AS "operator: OperatorName""#,
        &hash.as_bytes()[..],
    );
    let Some(operator) = operator.fetch_optional(&mut *transaction).await? else {
        return Ok(None);
    };
    let started = sessions::start(&mut transaction, &operator, SignInMethod::Link, session).await?;
    transaction.commit().await?;
    Ok(Some(started))
}
