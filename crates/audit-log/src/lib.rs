//! Audit log: actor, action, time, request, and the state before and after.
//!
//! Each entry commits in the transaction of its change. The recorded states have types that hold no code and
//! no secret.

#![allow(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when an operation of the store fails"
)]

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;
use sqlx::{PgConnection, PgPool, Postgres, QueryBuilder};
use vouchsafe_database::boxed;
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::{restrict_period, to_bigint};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};
use vouchsafe_domain::ids::{CredentialId, PartnerId};

mod checkpoints;
mod export;
mod security_events;

pub use checkpoints::{AuditCheckpoint, read_archived_checkpoints, read_checkpoints};
pub use export::{EXPORT_LEASE_TIME, ExportContent, ExportLease, ExportLeaseOutcome};
pub use security_events::ForgedGrant;
pub use vouchsafe_domain::audit_log::AuditActor;

/// Longer than a transaction can last: each of its statements and pauses has a timeout.
const MAX_TRANSACTION: Duration = Duration::from_mins(2);

/// Recent changes of partners, credentials and products.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentChanges {
    /// The newest change older than any open transaction: no change before it appears any more. Zero if there
    /// is none.
    settled: i64,
    /// Ids of the later changes, newest first.
    ids: Vec<i64>,
}

/// Partners, credentials and products that changes have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedObjects {
    pub partners: Vec<PartnerId>,
    pub credentials: Vec<CredentialId>,
    pub has_products: bool,
}

impl RecentChanges {
    /// The changes that a node has not applied yet, which last applied `applied`; `None` if there may be
    /// others between the two.
    #[must_use]
    pub fn unapplied(&self, applied: &Self) -> Option<Vec<i64>> {
        let is_complete = self.settled == applied.settled || applied.ids.contains(&self.settled);
        let unapplied = self.ids.iter().copied().filter(|id| !applied.ids.contains(id));
        is_complete.then(|| unapplied.collect())
    }
}

/// Adds an entry that concerns no partner to the open transaction of `connection`. An action is object type
/// and verb, e.g. `product.put`; the subject is the id of the object.
pub async fn write(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: AuditAction,
    subject: &(impl Display + Sync + ?Sized),
    before: Option<&(impl Serialize + Sync)>,
    after: Option<&(impl Serialize + Sync)>,
) -> Result<(), sqlx::Error> {
    write_of_partner(connection, actor, None, action, subject, before, after).await
}

/// Same, for an entry about a partner or one of its objects: the partner finds it, also after the object is
/// deleted.
pub async fn write_of_partner(
    connection: &mut PgConnection,
    actor: &AuditActor,
    partner_id: impl Into<Option<PartnerId>>,
    action: AuditAction,
    subject: &(impl Display + Sync + ?Sized),
    before: Option<&(impl Serialize + Sync)>,
    after: Option<&(impl Serialize + Sync)>,
) -> Result<(), sqlx::Error> {
    let partner_id: Option<PartnerId> = partner_id.into();
    sqlx::query!(
        "INSERT INTO audit_log (operator, action, subject, before, after, trace_id, partner_id)
         VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6, $7)",
        actor.operator,
        action.into_str(),
        subject.to_string(),
        before.map(to_json_text).transpose()?,
        after.map(to_json_text).transpose()?,
        actor.trace_id.as_deref(),
        partner_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Serializes to text: `serde_json::Value` would convert amounts to floats.
fn to_json_text(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// State of an action that has none before or after.
pub const NO_STATE: Option<&()> = None;

/// The audit log and its checkpoints.
#[derive(Debug, Clone)]
pub struct AuditLog(Database);

impl AuditLog {
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self(database)
    }

    /// Returns the recent changes of partners, credentials and products. Two equal results mean that nothing
    /// changed between them. The newest id alone would not do: transactions do not commit in the order of
    /// their ids.
    #[boxed]
    pub async fn recent_changes(&self) -> Result<RecentChanges, StoreError> {
        let statement = sqlx::query_as!(
            RecentChanges,
            r#"WITH settled AS MATERIALIZED (
                SELECT max(a.audit_id) AS audit_id
                  FROM (
                        SELECT audit_id
                          FROM audit_log
                         WHERE action ~ '^(partner|credential|product)\.' -- same expression as in the index
                           AND at < now() - $1::interval
                         ORDER BY audit_id DESC
                         LIMIT 1
                       ) AS a
             )
             SELECT COALESCE(s.audit_id, 0) AS "settled!",
                    ARRAY(
                     SELECT a.audit_id
                       FROM audit_log AS a
                      WHERE a.action ~ '^(partner|credential|product)\.'
                        AND a.audit_id > COALESCE(s.audit_id, 0)
                      ORDER BY a.audit_id DESC
                    ) AS "ids!"
               FROM settled AS s"#,
            MAX_TRANSACTION as _,
        );
        self.0
            .run(|pool| async move { statement.fetch_one(&pool).await })
            .await
    }

    /// Returns what the changes with these ids changed.
    #[boxed]
    pub async fn changed_objects(&self, ids: Vec<i64>) -> Result<ChangedObjects, StoreError> {
        let statement = sqlx::query!(
            "SELECT action, subject FROM audit_log WHERE audit_id = ANY ($1)",
            &ids
        )
        .map(|row| (row.action, row.subject));
        let mut changed = ChangedObjects::default();
        for (action, subject) in self.0.fetch_all(statement).await? {
            // An entry without an id is none of the service's, and must not hide the changes after it.
            match action.split_once('.') {
                Some(("partner", _)) => changed.partners.extend(subject.parse::<PartnerId>()),
                Some(("credential", _)) => changed.credentials.extend(subject.parse::<CredentialId>()),
                _ => changed.has_products = true,
            }
        }
        Ok(changed)
    }

    /// Lists up to `limit` entries older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, StoreError> {
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
        "SELECT a.audit_id, a.at, a.operator, a.action, a.subject, a.before::text, a.after::text, a.trace_id, a.partner_id
           FROM audit_log AS a
          WHERE ",
    );
    push_restrictions(&mut query, &filter, before);
    query
        .push(" ORDER BY a.audit_id DESC LIMIT ")
        .push_bind(to_bigint(limit));
    let rows: Vec<AuditRow> = query.build_query_as().persistent(false).fetch_all(pool).await?;
    Ok(rows.into_iter().map(AuditRow::with_decimal_amounts).collect())
}

fn push_restrictions(query: &mut QueryBuilder<Postgres>, filter: &AuditFilter, before: Option<i64>) {
    query.push("true");
    restrict_period(filter.period, query, "a.at");
    for (condition, value) in [
        (" AND a.operator = ", &filter.operator),
        (" AND a.action = ", &filter.action),
        (" AND a.subject = ", &filter.subject),
    ] {
        if let Some(value) = value {
            query.push(condition).push_bind(value.clone());
        }
    }
    if filter.code_reads == Some(false) {
        // As in the index audit_log_without_code_reads.
        query.push(" AND a.action <> 'codes.retrieve'");
    }
    if let Some(partner_id) = filter.partner_id {
        query.push(" AND a.partner_id = ").push_bind(partner_id);
    }
    if let Some(before) = before {
        query.push(" AND a.audit_id < ").push_bind(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_applied_one_by_one_unless_some_may_be_missing() {
        let changes = |settled, ids: &[i64]| RecentChanges {
            settled,
            ids: ids.to_vec(),
        };
        let unapplied = |applied, newest: RecentChanges| newest.unapplied(&applied);
        let late = (changes(0, &[3]), changes(0, &[4, 3, 2]));
        assert_eq!(unapplied(late.0, late.1), Some(vec![4, 2]), "2 committed last");
        let settled = (changes(0, &[3, 2]), changes(3, &[5, 4]));
        assert_eq!(unapplied(settled.0, settled.1), Some(vec![5, 4]));
        let gap = (changes(1, &[3, 2]), changes(4, &[5]));
        assert_eq!(unapplied(gap.0, gap.1), None, "4 was not applied");
        assert_eq!(unapplied(changes(0, &[]), changes(0, &[1])), Some(vec![1]));
        assert_eq!(unapplied(changes(7, &[]), changes(7, &[])), Some(vec![]));
    }
}
