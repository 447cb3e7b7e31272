//! Batches of the audit export, and the lease and position of an endpoint.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, checkpoint_hash};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::{ExportContent, ExportLease, ExportLeaseOutcome, PgStore};
use vouchsafe_test_harness::Database;

const ENDPOINT: &str = "keyed hash of a URL";

/// Characters that JSON escapes, and numbers that a parser of floating-point numbers would change.
const INSERT_SPECIAL: &str = r#"
    INSERT INTO audit_log (operator, action, subject, before, after, trace_id) VALUES
        (U&'quote " backslash \\ slash / tab \0009 line \000A bell \0007 delete \007F', 'a.b', U&'\20AC \+01F600 \2028', NULL, NULL, NULL),
        ('admin', 'a.c', '', 'null', '{"b": 1.500, "aa": [1e3, 12345678901234567890], "z": {}}', 'trace "1"'),
        ('admin', 'a.d', 'x', '"text"', '[]', '')"#;

async fn write_checkpoints(store: &PgStore) {
    let key = CheckpointKey::new([1; 32]);
    while store
        .audit_log
        .write_checkpoint(key.clone())
        .await
        .unwrap()
        .is_some()
    {}
}

/// Writes this many checkpoints of one entry.
async fn write_small_checkpoints(store: &PgStore, connection: &mut PgConnection, count: usize) {
    for _ in 0..count {
        let insert = "INSERT INTO audit_log (operator, action, subject) VALUES ('admin', 'a.b', 'x')";
        connection.execute(insert).await.unwrap();
        write_checkpoints(store).await;
    }
}

async fn lease(store: &PgStore) -> Option<ExportLease> {
    match store.audit_log.lease_export(ENDPOINT).await.unwrap() {
        ExportLeaseOutcome::Leased(lease) => Some(lease),
        ExportLeaseOutcome::LeasedByOther => None,
        outcome => panic!("{outcome:?}"),
    }
}

/// All lines of the export, a batch each.
async fn export(store: &PgStore, content: ExportContent) -> Vec<Vec<ExportLine>> {
    let mut batches = Vec::new();
    let mut position = 0;
    loop {
        let lines = store
            .audit_log
            .read_export_batch(position, content)
            .await
            .unwrap();
        let Some(last) = lines.last() else {
            return batches;
        };
        position = last.checkpoint().unwrap().number;
        batches.push(lines);
    }
}

/// Computes the hashes of the checkpoints from the lines, and returns the numbers of their entries.
fn check_hashes(lines: &[ExportLine]) -> Vec<usize> {
    let mut counts = Vec::new();
    let mut entries = Vec::new();
    let mut previous: Option<&CheckpointRecord> = None;
    for line in lines {
        match line {
            ExportLine::AuditEntry(entry) => entries.push(entry.clone()),
            ExportLine::AuditCheckpoint(checkpoint) => {
                assert_eq!(
                    checkpoint.number,
                    previous.map_or(0, |previous| previous.number) + 1
                );
                assert_eq!(
                    checkpoint_hash(previous, &entries),
                    checkpoint.hash,
                    "{checkpoint:?}"
                );
                counts.push(entries.len());
                entries.clear();
                previous = Some(checkpoint);
            }
        }
    }
    assert!(entries.is_empty());
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_lines_suffice_for_the_hashes_of_the_checkpoints() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    connection.execute(INSERT_SPECIAL).await.unwrap();
    write_checkpoints(&store).await;
    write_small_checkpoints(&store, &mut connection, 2).await;
    let insert = "INSERT INTO audit_log (operator, action, subject, after)
                  SELECT 'admin', 'a.b', i::text, jsonb_build_object('i', i) FROM generate_series(1, 2500) AS i";
    connection.execute(insert).await.unwrap();
    write_checkpoints(&store).await;

    let batches = export(&store, ExportContent::Entries).await;
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [3 + 1 + 2 + 2 + 1_001, 1_001, 501]);
    // As a receiver reads them.
    let text: Vec<String> = batches
        .concat()
        .iter()
        .map(|line| serde_json::to_string(line).unwrap())
        .collect();
    let lines: Vec<ExportLine> = text
        .iter()
        .map(|line| ExportLine::parse(line.as_bytes()).unwrap())
        .collect();
    assert_eq!(check_hashes(&lines), [3, 1, 1, 1_000, 1_000, 500]);

    let checkpoints = export(&store, ExportContent::Checkpoints).await.concat();
    let covered: Vec<_> = lines.iter().filter_map(ExportLine::checkpoint).collect();
    let alone: Vec<_> = checkpoints
        .iter()
        .map(|line| line.checkpoint().unwrap())
        .collect();
    assert_eq!(alone, covered);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_at_a_time_exports_to_an_endpoint() {
    let database = Database::create().await;
    let [one, two] = [(); 2].map(|()| PgStore::open(database.service_options(), Handle::current()));
    let mut connection = database.connect().await;
    write_small_checkpoints(&one, &mut connection, 2).await;

    let mut first = lease(&one).await.unwrap();
    assert_eq!(first.position(), 0);
    assert!(lease(&two).await.is_none() && lease(&one).await.is_none());
    assert!(one.audit_log.confirm_export(&mut first, 1).await.unwrap());
    assert_eq!(first.position(), 1);

    // The first node is paused, and its lease ends.
    let end_lease = "UPDATE audit_exports SET leased_until = clock_timestamp() - interval '1 ms'";
    connection.execute(end_lease).await.unwrap();
    let mut second = lease(&two).await.unwrap();
    assert_eq!(second.position(), 1);
    let is_confirmed = one.audit_log.confirm_export(&mut first, 2).await.unwrap();
    assert!(!is_confirmed, "another node has taken over");
    one.audit_log.release_export(first, Duration::ZERO).await.unwrap();
    assert!(lease(&one).await.is_none(), "the lease is that of the other node");
    assert!(two.audit_log.confirm_export(&mut second, 2).await.unwrap());
    two.audit_log
        .release_export(second, Duration::ZERO)
        .await
        .unwrap();
    let outcome = one.audit_log.lease_export(ENDPOINT).await.unwrap();
    assert!(matches!(outcome, ExportLeaseOutcome::Complete), "{outcome:?}");

    write_small_checkpoints(&one, &mut connection, 1).await;
    let failed = lease(&one).await.unwrap();
    assert_eq!(failed.position(), 2);
    one.audit_log
        .release_export(failed, Duration::from_secs(30))
        .await
        .unwrap();
    assert!(lease(&two).await.is_none(), "after a failure all wait");

    // Set back, the database's clock must not stop the export for long.
    let clock_change = "UPDATE audit_exports SET leased_until = clock_timestamp() + interval '1 hour'";
    connection.execute(clock_change).await.unwrap();
    assert_eq!(lease(&two).await.unwrap().position(), 2);

    let other = one.audit_log.lease_export("another URL").await.unwrap();
    let ExportLeaseOutcome::Leased(other) = other else {
        panic!("{other:?}");
    };
    assert_eq!(other.position(), 0, "another endpoint receives everything");

    let skip = "UPDATE audit_exports SET position = 9";
    connection.execute(skip).await.unwrap();
    let outcome = one.audit_log.lease_export(ENDPOINT).await.unwrap();
    assert!(
        matches!(
            outcome,
            ExportLeaseOutcome::Beyond {
                position: 9,
                newest: 3
            }
        ),
        "{outcome:?}"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_ask_at_the_same_time_get_one_lease() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    write_small_checkpoints(&store, &mut connection, 1).await;
    for _ in 0..20 {
        let attempts = join_all((0..4).map(|_| lease(&store))).await;
        let mut leases: Vec<ExportLease> = attempts.into_iter().flatten().collect();
        assert_eq!(leases.len(), 1);
        let lease = leases.remove(0);
        store
            .audit_log
            .release_export(lease, Duration::ZERO)
            .await
            .unwrap();
    }
    database.remove().await;
}
