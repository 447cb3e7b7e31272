//! The trail: who did what, when, in which request, what it was before and what after.
//!
//! Rule: the entry is written in the transaction of the change it tells of, so neither is there without the other. What
//! is written comes from types that hold no code and no secret.

use serde::Serialize;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use time::OffsetDateTime;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::BookedBy;

use super::{Period, PgStore};

/// Who is behind a write, and the request it came with. Writes of operators take one, and those of partners that change
/// who has access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Who: an operator's name, or the id of a partner.
    pub operator: String,
    /// In which request; `None` outside of one.
    pub trace_id: Option<String>,
}

impl By {
    /// The service itself, at its start.
    #[must_use]
    pub fn service() -> Self {
        Self {
            operator: "service".to_owned(),
            trace_id: None,
        }
    }

    /// A partner, on its own behalf, in this request.
    #[must_use]
    pub fn partner(partner_id: PartnerId, trace_id: String) -> Self {
        Self {
            operator: partner_id.to_string(),
            trace_id: Some(trace_id),
        }
    }
}

impl From<By> for BookedBy {
    fn from(By { operator, trace_id }: By) -> Self {
        Self { operator, trace_id }
    }
}

/// An entry of the trail, as it is read.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct AuditRow {
    /// Its number: ascending, with gaps where a transaction was undone.
    pub audit_id: i64,
    /// When its transaction began.
    pub at: OffsetDateTime,
    pub operator: String,
    /// What was done, e.g. `partner.change`.
    pub action: String,
    /// To what: an id.
    pub subject: String,
    /// How it was, as JSON text.
    pub before: Option<String>,
    /// How it is since, as JSON text.
    pub after: Option<String>,
    pub trace_id: Option<String>,
}

/// Which entries are asked for; `None` is any.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub operator: Option<String>,
    pub action: Option<String>,
    pub subject: Option<String>,
    pub period: Period,
}

/// How many changes are compared: more than can be under way at once.
const NEWEST_CHANGES: i64 = 100;

/// What is done to what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deed<'a> {
    /// A noun and a verb, e.g. `partner.change`.
    pub action: &'static str,
    pub subject: &'a str,
}

/// Writes an entry into the transaction that `connection` has open.
pub(super) async fn write(
    connection: &mut PgConnection,
    by: &By,
    deed: Deed<'_>,
    before: Option<&(impl Serialize + Sync)>,
    after: Option<&(impl Serialize + Sync)>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO audit_log (operator, action, subject, before, after, trace_id)
         VALUES ($1, $2, $3, $4::jsonb, $5::jsonb, $6)",
    )
    .bind(&by.operator)
    .bind(deed.action)
    .bind(deed.subject)
    .bind(before.map(text).transpose()?)
    .bind(after.map(text).transpose()?)
    .bind(&by.trace_id)
    .execute(connection)
    .await
    .map(drop)
}

/// As text, since a JSON value in memory would turn amounts into floats.
fn text(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// For a change that has no earlier state.
pub(super) const NOTHING: Option<&()> = None;

impl PgStore {
    /// Names the newest changes that every node has to know of: two answers are the same when nothing was changed
    /// between them. More than the newest number, since transactions do not commit in the order of their numbers.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn newest_changes(&self) -> Result<Vec<i64>, sqlx::Error> {
        self.run(|pool| async move {
            sqlx::query_scalar(
                r"SELECT audit_id
                   FROM audit_log
                  WHERE action ~ '^(partner|credential|product)\.' -- as the index says it
                  ORDER BY audit_id DESC
                  LIMIT $1",
            )
            .bind(NEWEST_CHANGES)
            .fetch_all(&pool)
            .await
        })
        .await
    }

    /// Up to `limit` entries, newest first, older than `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_audit(
        &self,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, filter, before, limit).await })
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
    filter.period.restrict(&mut query, "at");
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
        .push_bind(rows(limit));
    query.build_query_as().persistent(false).fetch_all(pool).await
}

/// A number of rows, as SQL counts them.
pub(super) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
