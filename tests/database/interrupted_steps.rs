//! Long steps of an operator that are killed at each of their statements and then repeated.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Executor as _, PgPool};
use tokio::runtime::Handle;
use vouchsafe_domain::product::CodeIdentity;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};
use vouchsafe_store::keyring::{Keyring, KeyringError};
use vouchsafe_store::{
    AuditActor, ExportContent, ExportLeaseOutcome, ImportOutcome, PgStore, ReleaseGround, ReleaseOutcome,
    SoldVoucher, SoldVoucherOutcome, StockRelease, StoreError, create_data_key, request_reencryption,
};
use vouchsafe_test_harness::Database;
use vouchsafe_test_harness::postgres_proxy::{Cut, StatementCutter};

use crate::catalogue::{self, BRAND, product, seal_voucher, sku};

/// Set to kill at every statement, both before and after it; else at every second one, alternately.
const EVERY_STATEMENT: &str = "VOUCHSAFE_EVERY_STATEMENT";

/// Kills `step` at its statements, before the server receives one or after it has run it, each time on a copy
/// of the database. `check` gets the result of the repetition. Returns the number of statements.
pub(super) async fn kill_at_statements<T>(
    prepared: &Database,
    options: fn(&Database) -> PgConnectOptions,
    step: impl AsyncFn(PgConnectOptions) -> Result<T, StoreError>,
    after_kill: impl AsyncFn(&Database),
    check: impl AsyncFn(&Database, T),
) -> usize {
    let is_every = std::env::var_os(EVERY_STATEMENT).is_some();
    let cuts = (1..).flat_map(|statement| {
        let cuts: &[Cut] = match statement % 4 {
            _ if is_every => &[Cut::BeforeStatement, Cut::AfterStatement],
            1 => &[Cut::BeforeStatement],
            3 => &[Cut::AfterStatement],
            _ => &[],
        };
        cuts.iter().map(move |cut| (statement, *cut))
    });
    for (statement, cut) in cuts {
        let database = prepared.copy();
        let cutter = StatementCutter::open(&options(&database), statement, cut);
        let killed = step(cutter.options()).await;
        if !cutter.close().await {
            check(&database, killed.unwrap()).await;
            database.remove().await;
            return statement - 1;
        }
        after_kill(&database).await;
        check(&database, step(options(&database)).await.unwrap()).await;
        database.remove().await;
    }
    unreachable!("a step ends");
}

async fn nothing_is_required(_: &Database) {}

pub(super) async fn rows(database: &Database, sql: &'static str) -> Vec<String> {
    sqlx::query_scalar(sql)
        .fetch_all(&mut database.connect().await)
        .await
        .unwrap()
}

/// A database with a product; nothing is connected to it.
async fn create_with_product() -> (Database, PgStore) {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    catalogue::seed(&store, product(BRAND)).await;
    (database, store)
}

/// Ends all sessions: a database with sessions cannot be copied.
async fn disconnect(database: &Database, store: PgStore) {
    drop(store);
    let pool = PgPool::connect_with(database.superuser_options().database("postgres"))
        .await
        .unwrap();
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1";
    // A backend that ends by itself meanwhile counts as not ended: the next statement does not list it.
    loop {
        let ended: Vec<bool> = sqlx::query_scalar(end)
            .bind(database.options().get_database())
            .fetch_all(&pool)
            .await
            .unwrap();
        if ended.iter().all(|ended| *ended) {
            break;
        }
    }
    pool.close().await;
}

/// More chunks of two vouchers than two parts of a release.
const INSERT_CHUNKS: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, cleared_epoch)
    SELECT 'acme-us', 2500, i * 2, i * 2 + 1, 0 FROM generate_series(1, 2100) AS i";

const RELEASED: &str = "
    SELECT concat_ws(' ', 'chunk', cleared_epoch, node, reservation_id, count(*)) FROM chunks GROUP BY cleared_epoch, node, reservation_id
     UNION ALL
    SELECT concat_ws(' ', 'quarantine', quarantined_at IS NOT NULL) FROM continuity
     UNION ALL
    SELECT concat_ws(' ', 'audited', sum((after ->> 'vouchers')::bigint)) FROM audit_log WHERE action = 'stock.release'";

/// Releases part after part of the same quarantine, as the command does.
async fn release(options: PgConnectOptions) -> Result<(), StoreError> {
    let store = PgStore::open(options, Handle::current());
    let mut request = StockRelease {
        ground: ReleaseGround::NothingLost,
        quarantine: None,
        kept: Vec::new(),
        reason: "a test".to_owned(),
    };
    loop {
        let outcome = store.quarantine.release(request.clone(), AuditActor::service());
        let ReleaseOutcome::Released(part) = outcome.await? else {
            panic!("the release was rejected");
        };
        if !part.has_more {
            return Ok(());
        }
        request.quarantine = Some(part.quarantine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_release_is_continued_and_releases_each_voucher_once() {
    let (database, store) = create_with_product().await;
    database.connect().await.execute(INSERT_CHUNKS).await.unwrap();
    let start = store.quarantine.start("a test".to_owned(), AuditActor::service());
    start.await.unwrap();
    disconnect(&database, store).await;
    let statements = kill_at_statements(
        &database,
        Database::service_options,
        release,
        nothing_is_required,
        async |repeated, ()| {
            let expected = ["chunk 1 2100", "quarantine f", "audited 4200"];
            assert_eq!(rows(repeated, RELEASED).await, expected);
        },
    )
    .await;
    assert!(statements >= 12, "{statements}");
    database.remove().await;
}

/// More than a batch.
const CODES: usize = 1_100;

async fn import(options: PgConnectOptions) -> Result<ImportOutcome, StoreError> {
    import_codes(&PgStore::open(options, Handle::current()), 40).await
}

async fn import_codes(store: &PgStore, count: usize) -> Result<ImportOutcome, StoreError> {
    let vault = open_keyring(store).await?.vault();
    let ids = store.stock.generate_ids(count).await?;
    let sealed = ids.codes.iter().enumerate();
    let vouchers = sealed.map(|(n, id)| seal_voucher(&vault, *id, &format!("CODE-{n}"), None));
    catalogue::try_import(store, CodeIdentity::Code, ids.stock, vouchers.collect()).await
}

fn master_key() -> MasterKey {
    MasterKey::parse(&"ab".repeat(32)).unwrap()
}

async fn open_keyring(store: &PgStore) -> Result<Keyring, StoreError> {
    let keyring = Keyring::open(store.data_keys.clone(), master_key().into()).await;
    keyring.map_err(|error| match error {
        KeyringError::Store(error) => error,
        error => panic!("{error}"),
    })
}

const IMPORTED: &str = "
    SELECT concat_ws(' ', 'codes', count(*), count(DISTINCT blind_index), count(DISTINCT import_id)) FROM codes
     UNION ALL
    SELECT concat_ws(' ', 'stock', count(*), count(DISTINCT code_id)) FROM stock
     UNION ALL
    SELECT concat_ws(' ', 'chunks', sum(last_stock_id - first_stock_id + 1)) FROM chunks
     UNION ALL
    SELECT concat_ws(' ', 'audited', after ->> 'imported') FROM audit_log WHERE action = 'stock.import'";

#[tokio::test(flavor = "multi_thread")]
async fn killed_import_is_repeated_and_imports_each_code_once() {
    let (database, store) = create_with_product().await;
    catalogue::open_keyring(&store).await;
    disconnect(&database, store).await;
    let statements = kill_at_statements(
        &database,
        Database::service_options,
        import,
        nothing_is_required,
        async |repeated, outcome| {
            let ImportOutcome::Stored(summary) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(summary.imported + summary.duplicates, 40);
            let expected = ["codes 40 40 1", "stock 40 40", "chunks 40", "audited 40"];
            assert_eq!(rows(repeated, IMPORTED).await, expected);
        },
    )
    .await;
    assert!(statements >= 10, "{statements}");
    database.remove().await;
}

/// As the background job does, with a keyring of its own.
async fn encrypt_again(options: PgConnectOptions) -> Result<(), StoreError> {
    let store = PgStore::open(options, Handle::current());
    while let Some(batch) = store.reencryptions.next_batch().await? {
        let vault = open_keyring(&store).await?.vault();
        let codes = batch.encrypt_again(&vault).unwrap();
        store.reencryptions.store(batch, codes).await?;
    }
    Ok(())
}

const REENCRYPTED: &str = "
    SELECT concat_ws(' ', 'request', codes, failures, ended_at IS NOT NULL) FROM code_reencryptions
     UNION ALL
    SELECT concat_ws(' ', 'codes', k.key_id = (SELECT max(m.key_id) FROM data_keys AS m WHERE m.purpose = 'codes'), count(*))
      FROM codes AS c JOIN data_keys AS k ON k.key_id = c.key_id GROUP BY k.key_id
     UNION ALL
    SELECT concat_ws(' ', 'counted', sum(reencrypted)) FROM data_keys";

#[tokio::test(flavor = "multi_thread")]
async fn killed_reencryption_is_continued_and_keeps_each_code() {
    let (database, store) = create_with_product().await;
    import_codes(&store, CODES).await.unwrap();
    create_data_key(&database.service_options(), &master_key().into())
        .await
        .unwrap();
    let learned = "UPDATE data_keys SET created_at = created_at - interval '2 minutes'";
    database.connect().await.execute(learned).await.unwrap();
    request_reencryption(&database.service_options()).await.unwrap();
    disconnect(&database, store).await;
    let statements = kill_at_statements(
        &database,
        Database::service_options,
        encrypt_again,
        nothing_is_required,
        async |repeated, ()| {
            let expected = ["request 1100 0 t", "codes t 1100", "counted 1100"];
            assert_eq!(rows(repeated, REENCRYPTED).await, expected);
            assert_eq!(read_codes(repeated).await.len(), CODES);
        },
    )
    .await;
    assert!(statements >= 20, "{statements}");
    database.remove().await;
}

/// Decrypts all codes.
async fn read_codes(database: &Database) -> BTreeSet<String> {
    let store = PgStore::open(database.service_options(), Handle::current());
    let vault = catalogue::open_keyring(&store).await.vault();
    let stored: Vec<(i64, i32, Vec<u8>, Vec<u8>)> =
        sqlx::query_as("SELECT code_id, key_id, nonce, ciphertext FROM codes")
            .fetch_all(&mut database.connect().await)
            .await
            .unwrap();
    let open = |(code_id, key_id, nonce, ciphertext): (i64, i32, Vec<u8>, Vec<u8>)| {
        let sealed = SealedBlob {
            key_id: KeyId(key_id),
            nonce: nonce.try_into().unwrap(),
            ciphertext,
        };
        let code = vault.open(CodeId(code_id), &sku(), &sealed).unwrap();
        code.parts().map(|(_, text)| text.to_owned()).next().unwrap()
    };
    stored.into_iter().map(open).collect()
}

const ENDPOINT: &str = "keyed hash of a URL";

/// Exports to an endpoint, and appends to `received` what it receives.
async fn export(options: PgConnectOptions, received: &Mutex<Vec<i64>>) -> Result<(), StoreError> {
    let audit_log = PgStore::open(options, Handle::current()).audit_log;
    let ExportLeaseOutcome::Leased(mut lease) = audit_log.lease_export(ENDPOINT).await? else {
        return Ok(());
    };
    loop {
        let batch = audit_log.read_export_batch(lease.position(), ExportContent::Checkpoints);
        let checkpoints: Vec<i64> = batch
            .await?
            .iter()
            .map(|line| line.checkpoint().unwrap().number)
            .collect();
        let Some(last) = checkpoints.last().copied() else {
            return audit_log.release_export(lease, Duration::ZERO).await;
        };
        received.lock().unwrap().extend(checkpoints);
        assert!(audit_log.confirm_export(&mut lease, last).await?);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_export_is_continued_after_its_lease_without_a_gap() {
    let (database, store) = create_with_product().await;
    for _ in 0..3 {
        let key = CheckpointKey::new([1; 32]);
        store.audit_log.write_checkpoint(key).await.unwrap();
        let insert = "INSERT INTO audit_log (operator, action, subject) VALUES ('admin', 'a.b', 'x')";
        database.connect().await.execute(insert).await.unwrap();
    }
    disconnect(&database, store).await;
    let received = Mutex::new(Vec::new());
    let statements = kill_at_statements(
        &database,
        Database::service_options,
        async |options| export(options, &received).await,
        async |killed| {
            let end = "UPDATE audit_exports SET leased_until = clock_timestamp() - interval '1 second'";
            killed.connect().await.execute(end).await.unwrap();
        },
        async |repeated, ()| {
            let mut received = std::mem::take(&mut *received.lock().unwrap());
            received.dedup();
            let position = rows(repeated, "SELECT position::text FROM audit_exports").await;
            // A batch whose confirmation was killed is sent again.
            assert!(
                received == [1, 2, 3] || received == [1, 2, 3, 1, 2, 3],
                "{received:?}"
            );
            assert_eq!(position, ["3"]);
        },
    )
    .await;
    assert!(statements >= 5, "{statements}");
    database.remove().await;
}

/// Withdraws a voucher that is free, one that an order has, and one that is not in the database.
async fn compare(options: PgConnectOptions) -> Result<Vec<SoldVoucherOutcome>, StoreError> {
    let store = PgStore::open(options, Handle::current());
    let sold = (1..=3)
        .map(|code_id| SoldVoucher::CodeRow(code_id, None))
        .collect();
    let compared = store
        .quarantine
        .withdraw_sold(sold, "a test".to_owned(), AuditActor::service());
    compared.await
}

const COMPARED: &str = "
    SELECT concat_ws(' ', 'allocated', stock_id, order_id IS NOT NULL, first_retrieved_at IS NOT NULL, returned_at IS NOT NULL)
      FROM allocations
     UNION ALL
    SELECT concat_ws(' ', 'compared', compared_at IS NOT NULL) FROM continuity
     UNION ALL
    SELECT concat_ws(' ', 'withdrawn', sum((after ->> 'withdrawn')::bigint)) FROM audit_log WHERE action = 'stock.compare'
     ORDER BY 1";

#[tokio::test(flavor = "multi_thread")]
async fn killed_comparison_is_repeated_with_the_same_results() {
    const SELL_SECOND: &str = "INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
                               VALUES (2, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0)";
    let (database, store) = create_with_product().await;
    import_codes(&store, 2).await.unwrap();
    database.connect().await.execute(SELL_SECOND).await.unwrap();
    let start = store.quarantine.start("a test".to_owned(), AuditActor::service());
    start.await.unwrap();
    disconnect(&database, store).await;
    let statements = kill_at_statements(
        &database,
        Database::service_options,
        compare,
        nothing_is_required,
        async |repeated, outcomes| {
            let expected = [
                SoldVoucherOutcome::Withdrawn,
                SoldVoucherOutcome::Kept,
                SoldVoucherOutcome::Absent,
            ];
            assert_eq!(outcomes, expected);
            let expected = [
                "allocated 1 f f f",
                "allocated 2 t t f",
                "compared t",
                "withdrawn 1",
            ];
            assert_eq!(rows(repeated, COMPARED).await, expected);
        },
    )
    .await;
    assert!(statements >= 8, "{statements}");
    database.remove().await;
}
