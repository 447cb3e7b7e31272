//! Change requests: changes that wait for a second operator.
//!
//! A request is confirmed before its change is carried out, and ended afterwards. A confirmed request that
//! was not ended (the node died, or the engine did not answer in time) can be confirmed again; its change
//! takes effect once, as a repeated call does.

mod retention;
mod sealed;
mod trail;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::change_request::{ChangeKind, ChangeRequest, ChangeRequestFilter, ChangeRequestStatus};
use vouchsafe_domain::ids::{ChangeRequestId, PartnerId};
use vouchsafe_domain::operator::{OperatorAccount, OperatorName};

use self::trail::{audit_change, find_partner};
use vouchsafe_database::database::{Database, Statement};
use vouchsafe_operators::grants::Grants;

/// Until then a confirmed request is being carried out, and is not confirmed again. Longer than a change
/// takes.
const EXECUTION_TIMEOUT_S: f64 = 60.0;

/// A change to request.
#[derive(Debug, Clone)]
pub struct NewChangeRequest {
    pub request_id: ChangeRequestId,
    pub kind: ChangeKind,
    pub object: String,
    /// Partner whom the change concerns; `None` for an operator's account.
    pub partner_id: Option<PartnerId>,
    /// JSON object without codes and secrets.
    pub details: String,
    /// The encrypted change.
    pub sealed: Vec<u8>,
    pub requested_by: OperatorName,
    pub expires_at: OffsetDateTime,
}

/// A request with its encrypted change, which is gone once the request has ended, and the account of its
/// requester.
#[derive(Debug, Clone)]
pub struct StoredChangeRequest {
    pub request: ChangeRequest,
    pub sealed: Option<Vec<u8>>,
    pub requester: Option<OperatorAccount>,
}

/// How a confirmed change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    Executed,
    /// The change was refused with this error code.
    Refused(&'static str),
}

/// Runs a statement that returns requests.
macro_rules! query_requests {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query_as!(
            ChangeRequest,
            $before
                + r#" request_id AS "request_id: ChangeRequestId", kind AS "kind: ChangeKind", object,
                      details::text AS "details!",
                      CASE WHEN status = 'WAITING' AND expires_at <= now() THEN 'EXPIRED' ELSE status END
                          AS "status!: ChangeRequestStatus",
                      requested_by AS "requested_by: OperatorName", requested_at, expires_at,
                      decided_by AS "decided_by: OperatorName", decided_at, reason, error_code "#
                + $after,
            $($argument),*
        )
    };
}

/// Change requests.
#[derive(Debug, Clone)]
pub struct ChangeRequests(pub(super) Database, pub(super) Grants);

impl ChangeRequests {
    /// Stores a request, unless the same operator has requested the same change and it still waits. Returns
    /// the one that waits. `is_same` decides by the encrypted change of a request for the same object.
    pub async fn create(
        &self,
        new: NewChangeRequest,
        is_same: impl Fn(ChangeRequestId, &[u8]) -> bool + Send + 'static,
        actor: AuditActor,
    ) -> Result<ChangeRequest, StoreError> {
        transaction!(self.0, "request.create", async |transaction| {
            // Serializes the requests of an operator, so that a repeated call finds the first one. The token
            // of the settings has no row that could be locked.
            sqlx::query!(
                "SELECT pg_advisory_xact_lock(hashtextextended('request ' || $1::text, 0))",
                &new.requested_by as _,
            )
            .execute(&mut **transaction)
            .await?;
            if let Some(waiting) = find_waiting(transaction, &new, is_same).await? {
                return Ok(waiting);
            }
            let request = query_requests!(
                    "INSERT INTO change_requests (request_id, kind, object, details, sealed, requested_by, expires_at)
                     VALUES ($1, $2, $3, $4::text::jsonb, $5, $6, $7) RETURNING",
                    "",
                    new.request_id as _,
                    new.kind as _,
                    new.object,
                    new.details,
                    new.sealed,
                    new.requested_by as _,
                    new.expires_at,
                );
            let request = request.fetch_one(&mut **transaction).await?;
            let (action, partner_id) = (AuditAction::RequestChange, new.partner_id);
            audit_change(transaction, &actor, partner_id, action, None, &request).await?;
            Ok(request)
        })
    }

    /// Finds a request.
    #[boxed]
    pub async fn find(&self, request_id: ChangeRequestId) -> Result<Option<StoredChangeRequest>, StoreError> {
        let operators = vouchsafe_operators::Operators::new(self.0.clone(), self.1.clone());
        let statement = query_requests!(
            "SELECT",
            "FROM change_requests WHERE request_id = $1",
            request_id as _
        );
        let Some(request) = self.0.fetch_optional(statement).await? else {
            return Ok(None);
        };
        let sealed = sqlx::query_scalar!(
            "SELECT sealed FROM change_requests WHERE request_id = $1",
            request_id as _
        );
        let sealed = self.0.run(|pool| async move { sealed.fetch_one(&pool).await });
        Ok(Some(StoredChangeRequest {
            sealed: sealed.await?,
            requester: operators.find(request.requested_by.clone()).await?,
            request,
        }))
    }

    /// Lists up to `limit` requests older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: ChangeRequestFilter,
        before: Option<ChangeRequestId>,
        limit: usize,
    ) -> Result<Vec<ChangeRequest>, StoreError> {
        if filter.status == Some(ChangeRequestStatus::Waiting) {
            return self.list_waiting(filter, before, limit).await;
        }
        let statement = query_requests!(
            "SELECT",
            "FROM change_requests
            WHERE ($1::text IS NULL
                   OR $1 = CASE WHEN status = 'WAITING' AND expires_at <= now() THEN 'EXPIRED' ELSE status END)
              AND ($2::text IS NULL OR kind = $2)
              AND ($3::uuid IS NULL OR request_id < $3)
              AND ($5::text IS NULL OR object = $5)
            ORDER BY request_id DESC
            LIMIT $4",
            filter.status as _,
            filter.kind as _,
            before as _,
            to_bigint(limit),
            filter.object,
        );
        self.0.fetch_all(statement).await
    }

    /// The index of open requests finds the few that wait among all that have ended.
    async fn list_waiting(
        &self,
        filter: ChangeRequestFilter,
        before: Option<ChangeRequestId>,
        limit: usize,
    ) -> Result<Vec<ChangeRequest>, StoreError> {
        let statement = query_requests!(
            "SELECT",
            "FROM change_requests
            WHERE status = 'WAITING'
              AND expires_at > now()
              AND ($1::text IS NULL OR kind = $1)
              AND ($2::uuid IS NULL OR request_id < $2)
              AND ($4::text IS NULL OR object = $4)
            ORDER BY request_id DESC
            LIMIT $3",
            filter.kind as _,
            before as _,
            to_bigint(limit),
            filter.object,
        );
        self.0.fetch_all(statement).await
    }

    /// Confirms a waiting request of another operator, or one that was confirmed a minute ago and not ended.
    /// Returns the request after that; `None` if it cannot be confirmed now.
    #[boxed]
    pub async fn confirm(
        &self,
        request_id: ChangeRequestId,
        confirmer: OperatorName,
        actor: AuditActor,
    ) -> Result<Option<ChangeRequest>, StoreError> {
        self.transition(request_id, AuditAction::ConfirmChange, actor, move || {
            query_requests!(
                "UPDATE change_requests
                    SET status = 'CONFIRMED', decided_by = $2, decided_at = now()
                  WHERE request_id = $1
                    AND requested_by <> $2
                    AND expires_at > now()
                    AND (status = 'WAITING' OR status = 'CONFIRMED' AND decided_at < now() - make_interval(secs => $3))
                RETURNING",
                "",
                request_id as _,
                confirmer as _,
                EXECUTION_TIMEOUT_S,
            )
        })
        .await
    }

    /// Declines a waiting request, or one that was confirmed a minute ago and not ended; its requester
    /// withdraws it. Returns the request after that; `None` if it cannot be declined now.
    #[boxed]
    pub async fn decline(
        &self,
        request_id: ChangeRequestId,
        operator: OperatorName,
        reason: Option<String>,
        actor: AuditActor,
    ) -> Result<Option<ChangeRequest>, StoreError> {
        self.transition(request_id, AuditAction::DeclineChange, actor, move || {
            query_requests!(
                "UPDATE change_requests
                    SET status = 'DECLINED', sealed = NULL, decided_by = $2, decided_at = now(), reason = $3
                  WHERE request_id = $1
                    AND expires_at > now()
                    AND (status = 'WAITING' OR status = 'CONFIRMED' AND decided_at < now() - make_interval(secs => $4))
                RETURNING",
                "",
                request_id as _,
                operator as _,
                reason,
                EXECUTION_TIMEOUT_S,
            )
        })
        .await
    }

    /// Runs a statement that changes a request, and writes the audit entry in its transaction.
    async fn transition<F>(
        &self,
        request_id: ChangeRequestId,
        action: AuditAction,
        actor: AuditActor,
        change: impl FnOnce() -> Statement<F> + Send + 'static,
    ) -> Result<Option<ChangeRequest>, StoreError>
    where
        F: FnMut(PgRow) -> Result<ChangeRequest, sqlx::Error> + Send + 'static,
    {
        transaction!(self.0, action.into_str(), async |transaction| {
            let before = query_requests!(
                "SELECT",
                "FROM change_requests WHERE request_id = $1 FOR UPDATE",
                request_id as _
            );
            let before = before.fetch_optional(&mut **transaction).await?;
            let after = change().fetch_optional(&mut **transaction).await?;
            if let Some(after) = &after {
                let partner_id = find_partner(transaction, request_id).await?;
                audit_change(transaction, &actor, partner_id, action, before.as_ref(), after).await?;
            }
            Ok(after)
        })
    }

    /// Ends a confirmed request, unless it was confirmed again since `decided_at`.
    #[boxed]
    pub async fn finish(
        &self,
        request_id: ChangeRequestId,
        decided_at: Option<OffsetDateTime>,
        outcome: ChangeOutcome,
    ) -> Result<(), StoreError> {
        let (status, error_code) = match outcome {
            ChangeOutcome::Executed => (ChangeRequestStatus::Executed, None),
            ChangeOutcome::Refused(code) => (ChangeRequestStatus::Refused, Some(code)),
        };
        let statement = sqlx::query!(
            "UPDATE change_requests
                SET status = $2, error_code = $3, sealed = NULL
              WHERE request_id = $1 AND status = 'CONFIRMED' AND decided_at = $4",
            request_id as _,
            status as _,
            error_code,
            decided_at,
        );
        self.0.execute(statement).await
    }

    /// Ends the requests that were not decided in time, and those whose confirmed change has no outcome.
    #[boxed]
    pub async fn expire(&self) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE change_requests
                SET status = 'EXPIRED', sealed = NULL
              WHERE expires_at <= now()
                AND (status = 'WAITING' OR status = 'CONFIRMED' AND decided_at < now() - make_interval(secs => $1))",
            EXECUTION_TIMEOUT_S,
        );
        self.0.execute(statement).await
    }
}

/// The request of the same change by the same operator that still waits.
async fn find_waiting(
    connection: &mut PgConnection,
    new: &NewChangeRequest,
    is_same: impl Fn(ChangeRequestId, &[u8]) -> bool,
) -> Result<Option<ChangeRequest>, sqlx::Error> {
    let waiting = sqlx::query!(
        r#"SELECT request_id AS "request_id: ChangeRequestId", sealed AS "sealed!"
             FROM change_requests
            WHERE status = 'WAITING'
              AND expires_at > now()
              AND requested_by = $1
              AND kind = $2
              AND object = $3
            ORDER BY request_id"#,
        &new.requested_by as _,
        new.kind as _,
        new.object,
    );
    let mut waiting = waiting.fetch_all(&mut *connection).await?.into_iter();
    let same = waiting.find(|request| is_same(request.request_id, &request.sealed));
    let Some(same) = same else {
        return Ok(None);
    };
    let found = query_requests!(
        "SELECT",
        "FROM change_requests WHERE request_id = $1",
        same.request_id as _
    );
    found.fetch_optional(connection).await
}
