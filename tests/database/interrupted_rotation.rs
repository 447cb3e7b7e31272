//! Rotations of the wrapping key that something interrupts: a kill, a node that joins, a missing key, a
//! faulty key manager.

use std::process::{Command, Stdio};
use std::sync::Arc;

use sqlx::{ConnectOptions as _, Executor as _};
use tokio::sync::Semaphore;
use vouchsafe_security::vault::data_key::{DataKey, KeyPurpose, WrappedKey};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::wrapping_key::{
    WrapError, WrapFuture, WrappingKey, WrappingKeyId, WrappingKeys,
};
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{DataKeyError, PgNode, PgStore, RewrapOutcome, create_data_key, rewrap};

use vouchsafe_test_harness::{Database, WAIT_TIMEOUT, eventually, program};

use crate::key_rotation::{NEW, OLD, is_same_vault, keys, master, run, start_node, store, wrapped_by};

/// A key manager that can be slow, and that may return a key other than the one that it wrapped.
struct FaultyKey {
    master: MasterKey,
    is_slow: bool,
    is_wrong: bool,
    received: Semaphore,
    responses: Semaphore,
}

impl FaultyKey {
    fn new(is_slow: bool, is_wrong: bool) -> Arc<Self> {
        Arc::new(Self {
            master: master(NEW),
            is_slow,
            is_wrong,
            received: Semaphore::new(0),
            responses: Semaphore::new(0),
        })
    }

    /// The wrapping keys with the previous master key.
    fn keys(self: &Arc<Self>) -> WrappingKeys {
        WrappingKeys::new(Arc::<Self>::clone(self), vec![Arc::new(master(OLD))])
    }
}

impl WrappingKey for FaultyKey {
    fn id(&self) -> WrappingKeyId {
        self.master.id()
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> WrapFuture<'a, WrappedKey> {
        Box::pin(async move {
            if self.is_slow {
                self.received.add_permits(1);
                self.responses.acquire().await.unwrap().forget();
            }
            WrappingKey::wrap(&self.master, key).await
        })
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a WrappedKey) -> WrapFuture<'a, DataKey> {
        Box::pin(async move {
            if self.is_wrong {
                return Ok(DataKey::generate(wrapped.key_id, KeyPurpose::Codes)?);
            }
            WrappingKey::unwrap_key(&self.master, wrapped).await
        })
    }
}

/// A database with data keys under the previous master key, and no live node.
async fn create_with_old_keys() -> (Database, PgStore, Keyring) {
    let database = Database::create().await;
    let store = store(&database);
    let keyring = Keyring::open(store.data_keys.clone(), keys(OLD, &[]))
        .await
        .unwrap();
    (database, store, keyring)
}

fn ids(byte: &str) -> [String; 2] {
    let id = master(byte).id().to_string();
    [id.clone(), id]
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_killed_between_two_data_keys_changes_none_and_is_repeated() {
    let (database, store, before) = create_with_old_keys().await;
    // The key for codes is the second one: its update waits until the process is killed.
    run(
        &database,
        "CREATE FUNCTION wait_for_kill() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF NEW.purpose = 'codes' THEN PERFORM pg_advisory_xact_lock(7); END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER wait_for_kill BEFORE UPDATE ON data_keys FOR EACH ROW EXECUTE FUNCTION wait_for_kill()",
    )
    .await;
    let mut killer = database.connect().await;
    killer.execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let rotate = || {
        let mut command = Command::new(program());
        command
            .args(["keys", "rotate"])
            .env("DATABASE_URL", database.options().to_url_lossy().to_string())
            .env("VOUCHSAFE_MASTER_KEY", NEW.repeat(32))
            .env("VOUCHSAFE_MASTER_KEY_PREVIOUS", OLD.repeat(32));
        command
    };
    let mut killed = rotate()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let waits = "SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database
                  WHERE locktype = 'advisory' AND objid = 7 AND NOT granted AND d.datname = current_database()";
    eventually("the rotation to be at its second key", WAIT_TIMEOUT, async || {
        let waiting = sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut killer).await;
        (waiting.unwrap() > 0).then_some(())
    })
    .await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    killer.execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    // Waits for the session of the killed process.
    killer
        .execute("BEGIN; LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE; COMMIT")
        .await
        .unwrap();

    assert_eq!(wrapped_by(&database).await, ids(OLD));
    let opened = Keyring::open(store.data_keys.clone(), keys(OLD, &[])).await;
    assert!(is_same_vault(&opened.unwrap().vault(), &before.vault()));
    let repeated = rotate().output().unwrap();
    assert!(
        repeated.status.success(),
        "{}",
        String::from_utf8_lossy(&repeated.stderr)
    );
    assert_eq!(wrapped_by(&database).await, ids(NEW));
    let opened = Keyring::open(store.data_keys.clone(), keys(NEW, &[])).await;
    assert!(is_same_vault(&opened.unwrap().vault(), &before.vault()));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_joins_while_keys_are_wrapped_makes_the_rotation_refuse() {
    let (database, store, _) = create_with_old_keys().await;
    let (slow, options) = (FaultyKey::new(true, false), database.service_options());
    let target = slow.keys();
    let (outcome, ()) = tokio::join!(rewrap(&options, &target), async {
        slow.received.acquire().await.unwrap().forget();
        drop(start_node(&store, "late", keys(OLD, &[])).await.unwrap());
        slow.responses.add_permits(2);
    });
    let RewrapOutcome::NodesLackKey(lacking) = outcome.unwrap() else {
        panic!("it locked the node out")
    };
    assert_eq!(lacking[0].node, "late");
    assert_eq!(wrapped_by(&database).await, ids(OLD));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_manager_that_returns_another_key_gets_no_data_key_and_is_not_reported() {
    let (database, store, before) = create_with_old_keys().await;
    let wrong = FaultyKey::new(false, true);
    let error = rewrap(&database.service_options(), &wrong.keys())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("differs after it was rewrapped"),
        "{error}"
    );
    assert_eq!(wrapped_by(&database).await, ids(OLD));
    let keyring = Keyring::open(store.data_keys.clone(), wrong.keys())
        .await
        .unwrap();
    assert!(is_same_vault(&keyring.vault(), &before.vault()));
    assert_eq!(
        keyring.probe_wrapping_keys().await,
        [master(OLD).id().to_string()]
    );
    database.remove().await;
}

/// The previous key was removed too early: from the settings of the command, and from those of a node.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_previous_key_nothing_rotates_and_no_node_starts() {
    let (database, store, before) = create_with_old_keys().await;
    let options = database.service_options();
    let error = rewrap(&options, &keys(NEW, &[])).await.unwrap_err();
    assert!(
        matches!(error, DataKeyError::Wrap(WrapError::NotLoaded { .. })),
        "{error}"
    );
    let error = create_data_key(&options, &keys(NEW, &[])).await.unwrap_err();
    assert!(
        matches!(error, DataKeyError::Wrap(WrapError::NotLoaded { .. })),
        "{error}"
    );
    let error = Keyring::open(store.data_keys.clone(), keys(NEW, &[]))
        .await
        .unwrap_err();
    let missing = master(OLD).id().to_string();
    assert!(error.to_string().contains(&missing), "{error}");
    assert_eq!(wrapped_by(&database).await, ids(OLD));
    let opened = Keyring::open(store.data_keys.clone(), keys(OLD, &[])).await;
    assert!(is_same_vault(&opened.unwrap().vault(), &before.vault()));
    database.remove().await;
}

/// The report of the previous start says nothing about this one, which may have other settings.
#[tokio::test(flavor = "multi_thread")]
async fn restarted_node_lacks_every_key_until_it_reports() {
    let database = Database::create().await;
    let (store, options) = (store(&database), database.service_options());
    drop(start_node(&store, "first", keys(NEW, &[OLD])).await.unwrap());
    drop(PgNode::start(&store.database, "first".to_owned()).await.unwrap());
    let RewrapOutcome::NodesLackKey(lacking) = rewrap(&options, &keys(NEW, &[OLD])).await.unwrap() else {
        panic!("it trusted the report of the previous start")
    };
    assert_eq!(lacking[0].wrapping_keys, None);
    database.remove().await;
}
