//! Keyring: creation, reuse and rotation of data keys.

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{CodeScope, Sku};
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::{CodeId, SEALS_BEFORE_ROTATION};
use vouchsafe_security::vault::wrapping_key::WrapError;
use vouchsafe_store::PgStore;
use vouchsafe_store::keyring::{Keyring, KeyringError};

use vouchsafe_test_harness::Database;

fn store(database: &Database) -> PgStore {
    PgStore::open(database.service_options(), Handle::current())
}

fn master(byte: &str) -> MasterKey {
    MasterKey::parse(&byte.repeat(32)).unwrap()
}

async fn count_keys(database: &Database) -> (i64, i64) {
    let mut connection = database.connect().await;
    let sql =
        "SELECT count(*) FILTER (WHERE purpose = 'codes'), count(*) FILTER (WHERE purpose = 'blind_index')
                 FROM data_keys";
    sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap()
}

fn sku() -> Sku {
    Sku {
        product_id: "acme-us".parse().unwrap(),
        denomination: Amount::from_minor(2_500),
    }
}

fn code(text: &str) -> VoucherCode {
    VoucherCode::parse(CodeParts {
        code: text,
        ..CodeParts::default()
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_create_one_key_per_purpose() {
    let database = Database::create().await;
    let store = store(&database);
    let starts = (0..8).map(|_| Keyring::open(store.data_keys.clone(), master("ab").into()));
    let keyrings = futures_util::future::join_all(starts).await;
    let active: Vec<_> = keyrings
        .iter()
        .map(|keyring| keyring.as_ref().unwrap().vault().active_key())
        .collect();
    assert!(active.iter().all(|key| *key == active[0]), "{active:?}");
    assert_eq!(count_keys(&database).await, (1, 1));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_sealed_before_restart_is_readable() {
    let database = Database::create().await;
    let store = store(&database);
    let first = Keyring::open(store.data_keys.clone(), master("ab").into())
        .await
        .unwrap()
        .vault();
    let sealed = first.seal(CodeId(7), &sku(), &code("CNRY-1")).unwrap();
    let later = Keyring::open(store.data_keys, master("ab").into())
        .await
        .unwrap()
        .vault();
    let opened = later.open(CodeId(7), &sku(), &sealed).unwrap();
    assert_eq!(
        opened
            .parts()
            .map(|(_, text)| text.to_owned())
            .collect::<Vec<_>>(),
        ["CNRY-1"]
    );
    assert_eq!(
        later.blind_index(CodeScope::exact("Acme"), &code("CNRY-1")),
        first.blind_index(CodeScope::exact("Acme"), &code("CNRY-1"))
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_master_key_is_rejected_without_new_key() {
    let database = Database::create().await;
    let store = store(&database);
    drop(
        Keyring::open(store.data_keys.clone(), master("ab").into())
            .await
            .unwrap(),
    );
    let error = Keyring::open(store.data_keys, master("cd").into())
        .await
        .unwrap_err();
    assert!(
        matches!(error, KeyringError::Locked(WrapError::NotLoaded { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("is not loaded; loaded: "), "{error}");
    assert_eq!(count_keys(&database).await, (1, 1));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_key_is_rotated_and_still_decrypts() {
    let database = Database::create().await;
    let store = store(&database);
    let first = Keyring::open(store.data_keys.clone(), master("ab").into())
        .await
        .unwrap();
    let sealed = first.vault().seal(CodeId(1), &sku(), &code("CNRY-1")).unwrap();
    assert_eq!(
        first.sealing_vault().await.unwrap().active_key(),
        first.vault().active_key(),
        "rotation is not due yet"
    );

    let mut connection = database.connect().await;
    let exhaust_key = format!("SELECT setval('code_ids', {SEALS_BEFORE_ROTATION})");
    connection
        .execute(sqlx::AssertSqlSafe(exhaust_key))
        .await
        .unwrap();
    let (one, other) = (
        Keyring::open(store.data_keys.clone(), master("ab").into()),
        Keyring::open(store.data_keys.clone(), master("ab").into()),
    );
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let (next, same) = tokio::join!(one.sealing_vault(), other.sealing_vault());
    let (next, same) = (next.unwrap(), same.unwrap());
    assert!(next.active_key() > first.vault().active_key() && next.active_key() == same.active_key());
    assert_eq!(count_keys(&database).await, (2, 1));
    assert!(
        next.open(CodeId(1), &sku(), &sealed).is_ok(),
        "the old key must stay loaded"
    );
    assert!(!next.needs_rotation(), "the new key must start with no uses");

    let by_next = next.seal(CodeId(2), &sku(), &code("CNRY-2")).unwrap();
    assert!(
        first.vault().open(CodeId(2), &sku(), &by_next).is_err(),
        "a node that has not loaded the new key must fail"
    );
    assert!(
        first
            .reload()
            .await
            .unwrap()
            .open(CodeId(2), &sku(), &by_next)
            .is_ok()
    );
    database.remove().await;
}
