//! Sessions of operators: start, use, end.
//!
//! Every request of a session reads it here, so a sign-out, a disabled account and a changed role are in
//! force on all nodes with their commit.

use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::OperatorSessionId;
use vouchsafe_domain::operator::{OperatorAccount, OperatorName, Role};
use vouchsafe_domain::operator_session::{
    OperatorSession, SESSION_HOURS, SESSION_IDLE_MINUTES, SessionAuthentication, SessionFilter, SignInMethod,
};
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::vault::grant_key::Grant;

use super::token_state::{self, Issuer};
use super::tokens::SessionSpan;
use super::{Operators, stored_grant};
use crate::grants::{Grants, stored_session};

/// Days for which an ended session stays listed. The audit trail keeps its start and end.
const ENDED_SESSION_DAYS: i32 = 30;

/// A session to store.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub hash: OperatorTokenHash,
    /// Client address of the sign-in.
    pub address: String,
    pub trace_id: Option<String>,
    pub authentication: SessionAuthentication,
    /// The session whose cookie the browser replaces with this one's.
    pub replaced: Option<OperatorTokenHash>,
}

/// The session of a cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionLookup {
    Live(SessionHolder),
    /// It was ended, has expired, or its operator is disabled.
    Ended,
    Unknown,
}

/// The operator of a live session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHolder {
    pub name: OperatorName,
    pub role: Role,
    pub session: SessionSpan,
    pub authentication: SessionAuthentication,
}

/// Runs a statement that returns sessions.
macro_rules! query_sessions {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $before
                + r#" session_id AS "session_id: OperatorSessionId", operator AS "operator: OperatorName",
                      method AS "method: SignInMethod", address, created_at, authenticated_at, last_used_at, expires_at, ended_at "#
                + $after,
            $($argument),*
        )
        .map(|row| OperatorSession {
            session_id: row.session_id,
            operator: row.operator,
            method: row.method,
            address: row.address,
            created_at: row.created_at,
            authenticated_at: row.authenticated_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at.min(row.last_used_at + IDLE_TIMEOUT),
            ended_at: row.ended_at,
        })
    };
}

const IDLE_TIMEOUT: time::Duration = time::Duration::minutes(1).saturating_mul(SESSION_IDLE_MINUTES);

/// Who sends a request with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// The session stays for another idle time.
    ByOperator,
    /// A page that was left open. It does not keep the session.
    ByPage,
}

impl Operators {
    /// Finds the enabled operator of a session.
    #[boxed]
    pub async fn find_session_holder(
        &self,
        hash: OperatorTokenHash,
        session_use: SessionUse,
    ) -> Result<SessionLookup, StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move { find_holder(&pool, &grants, hash, session_use).await })
            .await
    }

    /// Lists up to `limit` sessions older than `before`, newest first, including those that ended in the last
    /// 30 days.
    #[boxed]
    pub async fn list_sessions(
        &self,
        filter: SessionFilter,
        before: Option<OperatorSessionId>,
        limit: usize,
    ) -> Result<Vec<OperatorSession>, StoreError> {
        let statement = query_sessions!(
            "SELECT",
            "FROM operator_sessions
            WHERE ($1::text IS NULL OR operator = $1)
              AND ($2::uuid IS NULL OR session_id < $2)
            ORDER BY session_id DESC
            LIMIT $3",
            filter.operator as _,
            before as _,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    #[boxed]
    pub async fn find_session(
        &self,
        session_id: OperatorSessionId,
    ) -> Result<Option<OperatorSession>, StoreError> {
        let statement = query_sessions!(
            "SELECT",
            "FROM operator_sessions WHERE session_id = $1",
            session_id as _
        );
        self.0.fetch_optional(statement).await
    }

    /// Ends a session and returns the time of its end. Idempotent. Returns `None` if the session does not
    /// exist.
    #[boxed]
    pub async fn end_session(
        &self,
        session_id: OperatorSessionId,
        actor: AuditActor,
    ) -> Result<Option<OffsetDateTime>, StoreError> {
        transaction!(self.0, "operator_session.end", async |transaction| {
            end(transaction, session_id, &actor).await
        })
    }

    /// Deletes the sessions that ended 30 days ago, and the sign-in links that have expired.
    #[boxed]
    pub async fn purge_sessions(&self) -> Result<(), StoreError> {
        // Without an index: a person signs in once per working day.
        let sessions = sqlx::query!(
            "DELETE FROM operator_sessions WHERE coalesce(ended_at, expires_at) < now() - make_interval(days => $1)",
            ENDED_SESSION_DAYS,
        );
        self.0.execute(sessions).await?;
        let links = sqlx::query!("DELETE FROM operator_sign_in_links WHERE expires_at <= now()");
        self.0.execute(links).await
    }
}

/// Ends the sessions of an operator, revokes the tokens that they issued, and removes the sign-in link. The
/// operator is locked.
pub(super) async fn end_all(
    connection: &mut PgConnection,
    operator: &OperatorName,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE operator_sessions SET ended_at = now(), mac = NULL WHERE operator = $1 AND ended_at IS NULL",
        operator as _,
    )
    .execute(&mut *connection)
    .await?;
    token_state::revoke_all(&mut *connection, operator, Issuer::AnySession, actor).await?;
    sqlx::query!(
        "DELETE FROM operator_sign_in_links WHERE operator = $1",
        operator as _
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn find_holder(
    pool: &PgPool,
    grants: &Grants,
    hash: OperatorTokenHash,
    session_use: SessionUse,
) -> Result<SessionLookup, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT session_id AS "session_id: OperatorSessionId", name AS "name: OperatorName", role AS "role: Role", expires_at,
                  method AS "method: SignInMethod", authenticated_at, s.mac, o.mac AS account_mac, o.created_at,
                  (ended_at IS NULL
                   AND expires_at > now()
                   AND last_used_at > now() - make_interval(mins => $2)
                   AND active
                   AND NOT disabled) AS "is_live!",
                  (last_used_at < now() - interval '1 minute') AS "is_use_due!"
             FROM operator_sessions AS s
             JOIN operators AS o ON name = operator
            WHERE token_hash = $1"#,
        &hash.as_bytes()[..],
        SESSION_IDLE_MINUTES,
    );
    let Some(found) = found.fetch_optional(pool).await? else {
        return Ok(SessionLookup::Unknown);
    };
    if !found.is_live {
        return Ok(SessionLookup::Ended);
    }
    let authentication = SessionAuthentication {
        method: found.method,
        at: found.authenticated_at,
    };
    let session = stored_session(
        found.session_id,
        (&found.name, &hash),
        found.expires_at,
        authentication,
        found.mac,
    );
    let account = OperatorAccount {
        name: found.name.clone(),
        role: found.role,
        disabled: false,
        active: true,
        created_at: found.created_at,
    };
    if !grants.verify(&session) || !grants.verify(&stored_grant(&account, found.account_mac)) {
        return Ok(SessionLookup::Unknown);
    }
    if found.is_use_due && session_use == SessionUse::ByOperator {
        // Concurrent requests find the row changed and skip it. An unrecorded use ends the session early,
        // nothing else.
        let recorded = sqlx::query!(
            "UPDATE operator_sessions
                SET last_used_at = now()
              WHERE session_id = $1
                AND last_used_at < now() - interval '1 minute'",
            found.session_id as _,
        );
        if let Err(error) = recorded.execute(pool).await {
            tracing::warn!(error.message = %error, operator.name = %found.name, "cannot record the use of a session");
        }
    }
    let session = SessionSpan {
        session_id: found.session_id,
        expires_at: found.expires_at,
    };
    Ok(SessionLookup::Live(SessionHolder {
        name: found.name,
        role: found.role,
        session,
        authentication,
    }))
}

/// Starts a session of an enabled operator, with its audit entry, and ends the one that it replaces.
pub(super) async fn start(
    connection: &mut PgConnection,
    grants: &Grants,
    operator: &OperatorName,
    session: NewSession,
) -> Result<OperatorSession, sqlx::Error> {
    let started = query_sessions!(
        "INSERT INTO operator_sessions (session_id, operator, token_hash, method, address, expires_at, authenticated_at)
         VALUES ($1, $2, $3, $4, $5, now() + make_interval(hours => $6), $7)
         RETURNING",
        "",
        OperatorSessionId::generate() as _,
        operator as _,
        &session.hash.as_bytes()[..],
        session.authentication.method as _,
        session.address,
        SESSION_HOURS,
        session.authentication.at,
    );
    let started = started.fetch_one(&mut *connection).await?;
    let session_id = started.session_id;
    // The database's clock has determined the end, which the view of a session shortens to that of its idle
    // time.
    let expires_at = started.created_at + time::Duration::hours(SESSION_HOURS.into());
    let mac = grants.mac(&Grant::of_session(
        session_id.as_uuid().as_bytes(),
        operator,
        &session.hash,
        expires_at,
        session.authentication,
    ))?;
    let update = sqlx::query!(
        "UPDATE operator_sessions SET mac = $2 WHERE session_id = $1",
        session_id as _,
        mac
    );
    update.execute(&mut *connection).await?;
    let actor = AuditActor {
        operator: operator.to_string(),
        trace_id: session.trace_id,
    };
    let subject = &started.session_id;
    audit::write(
        connection,
        &actor,
        AuditAction::StartSession,
        subject,
        NO_STATE,
        Some(&started),
    )
    .await?;
    if let Some(hash) = session.replaced {
        let replaced = sqlx::query_scalar!(
            r#"SELECT session_id AS "session_id: OperatorSessionId" FROM operator_sessions WHERE token_hash = $1"#,
            &hash.as_bytes()[..],
        );
        if let Some(replaced) = replaced.fetch_optional(&mut *connection).await? {
            end(connection, replaced, &actor).await?;
        }
    }
    Ok(started)
}

async fn end(
    connection: &mut PgConnection,
    session_id: OperatorSessionId,
    actor: &AuditActor,
) -> Result<Option<OffsetDateTime>, sqlx::Error> {
    let before = query_sessions!(
        "SELECT",
        "FROM operator_sessions WHERE session_id = $1 FOR NO KEY UPDATE",
        session_id as _
    );
    let Some(before) = before.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    if before.ended_at.is_some() {
        return Ok(before.ended_at);
    }
    let after = query_sessions!(
        "UPDATE operator_sessions SET ended_at = clock_timestamp(), mac = NULL WHERE session_id = $1 RETURNING",
        "",
        session_id as _,
    );
    let after = after.fetch_one(&mut *connection).await?;
    token_state::revoke_all(
        &mut *connection,
        &before.operator,
        Issuer::Session(session_id),
        actor,
    )
    .await?;
    audit::write(
        connection,
        actor,
        AuditAction::EndSession,
        &session_id,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(after.ended_at)
}
