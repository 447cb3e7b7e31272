//! Archives of the audit log: the chain in the files, and what stays of it in the database.

use std::path::{Path, PathBuf};

use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use tokio::runtime::Handle;
use vouchsafe_archive::{ArchiveError, ArchivedMonth, Log, Removal, check_archive};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::{PgStore, read_checkpoints};
use vouchsafe_verify as verify;

use super::{archive_log, broken, execute_as_superuser, read_lines, removal};
use crate::verify::seeded_database::SeededDatabase;

/// A database whose entries and checkpoints are five months old. The hash of a checkpoint has the times of
/// its entries: it is computed anew.
async fn database_with_old_entries() -> SeededDatabase {
    let database = SeededDatabase::create().await;
    let age = "SET session_replication_role = replica;
        UPDATE audit_log SET at = at - interval '5 months';
        UPDATE orders SET codes_retrieved_at = codes_retrieved_at - interval '5 months';
        UPDATE allocations SET first_retrieved_at = first_retrieved_at - interval '5 months';
        UPDATE audit_checkpoints SET at = at - interval '5 months';
        DO $$
        DECLARE
            v_number bigint;
        BEGIN
            FOR v_number IN SELECT number FROM audit_checkpoints ORDER BY number LOOP
                UPDATE audit_checkpoints AS c
                   SET hash = sha256(COALESCE((SELECT p.hash FROM audit_checkpoints AS p WHERE p.number = c.number - 1), '')
                       || convert_to((SELECT string_agg(audit_entry_text_v1(a), E'\\n' ORDER BY a.audit_id)
                                        FROM audit_log AS a WHERE a.audit_id = ANY (c.entries)), 'UTF8'))
                 WHERE c.number = v_number;
            END LOOP;
        END
        $$";
    execute_as_superuser(&database, age).await;
    sign_checkpoints(&database).await;
    assert_eq!(broken_in_any_range(&database).await, [""; 0]);
    database
}

async fn sign_checkpoints(database: &SeededDatabase) {
    let mut connection = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    connection
        .execute("SET session_replication_role = replica")
        .await
        .unwrap();
    for checkpoint in read_checkpoints(&mut connection, 1, 100).await.unwrap() {
        let mac = CheckpointKey::new([1; 32]).mac(checkpoint.number, checkpoint.at, &checkpoint.hash);
        sqlx::query("UPDATE audit_checkpoints SET mac = decode($2, 'hex') WHERE number = $1")
            .bind(checkpoint.number)
            .bind(mac)
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

async fn archive_entries(
    database: &SeededDatabase,
    to: &Path,
    removal: Option<Removal>,
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    archive_log(&database.options(), Log::AuditLog, 2, to, removal).await
}

async fn broken_in_any_range(database: &SeededDatabase) -> Vec<String> {
    let mut rows = broken(database, 1).await;
    rows.extend(broken(database, 1_000).await);
    rows
}

async fn actions(database: &SeededDatabase) -> Vec<String> {
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let actions = "SELECT action FROM audit_log WHERE action <> 'archive.remove' ORDER BY audit_id";
    sqlx::query_scalar(actions)
        .fetch_all(&mut connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_codes_are_archived_and_what_stays_is_provable() {
    let database = database_with_old_entries().await;
    let to = TempDir::new().unwrap();
    let before = actions(&database).await;
    let written = archive_entries(&database, to.path(), None).await.unwrap();
    assert_eq!(
        actions(&database).await,
        before,
        "nothing is removed without the flag"
    );
    let entries = read_lines(&written[0].directory.join("entries.ndjson.gz"));
    assert_eq!(entries.len(), before.len(), "an archive has all entries");

    let refused = archive_entries(&database, to.path(), Some(Removal::default())).await;
    assert!(matches!(refused, Err(ArchiveError::NoKey)), "{refused:?}");
    assert_eq!(actions(&database).await, before);

    archive_entries(&database, to.path(), removal(true))
        .await
        .unwrap();
    let kept: Vec<_> = before
        .iter()
        .filter(|action| *action != "codes.retrieve")
        .cloned()
        .collect();
    assert!(kept.len() < before.len(), "{before:?}");
    assert_eq!(actions(&database).await, kept);
    assert_eq!(broken_in_any_range(&database).await, [""; 0]);

    let store = PgStore::open(database.options(), Handle::current());
    let listed = store
        .audit_log
        .list_checkpoints(None, 10, Some(CheckpointKey::new([1; 32])));
    let listed = listed.await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(
        listed.iter().all(|checkpoint| checkpoint.is_intact == Some(true)),
        "{listed:?}"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_what_stays_is_detected() {
    let database = database_with_old_entries().await;
    let to = TempDir::new().unwrap();
    archive_entries(&database, to.path(), removal(true))
        .await
        .unwrap();
    let mut connection = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    for change in [
        "DELETE FROM audit_log WHERE audit_id = (SELECT min(audit_id) FROM audit_log)",
        "UPDATE audit_log SET operator = 'mallory' WHERE audit_id = (SELECT max(audit_id) FROM audit_log \
         WHERE action <> 'archive.remove')",
        "INSERT INTO audit_log (audit_id, at, operator, action, subject, partner_id)
         OVERRIDING SYSTEM VALUE
         SELECT e.audit_id, now() - interval '5 months', 'command-line', 'codes.retrieve', 'codes', NULL
           FROM audit_checkpoints AS c CROSS JOIN unnest(c.entries) AS e (audit_id)
          WHERE NOT EXISTS (SELECT FROM audit_log AS a WHERE a.audit_id = e.audit_id)
          LIMIT 1",
    ] {
        let mut transaction = connection.begin().await.unwrap();
        transaction
            .execute("SET LOCAL session_replication_role = replica")
            .await
            .unwrap();
        transaction.execute(change).await.unwrap();
        let findings = verify::check(&mut transaction).await.unwrap();
        let holds = findings
            .iter()
            .find(|finding| finding.name == "audit.checkpoints")
            .unwrap()
            .holds;
        assert!(!holds, "{change}");
        transaction.rollback().await.unwrap();
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_removes_only_archived_reads_of_codes() {
    let database = database_with_old_entries().await;
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let before = actions(&database).await;
    for removal in [
        "DELETE FROM audit_log",
        "DELETE FROM audit_log WHERE action = 'codes.retrieve'",
        "SET vouchsafe.archived_checkpoint = '1'; DELETE FROM audit_log WHERE action = 'codes.retrieve'",
        "SET vouchsafe.archived_checkpoint = '2'; DELETE FROM audit_log WHERE action <> 'codes.retrieve'",
        "SET vouchsafe.archived_checkpoint = '1'; UPDATE audit_log SET operator = 'mallory'",
        "SET vouchsafe.archived_checkpoint = '1'; TRUNCATE audit_log",
        "SELECT remove_archived_reads_v1(date_trunc('month', now())::date, 2, sha256(''), '')",
    ] {
        let refused = connection.execute(removal).await;
        assert!(refused.is_err(), "{removal}");
    }
    assert_eq!(actions(&database).await, before);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_removal_of_reads_is_continued() {
    let database = database_with_old_entries().await;
    let to = TempDir::new().unwrap();
    archive_entries(&database, to.path(), removal(true))
        .await
        .unwrap();
    let kept = actions(&database).await;
    execute_as_superuser(&database, "UPDATE log_archives SET removed_at = NULL").await;
    let again = archive_entries(&database, to.path(), removal(true))
        .await
        .unwrap();
    assert_eq!((again.len(), again[0].is_removed), (1, true));
    assert_eq!(actions(&database).await, kept);
    assert_eq!(broken_in_any_range(&database).await, [""; 0]);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_not_exported_are_not_removed() {
    let database = database_with_old_entries().await;
    let to = TempDir::new().unwrap();
    let before = actions(&database).await;
    execute_as_superuser(
        &database,
        "INSERT INTO audit_exports (endpoint, position, leased_until) VALUES ('siem', 1, now())",
    )
    .await;
    let refused = archive_entries(&database, to.path(), removal(true)).await;
    assert!(matches!(refused, Err(ArchiveError::Busy { .. })), "{refused:?}");
    assert_eq!(actions(&database).await, before);
    execute_as_superuser(&database, "UPDATE audit_exports SET position = 2").await;
    archive_entries(&database, to.path(), removal(true))
        .await
        .unwrap();
    assert!(actions(&database).await.len() < before.len());
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_of_an_archive_that_was_changed_with_its_hashes_breaks_the_chain() {
    let database = database_with_old_entries().await;
    let to = TempDir::new().unwrap();
    let written = archive_entries(&database, to.path(), None).await.unwrap();
    let directory = &written[0].directory;
    check_archive(directory).unwrap();
    replace_in_entries(directory, "codes.retrieve", "codes.retrieved");
    let damaged = check_archive(directory).unwrap_err();
    assert!(damaged.to_string().contains("do not have its hash"), "{damaged}");
    database.remove().await;
}

/// Writes the file of entries anew, and the manifest that fits it.
fn replace_in_entries(directory: &Path, from: &str, to: &str) {
    use std::io::Write as _;

    use sha2::{Digest as _, Sha256};

    let path: PathBuf = directory.join("entries.ndjson.gz");
    let lines = read_lines(&path);
    let text: String = lines
        .iter()
        .map(|line| format!("{line}\n").replace(from, to))
        .collect();
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    file.write_all(text.as_bytes()).unwrap();
    let bytes = file.finish().unwrap();
    let manifest = directory.join("manifest.json");
    let mut content: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    content["files"][1]["bytes"] = bytes.len().into();
    content["files"][1]["sha256"] = hex::encode(Sha256::digest(&bytes)).into();
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(manifest, content.to_string()).unwrap();
}
