//! Archives of logs: what they contain, when a month is removed, and what a damaged archive or a kill leaves.

mod audit_log;
mod events;
mod reconciliation;

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use vouchsafe_archive::{
    ArchiveError, ArchivedMonth, Log, Policy, Removal, archive, check_archive, list_archives,
};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

use crate::verify::seeded_database::SeededDatabase;

/// A month that ended this many months before the current one began, as SQL.
fn month(months_ago: u32) -> String {
    format!("date_trunc('month', now() AT TIME ZONE 'UTC') - interval '{months_ago} months'")
}

/// Two attempts on each of two days of a month.
async fn insert_attempts(database: &Database, months_ago: u32) {
    let month = month(months_ago);
    let statements = format!(
        "SELECT create_attempt_partition_v1(({month} + n * interval '1 day')::date) FROM generate_series(0, 1) AS n;
         INSERT INTO delivery_attempts (webhook_id, attempt_id, partner_id, number, event_at, event, order_id, attempt, latency_ms,
                                        delivered, status, answer)
         SELECT gen_random_uuid(),
                (lpad(to_hex((extract(epoch FROM {month} + n * interval '12 hours') * 1000)::bigint), 12, '0')
                  || '70008000000000000000')::uuid,
                gen_random_uuid(), n, now(), 'order.created', gen_random_uuid(), 1, 7, false, 500, E'line\\nfeed \"quoted\"'
           FROM generate_series(0, 3) AS n"
    );
    database
        .connect()
        .await
        .execute(AssertSqlSafe(statements))
        .await
        .unwrap();
}

async fn count_attempts(database: &Database) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM delivery_attempts");
    count.fetch_one(&mut database.connect().await).await.unwrap()
}

async fn run(database: &Database, to: &Path, remove: bool) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    archive_log(&database.options(), Log::DeliveryAttempts, 1, to, removal(remove)).await
}

/// Archives the months of a log but the last `months`.
async fn archive_log(
    options: &PgConnectOptions,
    log: Log,
    months: u16,
    to: &Path,
    removal: Option<Removal>,
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    let policy = Policy { log, months };
    archive(options, policy, to, removal.as_ref(), &mut |_| {}).await
}

/// The rows that break an invariant, checked in ranges of so many rows.
async fn broken(database: &SeededDatabase, rows: u32) -> Vec<String> {
    let mut connection = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    let findings = verify::check_in_ranges(&mut connection, rows).await.unwrap();
    findings.into_iter().flat_map(|finding| finding.rows).collect()
}

fn removal(is_wanted: bool) -> Option<Removal> {
    is_wanted.then(|| Removal {
        checkpoint_key: Some(CheckpointKey::new([1; 32])),
    })
}

fn read_lines(file: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn assert_invariants(database: &Database) {
    let findings = verify::check(&mut database.connect().await).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn months_past_the_policy_are_archived_and_then_removed() {
    let database = Database::create().await;
    let to = TempDir::new().unwrap();
    for months_ago in 0..=3 {
        insert_attempts(&database, months_ago).await;
    }

    let archived = run(&database, to.path(), false).await.unwrap();
    assert_eq!(
        archived.len(),
        2,
        "the current month and the one before stay: {archived:?}"
    );
    assert!(archived.iter().all(|month| month.rows == 4 && !month.is_removed));
    assert_eq!(
        count_attempts(&database).await,
        16,
        "nothing is removed without the flag"
    );
    let files = &check_archive(&archived[0].directory).unwrap().manifest.files;
    assert_eq!(files.len(), 2, "a file per day");
    let rows = read_lines(&archived[0].directory.join(&files[1].name));
    let numbers: Vec<_> = rows.iter().map(|row| row["number"].as_i64().unwrap()).collect();
    assert!(numbers == [2, 3] || numbers == [3, 2], "{numbers:?}");
    assert_eq!(rows[0]["answer"], "line\nfeed \"quoted\"");

    let removed = run(&database, to.path(), true).await.unwrap();
    let manifests =
        |months: &[ArchivedMonth]| -> Vec<_> { months.iter().map(|month| month.manifest.clone()).collect() };
    assert_eq!(
        manifests(&removed),
        manifests(&archived),
        "nothing is written twice"
    );
    assert_eq!(count_attempts(&database).await, 8);
    assert_eq!(list_archives(to.path()).unwrap().len(), 2);
    assert_eq!(run(&database, to.path(), true).await.unwrap(), [], "all is done");
    let audited = sqlx::query_scalar(
        "SELECT sum((after ->> 'rows')::bigint)::bigint FROM audit_log WHERE action = 'archive.remove'",
    );
    let audited: i64 = audited.fetch_one(&mut database.connect().await).await.unwrap();
    assert_eq!(audited, 8);
    assert_invariants(&database).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_archive_removes_nothing() {
    let database = Database::create().await;
    insert_attempts(&database, 3).await;
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("a byte of a file", |file| {
            let mut bytes = fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("the end of a file", |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
        }),
        ("a file", |file| fs::remove_file(file).unwrap()),
        ("one file more", |file| {
            fs::write(file.with_file_name("more"), "").unwrap()
        }),
        ("the manifest", |file| {
            fs::remove_file(file.with_file_name("manifest.json")).unwrap()
        }),
        ("a manifest that fits other files", |file| {
            let path = file.with_file_name("manifest.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("vouchsafe-archive-1", "vouchsafe-archive-2")).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let to = TempDir::new().unwrap();
        let archived = run(&database, to.path(), false).await.unwrap();
        let directory = &archived[0].directory;
        let file = check_archive(directory).unwrap().manifest.files[0].name.clone();
        damage(&directory.join(file));
        assert!(check_archive(directory).is_err(), "{name}");
        let refused = run(&database, to.path(), true).await;
        assert!(
            matches!(refused, Err(ArchiveError::Unrecorded(_))),
            "{name}: {refused:?}"
        );
        assert_eq!(count_attempts(&database).await, 4, "{name}");
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_of_other_rows_is_not_the_recorded_one() {
    let database = Database::create().await;
    insert_attempts(&database, 3).await;
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let archived = run(&database, first.path(), false).await.unwrap();
    insert_attempts(&database, 3).await;
    let again = run(&database, second.path(), false).await.unwrap();
    assert_eq!(
        (archived[0].rows, again[0].rows),
        (4, 8),
        "a lost archive is written again"
    );
    let refused = run(&database, first.path(), true).await;
    assert!(matches!(refused, Err(ArchiveError::Unrecorded(_))), "{refused:?}");
    assert_eq!(count_attempts(&database).await, 8);

    insert_attempts(&database, 3).await;
    let refused = run(&database, second.path(), true).await;
    assert!(
        matches!(
            refused,
            Err(ArchiveError::RowsDiffer {
                found: 6,
                archived: 4,
                ..
            })
        ),
        "rows that came after the archive stay: {refused:?}"
    );
    assert_eq!(count_attempts(&database).await, 12);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_run_is_continued_and_its_archive_is_the_only_copy() {
    let database = Database::create().await;
    insert_attempts(&database, 3).await;
    let to = TempDir::new().unwrap();

    // Killed while it wrote, and after it gave the directory its name.
    let archived = run(&database, to.path(), false).await.unwrap();
    let directory = archived[0].directory.clone();
    let partial = directory.with_extension("partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("2020-01-01.ndjson.gz"), "half").unwrap();
    execute(&database, "DELETE FROM log_archives").await;
    assert_eq!(run(&database, to.path(), false).await.unwrap(), archived);
    assert_eq!(
        list_archives(to.path()).unwrap(),
        std::slice::from_ref(&directory)
    );

    // Killed between the partitions.
    let drop_one = "UPDATE log_archives SET removal_began_at = now();
        SELECT drop_archived_attempts_v1(date_trunc('month', now() AT TIME ZONE 'UTC' - interval '3 months')::date, 2)";
    execute(&database, drop_one).await;
    assert_eq!(count_attempts(&database).await, 2);
    let elsewhere = to.path().join("elsewhere");
    fs::rename(&directory, &elsewhere).unwrap();
    for remove in [false, true] {
        let refused = run(&database, to.path(), remove).await;
        assert!(matches!(refused, Err(ArchiveError::Replaced(_))), "{refused:?}");
    }
    assert_eq!(count_attempts(&database).await, 2);
    fs::rename(&elsewhere, &directory).unwrap();
    let removed = run(&database, to.path(), true).await.unwrap();
    assert_eq!((removed[0].rows, removed[0].is_removed), (4, true));
    assert_eq!(count_attempts(&database).await, 0);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_run_of_a_database_is_refused() {
    let database = Database::create().await;
    let mut other = database.connect().await;
    other
        .execute("SELECT pg_advisory_lock(x'56536172636800'::bigint << 8)")
        .await
        .unwrap();
    let to = TempDir::new().unwrap();
    let refused = run(&database, to.path(), true).await;
    assert!(matches!(refused, Err(ArchiveError::Locked)), "{refused:?}");
    drop(other);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_that_is_not_archived_is_not_dropped() {
    let database = Database::create().await;
    insert_attempts(&database, 3).await;
    let drop = format!("SELECT drop_archived_attempts_v1(({})::date, 2)", month(3));
    let refused = database
        .connect()
        .await
        .execute(AssertSqlSafe(drop))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("are not archived"), "{refused}");
    assert_eq!(count_attempts(&database).await, 4);
    database.remove().await;
}

async fn execute(database: &Database, statements: &'static str) {
    database.connect().await.execute(statements).await.unwrap();
}

async fn execute_as_superuser(database: &SeededDatabase, statements: &'static str) {
    let mut connection = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    connection.execute(statements).await.unwrap();
    connection.close().await.unwrap();
}
