//! `verify` reports exactly the broken invariants.
//!
//! Each invariant is broken by SQL in a transaction on a real database, with constraints bypassed, and rolled
//! back.

mod audit_breakages;
mod breakages;
mod delivery_breakages;
pub(crate) mod seeded_database;

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_verify::{self as verify, Finding, VerifyRun};

use self::breakages::BREAKAGES;
use self::delivery_breakages as of_deliveries;
use self::seeded_database::SeededDatabase;

/// Rows per range: a range for each row, and one range for all.
const RANGES: [u32; 2] = [1, 1_000];

fn broken_names(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings
        .iter()
        .filter(|finding| !finding.holds)
        .map(|finding| finding.name)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn seeded_database_holds_all_invariants() {
    let database_ = SeededDatabase::create().await;
    let findings = verify::verify(&database_.options()).await.unwrap();
    let rows: Vec<_> = findings.iter().flat_map(|finding| &finding.rows).collect();
    assert!(broken_names(&findings).is_empty(), "{rows:?}");
    assert_eq!(findings.len(), verify::invariants().count());
    let mut connection = PgConnection::connect_with(&database_.options()).await.unwrap();
    for rows in [1, 2, 3] {
        let findings = verify::check_in_ranges(&mut connection, rows).await.unwrap();
        let violations: Vec<_> = findings.iter().flat_map(|finding| &finding.rows).collect();
        assert!(violations.is_empty(), "in ranges of {rows} rows: {violations:?}");
    }
    connection.close().await.unwrap();
    database_.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_invariant_is_reported() {
    let database_ = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    for (name, statements) in BREAKAGES.iter().chain(audit_breakages::BREAKAGES) {
        for rows in RANGES {
            let reported = broken_after(&mut connection, name, statements, rows).await;
            assert!(
                reported.contains(name),
                "{name} is broken but not reported in ranges of {rows} rows; reported: {reported:?}"
            );
        }
    }
    connection.close().await.unwrap();
    database_.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_delivery_invariant_is_reported_alone() {
    let database_ = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    for (name, statements) in of_deliveries::BREAKAGES {
        let reported = broken_after(&mut connection, name, statements, RANGES[0]).await;
        assert_eq!(reported, BTreeSet::from([*name]), "after {statements:?}");
    }
    connection.close().await.unwrap();
    database_.remove().await;
}

/// Runs the statements, returns the broken invariants and rolls back.
async fn broken_after(
    connection: &mut PgConnection,
    name: &str,
    statements: &[&'static str],
    rows: u32,
) -> BTreeSet<&'static str> {
    let mut transaction = connection.begin().await.unwrap();
    // Disables triggers and foreign keys; a breakage drops other constraints itself.
    transaction
        .execute("SET LOCAL session_replication_role = replica")
        .await
        .unwrap();
    for statement in statements {
        let result = transaction.execute(AssertSqlSafe(*statement)).await;
        result.unwrap_or_else(|error| panic!("{name}: {statement}: {error}"));
    }
    let findings = verify::check_in_ranges(&mut transaction, rows).await.unwrap();
    transaction.rollback().await.unwrap();
    broken_names(&findings)
}

/// Sets the number of allocations that the planner knows, from which the number of slices follows.
fn set_rows(rows: u32) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "UPDATE pg_class SET reltuples = {rows} WHERE oid = 'allocations'::regclass"
    ))
}

/// Saves and reloads the state after every step.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_check_continues_at_its_position() {
    let database_ = SeededDatabase::create().await;
    let mut superuser = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    superuser
        .execute("UPDATE wallets SET balance = balance + 1")
        .await
        .unwrap();
    superuser.execute(set_rows(2_500_000)).await.unwrap();
    let resume = async |saved: Option<&str>| {
        let mut connection = verify::connect(&database_.options()).await.unwrap();
        let saved = saved.map(|text| serde_json::from_str(text).unwrap());
        let resumed = VerifyRun::resume(&mut connection, saved).await.unwrap();
        (connection, resumed)
    };
    let mut saved: Option<String> = None;
    let mut scans = Vec::new();
    let findings = loop {
        let (mut connection, resumed) = resume(saved.as_deref()).await;
        let mut run = resumed.unwrap();
        let step = run.step(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let Some(progress) = step else {
            break run.findings();
        };
        scans.push(progress.scan);
        if progress.scan == "voucher ids" {
            superuser.execute(set_rows(0)).await.unwrap();
        }
        saved = Some(serde_json::to_string(run.state()).unwrap());
    };
    assert_eq!(broken_names(&findings), BTreeSet::from(["money.conservation"]));
    // All slices of the first step are read, although the table shrank after it.
    assert_eq!(
        scans.iter().filter(|scan| **scan == "voucher ids").count(),
        4,
        "{scans:?}"
    );
    scans.dedup();
    let unique: BTreeSet<_> = scans.iter().collect();
    assert_eq!(scans.len(), unique.len(), "no scan begins twice: {scans:?}");

    let other = saved.unwrap().replace("sandbox", "production");
    let (other_connection, resumed) = resume(Some(&other)).await;
    assert!(resumed.is_err(), "a check of another database is not continued");
    other_connection.close().await.unwrap();
    superuser.close().await.unwrap();
    database_.remove().await;
}

#[test]
fn each_invariant_has_a_breakage() {
    let all: BTreeSet<_> = verify::invariants().map(|(name, _)| name).collect();
    let broken: BTreeSet<_> = BREAKAGES
        .iter()
        .chain(audit_breakages::BREAKAGES)
        .chain(of_deliveries::BREAKAGES)
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(broken, all);
    assert_eq!(
        all.len(),
        verify::invariants().count(),
        "invariant names must be unique"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_database_is_an_error() {
    let database_ = SeededDatabase::create().await;
    let other_database = database_.superuser_options().database("postgres");
    assert!(verify::verify(&other_database).await.is_err());
    database_.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_shows_first_rows_only() {
    let database_ = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    let insert = "INSERT INTO lanes SELECT 'nobody', i, 1, 0 FROM generate_series(1, 100) AS i";
    connection.execute(insert).await.unwrap();
    let findings = verify::verify(&database_.options()).await.unwrap();
    let lanes = findings
        .iter()
        .find(|finding| finding.name == "fence.lanes")
        .unwrap();
    assert_eq!((lanes.rows.len(), lanes.has_more, lanes.holds), (20, true, false));
    connection.close().await.unwrap();
    database_.remove().await;
}

#[test]
fn reliability_page_lists_delivery_invariants() {
    let page = include_str!("../../docs/reliability.md");
    let listed = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed: BTreeSet<_> = listed
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("webhook.") || name.starts_with("delivery."))
        .collect();
    let checked: BTreeSet<_> = of_deliveries::BREAKAGES.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, checked);
}

/// Responses were stored while the database's clock was an hour fast.
#[tokio::test(flavor = "multi_thread")]
async fn clock_that_was_set_back_breaks_no_invariant() {
    let database_ = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    let responses = "UPDATE idempotency_keys SET expires_at = now() + interval '25 hours' WHERE status = 202";
    let renewals = "UPDATE nodes SET latest_clock = now() + interval '1 hour'";
    for (statements, broken) in [
        (vec![responses], Some("key.time")),
        (vec![responses, renewals], None),
    ] {
        let reported = broken_after(&mut connection, "key.time", &statements, RANGES[1]).await;
        assert_eq!(reported, broken.into_iter().collect(), "after {statements:?}");
    }
    connection.close().await.unwrap();
    database_.remove().await;
}
