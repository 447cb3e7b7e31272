//! API tokens of operators: issue, use, revocation.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{OperatorSessionId, OperatorTokenId};
use vouchsafe_domain::operator::{OperatorAccount, OperatorName, OperatorTokenSummary, Role};
use vouchsafe_domain::operator_session::{SessionAuthentication, SignInMethod};
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::vault::grant_key::Grant;

use super::{Operators, lock_valid, stored_grant};
use crate::grants::{Grants, StoredGrant, of_token, stored_session};
use vouchsafe_database::database::Statement;

/// Maximum of live tokens per operator. Leaves room for a person's machines and for jobs.
pub const MAX_LIVE_TOKENS: i64 = 20;

/// Days for which a revoked or expired token stays listed. The audit trail keeps its issue and its
/// revocation.
const ENDED_TOKEN_DAYS: i32 = 90;

/// The operator whose token a request carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    pub name: OperatorName,
    pub role: Role,
    /// The session that issued the token, and the end of the token.
    pub session: Option<SessionSpan>,
    /// Authentication of that session.
    pub authentication: Option<SessionAuthentication>,
}

/// A session, and the latest end of what it grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSpan {
    pub session_id: OperatorSessionId,
    pub expires_at: OffsetDateTime,
}

/// A token to store.
#[derive(Debug, Clone)]
pub struct NewOperatorToken {
    pub operator: OperatorName,
    pub hash: OperatorTokenHash,
    /// `None` for a sandbox's first token.
    pub expires_at: Option<OffsetDateTime>,
    /// The session that issues it, with which it ends.
    pub session_id: Option<OperatorSessionId>,
    /// Hash of the code without which it stays inactive.
    pub activation: Option<OperatorTokenHash>,
}

/// Result of issuing a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueTokenOutcome {
    Issued(OperatorTokenSummary),
    OperatorNotFound,
    /// The operator has [`MAX_LIVE_TOKENS`].
    TooMany,
    /// A token with this hash was issued before; it stays as it is.
    HashKnown,
}

/// Runs a statement that returns tokens.
macro_rules! query_tokens {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query_as!(
            OperatorTokenSummary,
            $before
                + r#" token_id AS "token_id: OperatorTokenId", operator AS "operator: OperatorName", created_at, expires_at,
                      last_used_at, revoked_at, (activation_hash IS NULL) AS "active!" "#
                + $after,
            $($argument),*
        )
    };
}

pub(super) use query_tokens;

impl Operators {
    /// Finds the enabled operator of a live, active token, and records the use of the token.
    #[boxed]
    pub async fn authenticate(&self, hash: OperatorTokenHash) -> Result<Option<TokenHolder>, StoreError> {
        let grants = self.1.clone();
        self.0
            .run(move |pool| async move { authenticate(&pool, &grants, hash).await })
            .await
    }

    /// Stores a token of an existing operator.
    #[boxed]
    pub async fn issue_token(
        &self,
        token: NewOperatorToken,
        actor: AuditActor,
    ) -> Result<IssueTokenOutcome, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_token.issue", async |transaction| {
            issue_token(transaction, &grants, &token, &actor).await
        })
    }

    /// Stores a token of the account of a sandbox, which it creates, unless a token with this text was ever
    /// stored: a revoked one stays revoked.
    #[boxed]
    pub async fn ensure_token(&self, token: NewOperatorToken, actor: AuditActor) -> Result<(), StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_token.ensure", async |transaction| {
            let name = &token.operator;
            super::insert(transaction, &grants, name, Role::Admin, true, &actor).await?;
            insert(transaction, &grants, &token, &actor).await?;
            Ok(())
        })
    }

    /// Whether any operator can sign in.
    #[boxed]
    pub async fn has_live_tokens(&self) -> Result<bool, StoreError> {
        let found = sqlx::query!(
            r#"SELECT EXISTS (
                   SELECT FROM operator_tokens
                     JOIN operators ON name = operator
                    WHERE revoked_at IS NULL
                      AND activation_hash IS NULL
                      AND (expires_at IS NULL OR expires_at > now())
                      AND NOT disabled
               ) AS "found!""#
        );
        self.0
            .run(|pool| async move { Ok(found.fetch_one(&pool).await?.found) })
            .await
    }

    /// Deletes the tokens that ended 90 days ago.
    #[boxed]
    pub async fn purge_tokens(&self) -> Result<(), StoreError> {
        // A token that does not expire is that of a sandbox's file: without its row, the next start would
        // make a revoked one valid.
        let statement = sqlx::query!(
            "DELETE FROM operator_tokens
              WHERE least(revoked_at, expires_at) < now() - make_interval(days => $1)
                AND expires_at IS NOT NULL",
            ENDED_TOKEN_DAYS,
        );
        self.0.execute(statement).await
    }

    /// Lists up to `limit` tokens of an operator older than `before`, newest first, with those that ended in
    /// the last 90 days.
    #[boxed]
    pub async fn list_tokens(
        &self,
        operator: OperatorName,
        before: Option<OperatorTokenId>,
        limit: usize,
    ) -> Result<Vec<OperatorTokenSummary>, StoreError> {
        let statement = query_tokens!(
            "SELECT",
            "FROM operator_tokens
            WHERE operator = $1
              AND ($2::uuid IS NULL OR token_id < $2)
            ORDER BY token_id DESC
            LIMIT $3",
            operator as _,
            before as _,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }
}

async fn authenticate(
    pool: &PgPool,
    grants: &Grants,
    hash: OperatorTokenHash,
) -> Result<Option<TokenHolder>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT token_id AS "token_id: OperatorTokenId", name AS "name: OperatorName", role AS "role: Role", t.expires_at,
                  t.session_id AS "session_id: OperatorSessionId", t.mac, o.mac AS account_mac, o.created_at,
                  s.method AS "method?: SignInMethod", s.authenticated_at AS "authenticated_at?", s.expires_at AS "session_expires_at?",
                  s.token_hash AS "session_hash?: [u8; 32]", s.mac AS "session_mac?",
                  (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute') AS "is_use_due!"
             FROM operator_tokens AS t
             JOIN operators AS o ON name = t.operator
             LEFT JOIN operator_sessions AS s ON s.session_id = t.session_id
            WHERE t.token_hash = $1
              AND revoked_at IS NULL
              AND activation_hash IS NULL
              AND (t.expires_at IS NULL OR t.expires_at > now())
              -- A deleted session has ended.
              AND (t.session_id IS NULL OR s.session_id IS NOT NULL AND s.ended_at IS NULL)
              AND active
              AND NOT disabled"#,
        &hash.as_bytes()[..],
    );
    let Some(found) = found.fetch_optional(pool).await? else {
        return Ok(None);
    };
    let grant = of_token(
        found.token_id,
        (&found.name, &hash),
        found.expires_at,
        found.session_id,
        None,
    );
    let account = OperatorAccount {
        name: found.name.clone(),
        role: found.role,
        disabled: false,
        active: true,
        created_at: found.created_at,
    };
    let is_valid = grants.verify(&stored_token(found.token_id, grant, found.mac))
        && grants.verify(&stored_grant(&account, found.account_mac));
    if !is_valid {
        return Ok(None);
    }
    let issuer = found
        .session_id
        .zip(found.method)
        .zip(found.session_hash)
        .zip(found.session_expires_at);
    let mut authentication = None;
    if let Some((((session_id, method), session_hash), expires_at)) = issuer {
        let of_session = SessionAuthentication {
            method,
            at: found.authenticated_at,
        };
        let session_hash = OperatorTokenHash::from_bytes(session_hash);
        let session = stored_session(
            session_id,
            (&found.name, &session_hash),
            expires_at,
            of_session,
            found.session_mac,
        );
        if !grants.verify(&session) {
            return Ok(None);
        }
        authentication = Some(of_session);
    }
    if found.is_use_due {
        // Concurrent requests find the row changed and skip it; the request does not depend on it.
        let recorded = sqlx::query!(
            "UPDATE operator_tokens
                SET last_used_at = now()
              WHERE token_id = $1
                AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')",
            found.token_id as _,
        );
        if let Err(error) = recorded.execute(pool).await {
            tracing::warn!(error.message = %error, operator.name = %found.name, "cannot record the use of an operator token");
        }
    }
    let session = found.session_id.zip(found.expires_at);
    Ok(Some(TokenHolder {
        name: found.name,
        role: found.role,
        session: session.map(|(session_id, expires_at)| SessionSpan {
            session_id,
            expires_at,
        }),
        authentication,
    }))
}

pub(super) fn stored_token(token_id: OperatorTokenId, grant: Grant, mac: Option<Vec<u8>>) -> StoredGrant {
    StoredGrant {
        table: "operator_tokens",
        id: token_id.to_string(),
        partner_id: None,
        grant,
        mac,
    }
}

/// The tokens that are not revoked, also those of which the session or the time has ended.
pub(super) fn all_unrevoked() -> Statement<impl FnMut(PgRow) -> Result<StoredGrant, sqlx::Error> + Send> {
    sqlx::query!(
        r#"SELECT token_id AS "token_id: OperatorTokenId", operator AS "operator: OperatorName", token_hash AS "token_hash: [u8; 32]",
                  expires_at, session_id AS "session_id: OperatorSessionId", activation_hash, mac
             FROM operator_tokens
            WHERE revoked_at IS NULL
            ORDER BY token_id"#
    )
    .map(|row| {
        let grant = of_token(
            row.token_id,
            (&row.operator, &OperatorTokenHash::from_bytes(row.token_hash)),
            row.expires_at,
            row.session_id,
            row.activation_hash.as_deref(),
        );
        stored_token(row.token_id, grant, row.mac)
    })
}

async fn issue_token(
    transaction: &mut PgConnection,
    grants: &Grants,
    token: &NewOperatorToken,
    actor: &AuditActor,
) -> Result<IssueTokenOutcome, sqlx::Error> {
    // The lock serializes the check of the maximum.
    let account = lock_valid(transaction, grants, &token.operator).await?;
    if account.is_none() {
        return Ok(IssueTokenOutcome::OperatorNotFound);
    }
    let live = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
             FROM operator_tokens
            WHERE operator = $1
              AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > now())"#,
        &token.operator as _,
    );
    if live.fetch_one(&mut *transaction).await? >= MAX_LIVE_TOKENS {
        return Ok(IssueTokenOutcome::TooMany);
    }
    let issued = insert(transaction, grants, token, actor).await?;
    Ok(issued.map_or(IssueTokenOutcome::HashKnown, IssueTokenOutcome::Issued))
}

/// Inserts the token and its audit entry. Returns `None` if it is stored already.
pub(super) async fn insert(
    connection: &mut PgConnection,
    grants: &Grants,
    token: &NewOperatorToken,
    actor: &AuditActor,
) -> Result<Option<OperatorTokenSummary>, sqlx::Error> {
    let token_id = OperatorTokenId::generate();
    let activation = token.activation.as_ref().map(|code| &code.as_bytes()[..]);
    let grant = of_token(
        token_id,
        (&token.operator, &token.hash),
        token.expires_at,
        token.session_id,
        activation,
    );
    let issued = query_tokens!(
        "INSERT INTO operator_tokens (token_id, operator, token_hash, expires_at, session_id, activation_hash, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (token_hash) DO NOTHING
         RETURNING",
        "",
        token_id as _,
        &token.operator as _,
        &token.hash.as_bytes()[..],
        token.expires_at,
        token.session_id as _,
        activation,
        grants.mac(&grant)?,
    );
    let issued = issued.fetch_optional(&mut *connection).await?;
    if let Some(issued) = &issued {
        let subject = &issued.token_id;
        audit::write(
            connection,
            actor,
            AuditAction::IssueToken,
            subject,
            NO_STATE,
            Some(issued),
        )
        .await?;
    }
    Ok(issued)
}
