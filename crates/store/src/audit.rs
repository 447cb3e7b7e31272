//! Audit log: actor, action, time, request, and the state before and after.
//!
//! Each entry commits in the transaction of its change. The recorded states have types that hold no code and no secret.

use serde::Serialize;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::OperatorIdentity;

use super::database::Database;
use super::period::restrict;

/// The actor of an audited write and its request. Operators' writes need one, and so do partners' changes of access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// An operator's name, a partner's id, or `service`.
    pub operator: String,
    /// Trace id of the request; `None` outside of a request.
    pub trace_id: Option<String>,
}

impl AuditActor {
    /// The service itself.
    #[must_use]
    pub fn service() -> Self {
        Self {
            operator: "service".to_owned(),
            trace_id: None,
        }
    }

    /// A partner that acts on its own behalf.
    #[must_use]
    pub fn partner(partner_id: PartnerId, trace_id: String) -> Self {
        Self {
            operator: partner_id.to_string(),
            trace_id: Some(trace_id),
        }
    }
}

impl From<AuditActor> for OperatorIdentity {
    fn from(AuditActor { operator, trace_id }: AuditActor) -> Self {
        Self { operator, trace_id }
    }
}

/// More than the number of changes that can be in flight at once.
const RECENT_CHANGES: i64 = 100;

/// The name of an action and the id of its object.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditAction<'a> {
    /// Object type and verb, e.g. `partner.change`.
    pub name: &'static str,
    pub subject: &'a str,
}

/// Adds an entry to the open transaction of `connection`.
pub(super) async fn write(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: AuditAction<'_>,
    before: Option<&(impl Serialize + Sync)>,
    after: Option<&(impl Serialize + Sync)>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO audit_log (operator, action, subject, before, after, trace_id)
         VALUES ($1, $2, $3, $4::jsonb, $5::jsonb, $6)",
    )
    .bind(&actor.operator)
    .bind(action.name)
    .bind(action.subject)
    .bind(before.map(to_json_text).transpose()?)
    .bind(after.map(to_json_text).transpose()?)
    .bind(&actor.trace_id)
    .execute(connection)
    .await
    .map(drop)
}

/// Serializes to text: `serde_json::Value` would convert amounts to floats.
fn to_json_text(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// For an action without a state before or after.
pub(super) const NO_STATE: Option<&()> = None;

/// The audit log and its checkpoints.
#[derive(Debug, Clone)]
pub struct AuditLog(pub(super) Database);

impl AuditLog {
    /// Returns the ids of the most recent changes to partners, credentials and products. Two equal results mean that nothing
    /// changed between them. The newest id alone would not do: transactions do not commit in the order of their ids.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn recent_change_ids(&self) -> Result<Vec<i64>, sqlx::Error> {
        self.0
            .run(|pool| async move {
                sqlx::query_scalar(
                    r"SELECT audit_id
                   FROM audit_log
                  WHERE action ~ '^(partner|credential|product)\.' -- same expression as in the index
                  ORDER BY audit_id DESC
                  LIMIT $1",
                )
                .bind(RECENT_CHANGES)
                .fetch_all(&pool)
                .await
            })
            .await
    }

    /// Lists up to `limit` entries older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, sqlx::Error> {
        self.0
            .run(move |pool| async move { list(&pool, filter, before, limit).await })
            .await
    }
}

async fn list(
    pool: &PgPool,
    filter: AuditFilter,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<AuditRow>, sqlx::Error> {
    let mut query = QueryBuilder::new(
        "SELECT audit_id, at, operator, action, subject, before::text, after::text, trace_id
           FROM audit_log
          WHERE true",
    );
    restrict(filter.period, &mut query, "at");
    for (condition, value) in [
        (" AND operator = ", filter.operator),
        (" AND action = ", filter.action),
        (" AND subject = ", filter.subject),
    ] {
        if let Some(value) = value {
            query.push(condition).push_bind(value);
        }
    }
    if let Some(before) = before {
        query.push(" AND audit_id < ").push_bind(before);
    }
    query
        .push(" ORDER BY audit_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    query.build_query_as().persistent(false).fetch_all(pool).await
}

/// Converts a count or limit to an SQL `bigint`.
pub(super) fn to_bigint(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
