//! Does the database keep what must always hold? Every invariant as a query that returns what breaks it.
//!
//! Rule: all queries see one snapshot, so the service may go on meanwhile; and no query returns a code, a key or a
//! secret. What came in over years is looked at whole: this is for an operator who wants to be sure, not for every minute.

mod deliveries;
mod money;
mod orders;
mod reconciliation;
mod stock;
mod trails;
mod webhooks;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};

/// How many rows of a broken invariant are shown.
const MAX_ROWS: usize = 20;

/// Millions of rows are sorted and counted, by one who waits for it. Whole tables meet here, and the planner may know nothing
/// of them yet: where it hopes for a few rows and loops over them, forty thousand orders take a quarter of an hour.
const SETTINGS: [&str; 3] = [
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL enable_nestloop = off",
];

/// Something that always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariant {
    pub name: &'static str,
    /// What holds, as a sentence.
    pub says: &'static str,
    /// Returns a text for each row that breaks it.
    sql: &'static str,
}

/// What was found of one invariant.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub says: &'static str,
    pub holds: bool,
    /// The first rows that break it.
    pub rows: Vec<String>,
    /// Whether there are more.
    pub more: bool,
}

/// All invariants.
pub fn invariants() -> impl Iterator<Item = &'static Invariant> {
    [
        money::INVARIANTS,
        orders::INVARIANTS,
        stock::INVARIANTS,
        trails::INVARIANTS,
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
/// [`sqlx::Error`] when the database does not answer, or is none of ours.
pub async fn verify(options: &PgConnectOptions) -> Result<Vec<Finding>, sqlx::Error> {
    let mut connection = options.connect().await?;
    let mut snapshot = connection
        .begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    for setting in SETTINGS {
        sqlx::query(setting).execute(&mut *snapshot).await?;
    }
    let findings = check(&mut snapshot).await?;
    snapshot.rollback().await?;
    connection.close().await?;
    Ok(findings)
}

/// Checks every invariant on what this connection sees.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or is none of ours.
pub async fn check(connection: &mut PgConnection) -> Result<Vec<Finding>, sqlx::Error> {
    let mut findings = Vec::new();
    for invariant in invariants() {
        findings.push(invariant.check(connection).await?);
    }
    Ok(findings)
}

impl Invariant {
    async fn check(&self, connection: &mut PgConnection) -> Result<Finding, sqlx::Error> {
        // Materialised: a limit that the planner saw would make it hope for an early end, which never comes.
        let some = format!(
            "WITH broken (what) AS MATERIALIZED ({}) SELECT broken.what FROM broken LIMIT {}",
            self.sql,
            MAX_ROWS + 1
        );
        // Put together from constants of this program.
        let mut rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(some))
            .fetch_all(connection)
            .await?;
        let more = rows.len() > MAX_ROWS;
        rows.truncate(MAX_ROWS);
        Ok(Finding {
            name: self.name,
            says: self.says,
            holds: rows.is_empty(),
            rows,
            more,
        })
    }
}
