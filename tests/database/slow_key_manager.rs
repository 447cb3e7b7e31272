//! A key manager that does not answer: callers, and sessions that lock the data keys, do not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sqlx::Executor as _;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use vouchsafe_security::vault::data_key::{DataKey, KeyId, WrappedKey};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::SEALS_BEFORE_ROTATION;
use vouchsafe_security::vault::wrapping_key::{
    WrapError, WrapFuture, WrappingKey, WrappingKeyId, WrappingKeys,
};
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{PgStore, create_data_key};

use vouchsafe_test_harness::Database;

/// A master key behind a gate.
struct GatedKey {
    master: MasterKey,
    hangs: AtomicBool,
    requests: AtomicUsize,
    received: Semaphore,
    timeouts: Semaphore,
}

impl GatedKey {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            master: MasterKey::parse(&"ab".repeat(32)).unwrap(),
            hangs: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            received: Semaphore::new(0),
            timeouts: Semaphore::new(0),
        })
    }

    fn keys(self: &Arc<Self>) -> WrappingKeys {
        WrappingKeys::new(Arc::<Self>::clone(self), Vec::new())
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn pass(&self) -> Result<(), WrapError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            self.received.add_permits(1);
            self.timeouts.acquire().await.unwrap().forget();
            return Err(WrapError::KeyManager("no response".to_owned()));
        }
        Ok(())
    }
}

impl WrappingKey for GatedKey {
    fn id(&self) -> WrappingKeyId {
        self.master.id()
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> WrapFuture<'a, WrappedKey> {
        Box::pin(async move {
            self.pass().await?;
            WrappingKey::wrap(&self.master, key).await
        })
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a WrappedKey) -> WrapFuture<'a, DataKey> {
        Box::pin(async move {
            self.pass().await?;
            WrappingKey::unwrap_key(&self.master, wrapped).await
        })
    }
}

fn store(database: &Database) -> PgStore {
    PgStore::open(database.service_options(), Handle::current())
}

#[tokio::test(flavor = "multi_thread")]
async fn active_key_encrypts_while_the_next_one_waits_for_the_key_manager() {
    let (database, manager) = (Database::create().await, GatedKey::new());
    let store = store(&database);
    drop(
        Keyring::open(store.data_keys.clone(), manager.keys())
            .await
            .unwrap(),
    );
    let mut connection = database.connect().await;
    let exhaust = format!("SELECT setval('code_ids', {SEALS_BEFORE_ROTATION})");
    connection.execute(sqlx::AssertSqlSafe(exhaust)).await.unwrap();
    let keyring = Keyring::open(store.data_keys.clone(), manager.keys())
        .await
        .unwrap();
    let active = keyring.vault().active_key();
    manager.hangs.store(true, Ordering::SeqCst);

    let has_first_ended = AtomicBool::new(false);
    let first = async {
        let first = keyring.sealing_vault().await;
        has_first_ended.store(true, Ordering::SeqCst);
        first
    };
    let (first, ()) = tokio::join!(first, async {
        manager.received.acquire().await.unwrap().forget();
        // Another caller goes on at once, and the table is free: a starting node can lock it.
        assert_eq!(keyring.sealing_vault().await.unwrap().active_key(), active);
        assert!(
            !has_first_ended.load(Ordering::SeqCst),
            "it waited for the first one"
        );
        connection
            .execute("BEGIN; LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE NOWAIT; ROLLBACK")
            .await
            .unwrap();
        manager.timeouts.add_permits(1);
    });
    assert_eq!(first.unwrap().active_key(), active);
    let requests = manager.requests();
    assert_eq!(keyring.sealing_vault().await.unwrap().active_key(), active);
    assert_eq!(manager.requests(), requests, "the next attempt is later");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn active_key_encrypts_while_the_database_refuses_the_next_one() {
    let (database, manager) = (Database::create().await, GatedKey::new());
    let store = store(&database);
    drop(
        Keyring::open(store.data_keys.clone(), manager.keys())
            .await
            .unwrap(),
    );
    let mut connection = database.connect().await;
    let exhaust = format!(
        "SELECT setval('code_ids', {SEALS_BEFORE_ROTATION});
         ALTER TABLE data_keys ADD CONSTRAINT full_disk CHECK (key_id < 3) NOT VALID"
    );
    connection.execute(sqlx::AssertSqlSafe(exhaust)).await.unwrap();
    let keyring = Keyring::open(store.data_keys.clone(), manager.keys())
        .await
        .unwrap();
    let active = keyring.vault().active_key();
    assert_eq!(keyring.sealing_vault().await.unwrap().active_key(), active);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reads_share_one_load_and_an_unknown_key_is_not_looked_up_again() {
    let (database, manager) = (Database::create().await, GatedKey::new());
    let store = store(&database);
    let keyring = Keyring::open(store.data_keys.clone(), manager.keys())
        .await
        .unwrap();
    let next = KeyId(keyring.vault().active_key().0 + 1);
    create_data_key(&database.service_options(), &manager.keys())
        .await
        .unwrap();
    let before = manager.requests();
    let reads = (0..16).map(|_| keyring.vault_with([next]));
    for vault in futures_util::future::join_all(reads).await {
        assert!(vault.unwrap().has_key(next));
    }
    assert_eq!(manager.requests(), before + 3, "one load of three keys");

    for _ in 0..4 {
        let vault = keyring.vault_with([KeyId(999)]).await.unwrap();
        assert!(!vault.has_key(KeyId(999)));
    }
    assert_eq!(manager.requests(), before + 6, "one more load");
    database.remove().await;
}
