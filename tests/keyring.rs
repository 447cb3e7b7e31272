//! Are the data keys made once, and do they stay what they are?

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it cannot go on"
)]

#[path = "support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe::keyring::{Keyring, KeyringError};
use vouchsafe::store::PgStore;
use vouchsafe::vault::code::{CodeParts, VoucherCode};
use vouchsafe::vault::master_key::MasterKey;
use vouchsafe::vault::seal::{CodeId, SEALS_BEFORE_ROTATION, UnlockError};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::Sku;

use crate::database::Database;

fn store(database: &Database) -> PgStore {
    PgStore::open(database.options(), Handle::current())
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
async fn many_starts_at_once_make_one_key_for_each_purpose() {
    let database = Database::create().await;
    let store = store(&database);
    let starts = (0..8).map(|_| Keyring::open(store.clone(), master("ab")));
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
async fn a_later_start_opens_what_an_earlier_one_sealed() {
    let database = Database::create().await;
    let store = store(&database);
    let first = Keyring::open(store.clone(), master("ab")).await.unwrap().vault();
    let sealed = first.seal(CodeId(7), &sku(), &code("CNRY-1")).unwrap();
    let again = Keyring::open(store, master("ab")).await.unwrap().vault();
    let opened = again.open(CodeId(7), &sku(), &sealed).unwrap();
    assert_eq!(
        opened
            .parts()
            .map(|(_, text)| text.to_owned())
            .collect::<Vec<_>>(),
        ["CNRY-1"]
    );
    assert_eq!(
        again.blind_index("Acme", &code("CNRY-1")),
        first.blind_index("Acme", &code("CNRY-1"))
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_master_key_is_refused_and_makes_no_key() {
    let database = Database::create().await;
    let store = store(&database);
    drop(Keyring::open(store.clone(), master("ab")).await.unwrap());
    let error = Keyring::open(store, master("cd")).await.unwrap_err();
    assert!(
        matches!(error, KeyringError::Locked(UnlockError::WrongMasterKey(_))),
        "{error}"
    );
    assert!(error.to_string().contains("master key"), "{error}");
    assert_eq!(count_keys(&database).await, (1, 1));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_has_done_its_part_is_followed_by_the_next_and_still_opens() {
    let database = Database::create().await;
    let store = store(&database);
    let first = Keyring::open(store.clone(), master("ab")).await.unwrap();
    let sealed = first.vault().seal(CodeId(1), &sku(), &code("CNRY-1")).unwrap();
    assert_eq!(
        first.sealing_vault().await.unwrap().active_key(),
        first.vault().active_key(),
        "not yet"
    );

    let mut connection = database.connect().await;
    let many = format!("SELECT setval('code_ids', {SEALS_BEFORE_ROTATION})");
    connection.execute(sqlx::AssertSqlSafe(many)).await.unwrap();
    let (one, other) = (
        Keyring::open(store.clone(), master("ab")),
        Keyring::open(store.clone(), master("ab")),
    );
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let (next, same) = tokio::join!(one.sealing_vault(), other.sealing_vault());
    let (next, same) = (next.unwrap(), same.unwrap());
    assert!(next.active_key() > first.vault().active_key() && next.active_key() == same.active_key());
    assert_eq!(count_keys(&database).await, (2, 1));
    assert!(
        next.open(CodeId(1), &sku(), &sealed).is_ok(),
        "the old key stays loaded"
    );
    assert!(!next.needs_rotation(), "the new key begins at nothing");

    let by_next = next.seal(CodeId(2), &sku(), &code("CNRY-2")).unwrap();
    assert!(
        first.vault().open(CodeId(2), &sku(), &by_next).is_err(),
        "a node that has not heard of the new key"
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
