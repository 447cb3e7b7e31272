//! Database invariants (`vouchsafe verify`): each is a query that returns the rows that violate it.
//!
//! All queries read one snapshot, so the service may run meanwhile. No query returns a code, a key or a secret. The queries read
//! whole tables: run them occasionally, not every minute.

/// An invariant: its name, the condition as a sentence, and a statement that returns a text per violation.
///
/// MATERIALIZED hides the limit from the planner, which would else expect to stop early and choose a slow plan.
macro_rules! invariant {
    ($name:literal, $description:literal, $sql:literal) => {
        Invariant {
            name: $name,
            description: $description,
            violations: || {
                sqlx::query_scalar!(
                    "WITH broken (what) AS MATERIALIZED ("
                        + $sql
                        + r#") SELECT broken.what AS "what!" FROM broken LIMIT $1"#,
                    to_bigint(MAX_ROWS + 1),
                )
            },
        }
    };
}

mod audit;
mod deliveries;
mod money;
mod orders;
mod reconciliation;
mod stock;
mod webhooks;

use serde::Serialize;
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::QueryScalar;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, Postgres};

use crate::audit::to_bigint;

/// Maximum of violating rows to report per invariant.
const MAX_ROWS: usize = 20;

/// Planner settings for joins of whole tables with millions of rows. Without statistics the planner expects few rows and picks
/// nested loops, with which 40,000 orders take a quarter of an hour.
const SETTINGS: [&str; 3] = [
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL enable_nestloop = off",
];

/// A condition that always holds.
#[derive(Debug, Clone, Copy)]
pub struct Invariant {
    pub name: &'static str,
    /// The condition as a sentence.
    pub description: &'static str,
    violations: fn() -> QueryScalar<'static, Postgres, String, PgArguments>,
}

/// Result of checking an invariant.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub description: &'static str,
    pub holds: bool,
    /// The first violations.
    pub rows: Vec<String>,
    /// Whether there are more violations.
    pub has_more: bool,
}

pub fn invariants() -> impl Iterator<Item = &'static Invariant> {
    [
        money::INVARIANTS,
        orders::INVARIANTS,
        stock::INVARIANTS,
        audit::INVARIANTS,
        webhooks::INVARIANTS,
        deliveries::INVARIANTS,
        reconciliation::INVARIANTS,
    ]
    .into_iter()
    .flatten()
}

/// Checks every invariant on one snapshot of the database.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or is not a database of this service.
pub async fn verify(options: &PgConnectOptions) -> Result<Vec<Finding>, sqlx::Error> {
    let mut connection = options.connect().await?;
    let mut snapshot = connection
        .begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    for setting in SETTINGS {
        // Not checked at compile time: the macro takes a literal only.
        sqlx::query(setting).execute(&mut *snapshot).await?;
    }
    let findings = check(&mut snapshot).await?;
    snapshot.rollback().await?;
    connection.close().await?;
    Ok(findings)
}

/// Checks every invariant in the current transaction of this connection.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or is not a database of this service.
pub async fn check(connection: &mut PgConnection) -> Result<Vec<Finding>, sqlx::Error> {
    let mut findings = Vec::new();
    for invariant in invariants() {
        findings.push(invariant.check(connection).await?);
    }
    Ok(findings)
}

impl Invariant {
    async fn check(&self, connection: &mut PgConnection) -> Result<Finding, sqlx::Error> {
        let mut rows = (self.violations)().fetch_all(connection).await?;
        let has_more = rows.len() > MAX_ROWS;
        rows.truncate(MAX_ROWS);
        Ok(Finding {
            name: self.name,
            description: self.description,
            holds: rows.is_empty(),
            rows,
            has_more,
        })
    }
}
