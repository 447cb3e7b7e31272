//! Does `verify` see each invariant that is broken, and none that is not?
//!
//! Each is broken on a real database, by hand and past every constraint, in a transaction that is undone afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it cannot go on"
)]

#[path = "verify/breakages.rs"]
mod breakages;
#[path = "verify/delivery_breakages.rs"]
mod delivery_breakages;
#[path = "support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;
#[path = "verify/seeded_database.rs"]
mod seeded_database;

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe::store::verify::{self, Finding};

use crate::breakages::BREAKAGES;
use crate::delivery_breakages as of_deliveries;
use crate::seeded_database::SeededDatabase;

fn broken_names(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings
        .iter()
        .filter(|finding| !finding.holds)
        .map(|finding| finding.name)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lively_database_keeps_all_of_them() {
    let world = SeededDatabase::create().await;
    let findings = verify::verify(&world.options()).await.unwrap();
    let rows: Vec<_> = findings.iter().flat_map(|finding| &finding.rows).collect();
    assert!(broken_names(&findings).is_empty(), "{rows:?}");
    assert_eq!(findings.len(), verify::invariants().count());
    world.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_one_that_is_broken_is_seen() {
    let world = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&world.superuser_options())
        .await
        .unwrap();
    for (name, statements) in BREAKAGES {
        let seen = broken_after(&mut connection, name, statements).await;
        assert!(
            seen.contains(name),
            "{name} is broken and was not seen; seen: {seen:?}"
        );
    }
    connection.close().await.unwrap();
    world.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_of_endpoints_and_deliveries_is_seen_as_that_and_as_nothing_else() {
    let world = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&world.superuser_options())
        .await
        .unwrap();
    for (name, statements) in of_deliveries::BREAKAGES {
        let seen = broken_after(&mut connection, name, statements).await;
        assert_eq!(seen, BTreeSet::from([*name]), "after {statements:?}");
    }
    connection.close().await.unwrap();
    world.remove().await;
}

/// What is seen to be broken after these statements, which are undone.
async fn broken_after(
    connection: &mut PgConnection,
    name: &str,
    statements: &[&'static str],
) -> BTreeSet<&'static str> {
    let mut transaction = connection.begin().await.unwrap();
    // Triggers and foreign keys look away; constraints that would not are dropped by the break itself.
    transaction
        .execute("SET LOCAL session_replication_role = replica")
        .await
        .unwrap();
    for statement in statements {
        let done = transaction.execute(AssertSqlSafe(*statement)).await;
        done.unwrap_or_else(|error| panic!("{name}: {statement}: {error}"));
    }
    let findings = verify::check(&mut transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    broken_names(&findings)
}

#[test]
fn there_is_a_break_for_each_of_them() {
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
        "a name stands for one invariant"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_none_of_ours_is_an_error() {
    let world = SeededDatabase::create().await;
    let elsewhere = world.superuser_options().database("postgres");
    assert!(verify::verify(&elsewhere).await.is_err());
    world.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_rows_are_shown() {
    let world = SeededDatabase::create().await;
    let mut connection = PgConnection::connect_with(&world.superuser_options())
        .await
        .unwrap();
    let many = "INSERT INTO lanes SELECT 'nobody', i, 1, 0 FROM generate_series(1, 100) AS i";
    connection.execute(many).await.unwrap();
    let findings = verify::verify(&world.options()).await.unwrap();
    let lanes = findings
        .iter()
        .find(|finding| finding.name == "fence.lanes")
        .unwrap();
    assert_eq!((lanes.rows.len(), lanes.more, lanes.holds), (20, true, false));
    connection.close().await.unwrap();
    world.remove().await;
}

#[test]
fn the_page_on_reliability_lists_those_of_endpoints_and_deliveries() {
    let page = include_str!("../docs/reliability.md");
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
