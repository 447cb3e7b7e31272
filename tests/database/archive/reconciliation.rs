//! Archives of reconciliation: what leaves the database, what stays of a day, and days that change meanwhile.

use std::path::Path;

use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use time::Date;
use tokio::runtime::Handle;
use vouchsafe_archive::{ArchiveError, ArchivedMonth, Log};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_store::{AuditActor, PgStore};
use vouchsafe_verify as verify;

use super::{archive_log, execute_as_superuser, read_lines, removal};
use crate::verify::seeded_database::SeededDatabase;

const TABLES: [&str; 4] = [
    "vendor_records",
    "reconciled_orders",
    "reconciled_partners",
    "reconciled_batches",
];

/// A database whose day of reconciliation is five months old.
async fn database_with_old_day() -> SeededDatabase {
    let database = SeededDatabase::create().await;
    let age = "SET session_replication_role = replica;
        UPDATE vendor_records SET day = day - interval '5 months';
        UPDATE reconciled_orders SET day = day - interval '5 months';
        UPDATE reconciled_partners SET day = day - interval '5 months';
        UPDATE reconciled_batches SET day = day - interval '5 months';
        UPDATE reconciled_days SET day = day - interval '5 months', generated_at = generated_at - interval '5 months';
        UPDATE reconciliations SET day = day - interval '5 months', generated_at = generated_at - interval '5 months';
        UPDATE drifts SET day = day - interval '5 months'";
    execute_as_superuser(&database, age).await;
    database
}

async fn archive_days(
    database: &SeededDatabase,
    to: &Path,
    remove: bool,
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    archive_log(&database.options(), Log::Reconciliation, 2, to, removal(remove)).await
}

async fn rows(database: &SeededDatabase) -> i64 {
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let count = "SELECT (SELECT count(*) FROM vendor_records) + (SELECT count(*) FROM reconciled_orders)
                      + (SELECT count(*) FROM reconciled_partners) + (SELECT count(*) FROM reconciled_batches)";
    sqlx::query_scalar(count)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

async fn broken(database: &SeededDatabase) -> Vec<String> {
    let findings = verify::verify(&database.options()).await.unwrap();
    findings.into_iter().flat_map(|finding| finding.rows).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_counts_are_archived_and_results_stay() {
    let database = database_with_old_day().await;
    assert_eq!(broken(&database).await, [""; 0]);
    let to = TempDir::new().unwrap();
    let before = rows(&database).await;
    let written = archive_days(&database, to.path(), false).await.unwrap();
    let lines = |table: &str| -> Vec<_> {
        let files = written
            .iter()
            .map(|month| month.directory.join(format!("{table}.ndjson.gz")));
        files.flat_map(|file| read_lines(&file)).collect()
    };
    let archived: usize = TABLES.iter().map(|table| lines(table).len()).sum();
    let archived = i64::try_from(archived).unwrap();
    assert_eq!((archived, rows(&database).await), (before, before));
    assert_eq!(lines("vendor_records")[0]["reference"], "A-1");

    let store = PgStore::open(database.options(), Handle::current());
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let (partner_id, day): (uuid::Uuid, Date) =
        sqlx::query_as("SELECT partner_id, day FROM reconciled_partners")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    let partner_day = async || {
        let found = store
            .reconciliations
            .find_partner_day(PartnerId::from_uuid(partner_id), day, 10);
        found.await.unwrap().is_some()
    };
    assert!(partner_day().await && !store.reconciliations.is_archived(day).await.unwrap());

    archive_days(&database, to.path(), true).await.unwrap();
    assert_eq!(rows(&database).await, 0);
    assert_eq!(broken(&database).await, [""; 0]);
    assert!(!partner_day().await && store.reconciliations.is_archived(day).await.unwrap());
    assert_eq!(store.reconciliations.find_allocations(day).await.unwrap(), None);
    assert_eq!(
        store.reconciliations.list(day).await.unwrap().len(),
        1,
        "the result stays"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn day_that_changes_after_its_archive_is_not_removed() {
    let database = database_with_old_day().await;
    let to = TempDir::new().unwrap();
    let before = rows(&database).await;
    archive_days(&database, to.path(), false).await.unwrap();
    for change in [
        "UPDATE reconciliations SET generated_at = now()",
        "UPDATE reconciliations SET generated_at = now() - interval '5 months'; UPDATE reconciled_days SET generated_at = now()",
        "UPDATE reconciled_days SET generated_at = now() - interval '5 months';
         INSERT INTO vendor_records SELECT vendor, day, 'late', purchase_id, product_id, denomination, currency, sold_at
           FROM vendor_records LIMIT 1",
    ] {
        execute_as_superuser(&database, change).await;
        let refused = archive_days(&database, to.path(), true).await;
        assert!(
            matches!(refused, Err(ArchiveError::Busy { .. } | ArchiveError::RowsDiffer { .. })),
            "{change}: {refused:?}"
        );
    }
    assert_eq!(rows(&database).await, before + 1);
    execute_as_superuser(&database, "DELETE FROM vendor_records WHERE reference = 'late'").await;
    let store = PgStore::open(database.options(), Handle::current());
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let (vendor, day): (String, Date) = sqlx::query_as("SELECT vendor, day FROM reconciliations")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let request = store
        .reconciliations
        .request(day, vec![vendor], AuditActor::service());
    request.await.unwrap();
    let refused = archive_days(&database, to.path(), true).await;
    assert!(matches!(refused, Err(ArchiveError::Busy { .. })), "{refused:?}");
    assert_eq!(rows(&database).await, before);
    database.remove().await;
}
