//! End and activation of API tokens of operators.

use sqlx::PgConnection;
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{OperatorSessionId, OperatorTokenId};
use vouchsafe_domain::operator::{OperatorName, OperatorTokenSummary};
use vouchsafe_security::operator_token::OperatorTokenHash;

use super::tokens::{query_tokens, stored_token};
use super::{AccountChanges, Operators, change, lock_valid};
use crate::grants::{Grants, of_token};

impl Operators {
    /// Activates a live token of an enabled operator with its one-time code, and with it the account. Returns
    /// `None` if token and code do not belong together.
    #[boxed]
    pub async fn activate_token(
        &self,
        token: OperatorTokenHash,
        code: OperatorTokenHash,
        trace_id: Option<String>,
    ) -> Result<Option<OperatorTokenSummary>, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator_token.activate", async |transaction| {
            activate(transaction, &grants, token, code, trace_id).await
        })
    }

    /// Revokes a token and returns the time of revocation. Idempotent. Returns `None` if the token does not
    /// exist.
    #[boxed]
    pub async fn revoke_token(
        &self,
        token_id: OperatorTokenId,
        actor: AuditActor,
    ) -> Result<Option<OffsetDateTime>, StoreError> {
        transaction!(self.0, "operator_token.revoke", async |transaction| {
            revoke(transaction, token_id, &actor).await
        })
    }
}

async fn activate(
    transaction: &mut PgConnection,
    grants: &Grants,
    token: OperatorTokenHash,
    code: OperatorTokenHash,
    trace_id: Option<String>,
) -> Result<Option<OperatorTokenSummary>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT operator AS "operator: OperatorName", token_id AS "token_id: OperatorTokenId", expires_at,
                  session_id AS "session_id: OperatorSessionId", mac
             FROM operator_tokens
            WHERE token_hash = $1 AND activation_hash = $2"#,
        &token.as_bytes()[..],
        &code.as_bytes()[..],
    );
    let Some(found) = found.fetch_optional(&mut *transaction).await? else {
        return Ok(None);
    };
    let grant = |activation| {
        of_token(
            found.token_id,
            (&found.operator, &token),
            found.expires_at,
            found.session_id,
            activation,
        )
    };
    let inactive = stored_token(
        found.token_id,
        grant(Some(&code.as_bytes()[..])),
        found.mac.clone(),
    );
    // The account is locked before its tokens, as everywhere.
    let account = lock_valid(transaction, grants, &found.operator).await?;
    if account.is_none_or(|account| account.disabled) || !grants.verify(&inactive) {
        return Ok(None);
    }
    let operator = found.operator.clone();
    let activated = query_tokens!(
        "UPDATE operator_tokens
            SET activation_hash = NULL, mac = $3
          WHERE token_hash = $1
            AND activation_hash = $2
            AND revoked_at IS NULL
            AND expires_at > now()
         RETURNING",
        "",
        &token.as_bytes()[..],
        &code.as_bytes()[..],
        grants.mac(&grant(None))?,
    );
    let Some(activated) = activated.fetch_optional(&mut *transaction).await? else {
        return Ok(None);
    };
    let actor = AuditActor {
        operator: operator.to_string(),
        trace_id,
    };
    let changes = AccountChanges {
        role: None,
        disabled: None,
        activates: true,
    };
    change(transaction, grants, &operator, changes, &actor).await?;
    let action = AuditAction::ActivateToken;
    audit::write(
        transaction,
        &actor,
        action,
        &activated.token_id,
        NO_STATE,
        Some(&activated),
    )
    .await?;
    Ok(Some(activated))
}

/// What issued a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Issuer {
    Anything,
    AnySession,
    Session(OperatorSessionId),
}

/// Revokes the live tokens of an operator that the issuer issued.
pub(super) async fn revoke_all(
    connection: &mut PgConnection,
    operator: &OperatorName,
    issuer: Issuer,
    actor: &AuditActor,
) -> Result<(), sqlx::Error> {
    let (only_of_sessions, session_id) = match issuer {
        Issuer::Anything => (false, None),
        Issuer::AnySession => (true, None),
        Issuer::Session(session_id) => (true, Some(session_id)),
    };
    let live = sqlx::query_scalar!(
        r#"SELECT token_id AS "token_id: OperatorTokenId"
             FROM operator_tokens
            WHERE operator = $1
              AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > now())
              AND (session_id IS NOT NULL OR NOT $2)
              AND ($3::uuid IS NULL OR session_id = $3)
            ORDER BY token_id"#,
        operator as _,
        only_of_sessions,
        session_id as _,
    );
    for token_id in live.fetch_all(&mut *connection).await? {
        revoke(connection, token_id, actor).await?;
    }
    Ok(())
}

async fn revoke(
    connection: &mut PgConnection,
    token_id: OperatorTokenId,
    actor: &AuditActor,
) -> Result<Option<OffsetDateTime>, sqlx::Error> {
    let before = query_tokens!(
        "SELECT",
        "FROM operator_tokens WHERE token_id = $1 FOR NO KEY UPDATE",
        token_id as _
    );
    let Some(before) = before.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    if before.revoked_at.is_some() {
        return Ok(before.revoked_at);
    }
    let after = query_tokens!(
        "UPDATE operator_tokens SET revoked_at = clock_timestamp(), mac = NULL WHERE token_id = $1 RETURNING",
        "",
        token_id as _,
    );
    let after = after.fetch_one(&mut *connection).await?;
    let action = AuditAction::RevokeToken;
    audit::write(connection, actor, action, &token_id, Some(&before), Some(&after)).await?;
    Ok(after.revoked_at)
}
