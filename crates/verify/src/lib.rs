//! Database invariants (`vouchsafe verify`): queries that return the rows that violate them.
//!
//! A check is a sequence of short statements ([`scan`]), each on a snapshot of its own, so the service may
//! run meanwhile and an interrupted check continues where it stopped. Rows that are committed behind the
//! position of a scan are left to the next check. No query returns a code, a key or a secret.

/// An invariant of small tables: its name, the condition as a sentence, and a statement that returns a text
/// per violation. A further condition of an invariant has no sentence.
///
/// MATERIALIZED hides the limit from the planner, which would else expect to stop early and choose a slow
/// plan.
macro_rules! invariant {
    ($name:literal, $sql:literal) => {
        invariant!(@ $name, None, $sql)
    };
    ($name:literal, $description:literal, $sql:literal) => {
        invariant!(@ $name, Some($description), $sql)
    };
    (@ $name:literal, $description:expr, $sql:literal) => {
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

mod access;
mod audit_log;
mod codes;
mod deliveries;
mod events;
mod keys;
mod ledger;
mod order_totals;
mod orders;
mod reconciliation;
mod run;
mod scan;
mod stock;
mod stock_rows;
mod wallets;
mod webhooks;

use serde::Serialize;
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::QueryScalar;
use sqlx::{Connection as _, PgConnection, Postgres};

pub use self::run::{VerifyProgress, VerifyRun, VerifyState};
use self::scan::{Scan, Steps};

/// Maximum of violating rows to report per invariant.
const MAX_ROWS: usize = 20;

/// Settings of the connection. One process: the check leaves the other processors to the service.
const SETTINGS: [(&str, &str); 6] = [
    ("application_name", "vouchsafe verify"),
    ("default_transaction_read_only", "on"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
];

/// A condition on small tables, as [`invariant!`] declares it.
#[derive(Debug, Clone, Copy)]
struct Invariant {
    name: &'static str,
    description: Option<&'static str>,
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

const SCANS: &[Scan] = &[
    orders::SCAN,
    ledger::SCAN,
    events::SCAN,
    wallets::SCAN,
    order_totals::SCAN,
    stock_rows::SCAN,
    codes::SCAN,
    codes::BLIND_INDEX_SCAN,
    codes::NONCE_SCAN,
    keys::VOUCHER_SCAN,
    keys::SCAN,
    keys::BOOKING_SCAN,
    audit_log::SCAN,
    audit_log::PARTNER_SCAN,
    audit_log::TIME_SCAN,
    audit_log::CHECKPOINT_SCAN,
    audit_log::ENTRY_SCAN,
    audit_log::DECISION_SCAN,
    audit_log::BOOKING_SCAN,
    Scan::whole("stock tables", stock::INVARIANTS),
    Scan::whole("access tables", access::INVARIANTS),
    Scan::whole("webhook tables", webhooks::INVARIANTS),
    Scan::whole("delivery tables", deliveries::INVARIANTS),
    Scan::whole("reconciliation tables", reconciliation::INVARIANTS),
];

/// Names and descriptions of all invariants.
pub fn invariants() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCANS.iter().flat_map(|scan| {
        let conditions = scan
            .conditions
            .iter()
            .filter_map(|&(name, description)| Some((name, description?)));
        let whole = match scan.steps {
            Steps::Whole(invariants) => invariants,
            Steps::Ranges { .. } | Steps::Slices(_) => &[],
        };
        let whole = whole
            .iter()
            .filter_map(|whole| Some((whole.name, whole.description?)));
        conditions.chain(whole)
    })
}

/// Opens a connection for a check.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
pub async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    vouchsafe_database::open(&options.clone().options(SETTINGS)).await
}

/// How far a standby is.
#[derive(Debug)]
pub struct StandbyProgress {
    pub is_standby: bool,
    /// Time of the last commit that it has replayed since its start.
    pub replayed_until: Option<String>,
}

/// Reads how far a standby is.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
pub async fn read_standby_progress(connection: &mut PgConnection) -> Result<StandbyProgress, sqlx::Error> {
    sqlx::query_as!(
        StandbyProgress,
        r#"SELECT pg_is_in_recovery() AS "is_standby!",
                  to_char(pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS replayed_until"#
    )
    .fetch_one(connection)
    .await
}

/// Checks every invariant.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or is not a database of this service.
pub async fn verify(options: &PgConnectOptions) -> Result<Vec<Finding>, sqlx::Error> {
    let mut connection = connect(options).await?;
    let findings = run_to_end(&mut connection, VerifyRun::default()).await?;
    connection.close().await?;
    Ok(findings)
}

/// Checks every invariant in the current transaction of this connection.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or is not a database of this service.
pub async fn check(connection: &mut PgConnection) -> Result<Vec<Finding>, sqlx::Error> {
    check_run(connection, VerifyRun::default()).await
}

/// Like [`check`], with so many rows per range.
///
/// # Errors
/// Those of [`check`].
pub async fn check_in_ranges(connection: &mut PgConnection, rows: u32) -> Result<Vec<Finding>, sqlx::Error> {
    check_run(connection, VerifyRun::with_rows_per_step(rows)).await
}

async fn check_run(connection: &mut PgConnection, run: VerifyRun) -> Result<Vec<Finding>, sqlx::Error> {
    // The transaction takes back the planner settings.
    let mut transaction = connection.begin().await?;
    let findings = run_to_end(&mut transaction, run).await?;
    transaction.rollback().await?;
    Ok(findings)
}

async fn run_to_end(connection: &mut PgConnection, mut run: VerifyRun) -> Result<Vec<Finding>, sqlx::Error> {
    while run.step(connection).await?.is_some() {}
    Ok(run.findings())
}

fn to_bigint(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
