//! Rotation of the wrapping key and of data keys: all or nothing, never past a node that cannot follow.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use vouchsafe_security::vault::data_key::{KeyId, WrappedKey};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::Vault;
use vouchsafe_security::vault::wrapping_key::{WrapError, WrappingKey, WrappingKeys};
use vouchsafe_store::keyring::{Keyring, KeyringError};
use vouchsafe_store::{DataKeyError, PgNode, PgStore, RewrapOutcome, create_data_key, list_keys, rewrap};

use vouchsafe_test_harness::{Database, WAIT_TIMEOUT, eventually};

pub(super) const OLD: &str = "ab";
pub(super) const NEW: &str = "cd";
pub(super) const YEAR: Option<Duration> = Some(Duration::from_hours(365 * 24));

pub(super) fn master(byte: &str) -> MasterKey {
    MasterKey::parse(&byte.repeat(32)).unwrap()
}

pub(super) fn keys(current: &str, others: &[&str]) -> WrappingKeys {
    let others = others
        .iter()
        .map(|byte| Arc::new(master(byte)) as Arc<dyn WrappingKey>);
    WrappingKeys::new(Arc::new(master(current)), others.collect())
}

pub(super) fn store(database: &Database) -> PgStore {
    PgStore::open(database.service_options(), Handle::current())
}

/// Starts a node like the service.
pub(super) async fn start_node(
    store: &PgStore,
    name: &str,
    wrapping: WrappingKeys,
) -> Result<Keyring, KeyringError> {
    let keyring = Keyring::open(store.data_keys.clone(), wrapping).await?;
    let node = PgNode::start(&store.database, name.to_owned()).await?;
    let report = store
        .nodes
        .report_wrapping_keys(node.identity(), keyring.probe_wrapping_keys().await);
    report.await?;
    keyring.confirm().await?;
    Ok(keyring)
}

pub(super) async fn run(database: &Database, sql: &str) {
    let mut connection = database.connect().await;
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// Rewraps all data keys in the open transaction.
async fn rewrap_in(transaction: &mut PgConnection, from: &str, to: &str) {
    let rows: Vec<(i32, String, Vec<u8>)> = sqlx::query_as("SELECT key_id, purpose, wrapped FROM data_keys")
        .fetch_all(&mut *transaction)
        .await
        .unwrap();
    for (key_id, purpose, wrapped) in rows {
        let row = WrappedKey {
            key_id: KeyId(key_id),
            purpose: purpose.parse().unwrap(),
            wrapped,
            wrapped_by: master(from).id(),
        };
        let key = row.unwrap_key(&master(from)).unwrap();
        let rewrapped = key.wrap(&master(to)).unwrap();
        sqlx::query("UPDATE data_keys SET wrapped = $2, wrapped_by = $3 WHERE key_id = $1")
            .bind(key_id)
            .bind(rewrapped.wrapped)
            .bind(master(to).id().to_string())
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
}

/// The wrapping key of each row.
pub(super) async fn wrapped_by(database: &Database) -> Vec<String> {
    let report = list_keys(&database.service_options(), false).await.unwrap();
    report.data_keys.into_iter().map(|key| key.wrapped_by).collect()
}

pub(super) fn is_same_vault(one: &Vault, other: &Vault) -> bool {
    let mac = |vault: &Vault| {
        vault
            .checkpoint_key()
            .mac(1, time::OffsetDateTime::UNIX_EPOCH, "ab")
    };
    one.active_key() == other.active_key() && mac(one) == mac(other)
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_waits_for_every_live_node_and_rewraps_all_data_keys() {
    let database = Database::create().await;
    let (store, options) = (store(&database), database.service_options());
    let first = start_node(&store, "first", keys(OLD, &[])).await.unwrap();
    let target = keys(NEW, &[OLD]);
    let id = |byte: &str| master(byte).id().to_string();

    let outcome = rewrap(&options, &target).await.unwrap();
    let RewrapOutcome::NodesLackKey(lacking) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((lacking.len(), lacking[0].node.as_str()), (1, "first"));
    assert_eq!(wrapped_by(&database).await, [id(OLD), id(OLD)]);

    // A node that has taken an incarnation and not reported yet.
    let restarted = start_node(&store, "first", keys(NEW, &[OLD])).await.unwrap();
    drop(
        PgNode::start(&store.database, "starting".to_owned())
            .await
            .unwrap(),
    );
    assert!(matches!(
        rewrap(&options, &target).await.unwrap(),
        RewrapOutcome::NodesLackKey(_)
    ));
    run(
        &database,
        "UPDATE nodes SET lease_until = now() - interval '1 second' WHERE node = 'starting'",
    )
    .await;

    let outcome = rewrap(&options, &target).await.unwrap();
    assert!(matches!(outcome, RewrapOutcome::Rewrapped(keys) if keys.len() == 2));
    assert_eq!(wrapped_by(&database).await, [id(NEW), id(NEW)]);
    assert!(is_same_vault(&restarted.reload().await.unwrap(), &first.vault()));
    let alone = Keyring::open(store.data_keys.clone(), keys(NEW, &[]))
        .await
        .unwrap();
    assert!(is_same_vault(&alone.vault(), &first.vault()));
    let error = Keyring::open(store.data_keys.clone(), keys(OLD, &[]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, KeyringError::Locked(WrapError::NotLoaded { .. })),
        "{error}"
    );
    let mut connection = database.connect().await;
    let audited: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_log WHERE action = 'data_key.rewrap' AND before <> after AND operator = 'command-line'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(audited, 2);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_starts_during_a_rotation_follows_or_does_not_start() {
    let database = Database::create().await;
    let store = store(&database);
    drop(
        Keyring::open(store.data_keys.clone(), keys(OLD, &[]))
            .await
            .unwrap(),
    );
    drop(start_node(&store, "first", keys(NEW, &[OLD])).await.unwrap());
    // The node reads the old rows, then the rotation commits, then the node reports: the rotation has not
    // seen it.
    let late = Keyring::open(store.data_keys.clone(), keys(OLD, &[]))
        .await
        .unwrap();
    let outcome = rewrap(&database.service_options(), &keys(NEW, &[OLD]))
        .await
        .unwrap();
    assert!(matches!(outcome, RewrapOutcome::Rewrapped(_)));
    let node = PgNode::start(&store.database, "late".to_owned()).await.unwrap();
    let report = store
        .nodes
        .report_wrapping_keys(node.identity(), late.probe_wrapping_keys().await);
    report.await.unwrap();
    assert!(matches!(late.confirm().await, Err(KeyringError::Locked(_))));

    // A rotation that has begun holds the lock until its commit: the node waits, and sees the new rows.
    let mut rotation = database.connect().await;
    rotation
        .execute("BEGIN; LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut opened = JoinSet::new();
    opened.spawn(Keyring::open(store.data_keys.clone(), keys(OLD, &[])));
    let mut observer = database.connect().await;
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'data_keys'::regclass AND NOT granted";
    eventually("the start to wait for the rotation", WAIT_TIMEOUT, async || {
        let waiting = sqlx::query_scalar::<_, i64>(waits);
        let waiting = waiting.fetch_one(&mut observer).await.unwrap();
        (waiting > 0).then_some(())
    })
    .await;
    rewrap_in(&mut rotation, NEW, OLD).await;
    rotation.execute("COMMIT").await.unwrap();
    opened.join_next().await.unwrap().unwrap().unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_rotation_leaves_every_row_readable() {
    let database = Database::create().await;
    let (store, options) = (store(&database), database.service_options());
    let keyring = start_node(&store, "first", keys(NEW, &[OLD])).await.unwrap();
    // The first rotation of this database: its keys are wrapped by the new key already, so it goes to the old
    // one.
    let back = keys(OLD, &[NEW]);
    run(
        &database,
        "CREATE FUNCTION fail_on_codes() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF NEW.purpose = 'codes' THEN RAISE EXCEPTION 'disk full'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER fail BEFORE UPDATE ON data_keys FOR EACH ROW EXECUTE FUNCTION fail_on_codes()",
    )
    .await;
    let before = wrapped_by(&database).await;
    assert!(matches!(
        rewrap(&options, &back).await,
        Err(DataKeyError::Store(_))
    ));
    assert_eq!(wrapped_by(&database).await, before);
    // A row that changes on its way into the table is noticed before the commit.
    run(
        &database,
        "CREATE OR REPLACE FUNCTION fail_on_codes() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             NEW.wrapped := set_byte(NEW.wrapped, 20, get_byte(NEW.wrapped, 20) # 1);
             RETURN NEW;
         END $$",
    )
    .await;
    assert!(matches!(
        rewrap(&options, &back).await,
        Err(DataKeyError::Store(_))
    ));
    assert_eq!(wrapped_by(&database).await, before);
    let opened = Keyring::open(store.data_keys.clone(), keys(NEW, &[]))
        .await
        .unwrap();
    assert!(is_same_vault(&opened.vault(), &keyring.vault()));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_key_created_by_a_node_with_the_old_settings_has_the_new_wrapping() {
    let database = Database::create().await;
    let store = store(&database);
    // Before its last restart the node has the old key first.
    let node = start_node(&store, "first", keys(OLD, &[NEW])).await.unwrap();
    let options = database.service_options();
    rewrap(&options, &keys(NEW, &[OLD])).await.unwrap();
    run(
        &database,
        "UPDATE data_keys SET created_at = created_at - interval '366 days'",
    )
    .await;
    node.refresh(YEAR).await.unwrap();
    let new = master(NEW).id().to_string();
    assert_eq!(wrapped_by(&database).await, [new.clone(), new.clone(), new]);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_data_key_is_replaced_once_and_learned_by_all_nodes() {
    let database = Database::create().await;
    let store = store(&database);
    let first = start_node(&store, "first", keys(OLD, &[])).await.unwrap();
    let second = start_node(&store, "second", keys(OLD, &[])).await.unwrap();
    let active = first.vault().active_key();
    first.refresh(YEAR).await.unwrap();
    assert_eq!(first.vault().active_key(), active, "the key is new");
    run(
        &database,
        "UPDATE data_keys SET created_at = created_at - interval '366 days'",
    )
    .await;
    first.refresh(None).await.unwrap();
    assert_eq!(first.vault().active_key(), active, "no maximum age");

    let (one, other) = tokio::join!(first.refresh(YEAR), second.refresh(YEAR));
    one.unwrap();
    other.unwrap();
    let third = start_node(&store, "third", keys(OLD, &[])).await.unwrap();
    for keyring in [&first, &second] {
        keyring.refresh(YEAR).await.unwrap();
        assert_eq!(keyring.vault().active_key(), third.vault().active_key());
    }
    assert!(third.vault().active_key() > active);
    assert_eq!(wrapped_by(&database).await.len(), 3, "one key was created");

    create_data_key(&database.service_options(), &keys(OLD, &[]))
        .await
        .unwrap();
    let loaded = third.vault_with([third.vault().active_key()]).await.unwrap();
    assert_eq!(loaded.active_key(), third.vault().active_key());
    let report = list_keys(&database.service_options(), false).await.unwrap();
    let newest = report.data_keys.last().unwrap();
    assert!(newest.is_active && newest.key_id > third.vault().active_key().0);
    third.refresh(YEAR).await.unwrap();
    assert_eq!(third.vault().active_key().0, newest.key_id);
    let mut connection = database.connect().await;
    let audited: Vec<String> = sqlx::query_scalar(
        "SELECT operator FROM audit_log WHERE action = 'data_key.create' ORDER BY audit_id",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(audited, ["service", "command-line"]);
    database.remove().await;
}
