//! Audit log: actor, action, time, request, and the state before and after.
//!
//! Each entry commits in the transaction of its change. The recorded states have types that hold no code and no secret.

use std::fmt::Display;

use serde::Serialize;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};

pub use vouchsafe_domain::audit_log::AuditActor;

use super::database::Database;
use super::period::restrict;

/// More than the number of changes that can be in flight at once.
const RECENT_CHANGES: i64 = 100;

/// Adds an entry to the open transaction of `connection`. An action is object type and verb, e.g. `partner.change`; the subject is
/// the id of the object.
pub(super) async fn write(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: &'static str,
    subject: &(impl Display + Sync + ?Sized),
    before: Option<&(impl Serialize + Sync)>,
    after: Option<&(impl Serialize + Sync)>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO audit_log (operator, action, subject, before, after, trace_id)
         VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6)",
        actor.operator,
        action,
        subject.to_string(),
        before.map(to_json_text).transpose()?,
        after.map(to_json_text).transpose()?,
        actor.trace_id.as_deref(),
    )
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
        let statement = sqlx::query!(
            r"SELECT audit_id
                FROM audit_log
               WHERE action ~ '^(partner|credential|product)\.' -- same expression as in the index
               ORDER BY audit_id DESC
               LIMIT $1",
            RECENT_CHANGES,
        )
        .map(|row| row.audit_id);
        self.0.fetch_all(statement).await
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
    // Not checked at compile time: the filter determines the text.
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
