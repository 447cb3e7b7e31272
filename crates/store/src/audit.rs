//! Audit log: actor, action, time, request, and the state before and after.
//!
//! Each entry commits in the transaction of its change. The recorded states have types that hold no code and no secret.

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};
use vouchsafe_domain::ids::{CredentialId, InvalidId, PartnerId};

pub use vouchsafe_domain::audit_log::AuditActor;

use super::database::Database;
use super::period::restrict;

/// More than the number of changes that can be in flight at once.
const RECENT_CHANGES: i64 = 100;

/// Partners, credentials and products that changes have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedObjects {
    pub partners: Vec<PartnerId>,
    pub credentials: Vec<CredentialId>,
    pub has_products: bool,
}

/// The changes that a node has not applied yet; `None` if these are perhaps not all, because none of the most recent ones is
/// known to it.
#[must_use]
pub fn unapplied_changes(applied: &[i64], newest: &[i64]) -> Option<Vec<i64>> {
    let unapplied: Vec<i64> = newest
        .iter()
        .copied()
        .filter(|id| !applied.contains(id))
        .collect();
    let is_complete = unapplied.len() < newest.len() || to_bigint(newest.len()) < RECENT_CHANGES;
    is_complete.then_some(unapplied)
}

fn parse_id<Id: FromStr<Err = InvalidId>>(subject: &str) -> Result<Id, sqlx::Error> {
    subject
        .parse()
        .map_err(|error: InvalidId| sqlx::Error::Decode(error.into()))
}

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

    /// Returns what the changes with these ids changed.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn changed_objects(&self, ids: Vec<i64>) -> Result<ChangedObjects, sqlx::Error> {
        let statement = sqlx::query!(
            "SELECT action, subject FROM audit_log WHERE audit_id = ANY ($1)",
            &ids
        )
        .map(|row| (row.action, row.subject));
        let mut changed = ChangedObjects::default();
        for (action, subject) in self.0.fetch_all(statement).await? {
            match action.split_once('.') {
                Some(("partner", _)) => changed.partners.push(parse_id(&subject)?),
                Some(("credential", _)) => changed.credentials.push(parse_id(&subject)?),
                _ => changed.has_products = true,
            }
        }
        Ok(changed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_applied_one_by_one_unless_some_may_be_missing() {
        assert_eq!(unapplied_changes(&[3, 2], &[5, 4, 3, 2]), Some(vec![5, 4]));
        assert_eq!(
            unapplied_changes(&[3], &[4, 3, 2]),
            Some(vec![4, 2]),
            "2 committed last"
        );
        assert_eq!(unapplied_changes(&[], &[1]), Some(vec![1]));
        let window = |last: i64| (last - RECENT_CHANGES + 1..=last).rev().collect::<Vec<_>>();
        assert_eq!(unapplied_changes(&window(100), &window(101)), Some(vec![101]));
        assert_eq!(
            unapplied_changes(&window(100), &window(200)),
            None,
            "the next may be missing"
        );
    }
}
