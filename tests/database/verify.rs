//! `verify` reports exactly the broken invariants.
//!
//! Each invariant is broken by SQL in a transaction on a real database, with constraints bypassed, and rolled back.

mod breakages;
mod delivery_breakages;
pub(crate) mod seeded_database;

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_store::verify::{self, Finding};

use self::breakages::BREAKAGES;
use self::delivery_breakages as of_deliveries;
use self::seeded_database::SeededDatabase;

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
    database_.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_invariant_is_reported() {
    let database_ = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&database_.superuser_options())
        .await
        .unwrap();
    for (name, statements) in BREAKAGES {
        let reported = broken_after(&mut connection, name, statements).await;
        assert!(
            reported.contains(name),
            "{name} is broken but not reported; reported: {reported:?}"
        );
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
        let reported = broken_after(&mut connection, name, statements).await;
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
    let findings = verify::check(&mut transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    broken_names(&findings)
}

#[test]
fn each_invariant_has_a_breakage() {
    let all: BTreeSet<_> = verify::invariants().map(|invariant| invariant.name).collect();
    let broken: BTreeSet<_> = BREAKAGES
        .iter()
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
