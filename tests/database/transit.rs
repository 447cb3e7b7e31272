//! Data keys wrapped by HashiCorp Vault Transit, against a stub of its HTTP API.

use std::sync::Arc;

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe_kms::transit::{TransitConfig, TransitKey};
use vouchsafe_security::vault::data_key::{DataKey, KeyId, KeyPurpose, WrappedKey};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::wrapping_key::{WrapError, WrappingKey, WrappingKeys};
use vouchsafe_store::keyring::{Keyring, KeyringError};
use vouchsafe_store::{PgStore, RewrapOutcome, create_data_key, list_keys, rewrap};

use vouchsafe_test_harness::{Database, TransitStub};

fn transit_at(stub: &TransitStub, mount: &str, key: &str) -> TransitKey {
    TransitKey::new(TransitConfig {
        address: &stub.url(),
        mount,
        key,
        token_file: stub.token_file(),
    })
    .unwrap()
}

fn transit(stub: &TransitStub) -> Arc<dyn WrappingKey> {
    Arc::new(transit_at(stub, "transit", "vouchsafe"))
}

fn local() -> Arc<dyn WrappingKey> {
    Arc::new(MasterKey::parse(&"ab".repeat(32)).unwrap())
}

fn data_key() -> DataKey {
    DataKey::generate(KeyId(7), KeyPurpose::Codes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_from_master_key_to_vault_and_back() {
    let (database, stub) = (Database::create().await, TransitStub::start());
    let store = PgStore::open(database.service_options(), Handle::current());
    let open = async |keys| Keyring::open(store.data_keys.clone(), keys).await;
    let before = open(WrappingKeys::new(local(), vec![])).await.unwrap();
    let options = database.service_options();
    let wrapped_by = async || {
        let keys = list_keys(&options, false).await.unwrap().data_keys;
        keys.into_iter().map(|key| key.wrapped_by).collect::<Vec<_>>()
    };
    let to_vault = WrappingKeys::new(transit(&stub), vec![local()]);
    assert!(matches!(
        rewrap(&options, &to_vault).await.unwrap(),
        RewrapOutcome::Rewrapped(_)
    ));
    assert_eq!(
        wrapped_by().await,
        [transit(&stub).id().to_string(), transit(&stub).id().to_string()]
    );
    let vault_alone = WrappingKeys::new(transit(&stub), vec![]);
    let opened = open(vault_alone.clone()).await.unwrap();
    assert_eq!(opened.vault().active_key(), before.vault().active_key());
    let error = open(WrappingKeys::new(local(), vec![])).await.unwrap_err();
    assert!(
        matches!(error, KeyringError::Locked(WrapError::NotLoaded { .. })),
        "{error}"
    );

    // Rows that were swapped do not decrypt.
    let mut connection = database.connect().await;
    let swap = "UPDATE data_keys AS k SET wrapped = (SELECT o.wrapped FROM data_keys AS o WHERE o.key_id <> k.key_id)";
    connection.execute(swap).await.unwrap();
    let error = open(vault_alone.clone()).await.unwrap_err().to_string();
    assert!(
        error.contains("400 cipher: message authentication failed"),
        "{error}"
    );
    connection.execute(swap).await.unwrap();

    let back = WrappingKeys::new(local(), vec![transit(&stub)]);
    assert!(matches!(
        rewrap(&options, &back).await.unwrap(),
        RewrapOutcome::Rewrapped(_)
    ));
    stub.seal();
    let opened = open(WrappingKeys::new(local(), vec![])).await.unwrap();
    assert_eq!(opened.vault().active_key(), before.vault().active_key());
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_that_does_not_work_is_not_reported() {
    let (database, stub) = (Database::create().await, TransitStub::start());
    let store = PgStore::open(database.service_options(), Handle::current());
    let ids = |keys: &[Arc<dyn WrappingKey>]| keys.iter().map(|key| key.id().to_string()).collect::<Vec<_>>();
    let foreign: Arc<dyn WrappingKey> = Arc::new(transit_at(&stub, "transit", "other"));
    let keys = WrappingKeys::new(local(), vec![transit(&stub), Arc::clone(&foreign)]);
    let keyring = Keyring::open(store.data_keys.clone(), keys).await.unwrap();
    assert_eq!(
        keyring.probe_wrapping_keys().await,
        ids(&[local(), transit(&stub)]),
        "the token does not permit the other key"
    );
    stub.seal();
    assert_eq!(keyring.probe_wrapping_keys().await, ids(&[local()]));
    assert_eq!(
        keyring.failing_wrapping_keys(),
        [foreign.id(), transit(&stub).id()]
    );
    stub.unseal();
    let encrypted = stub.encrypted();
    for _ in 0..2 {
        let working = keyring.probe_failing_wrapping_keys().await;
        assert_eq!(working, ids(&[local(), transit(&stub)]));
        assert_eq!(keyring.failing_wrapping_keys(), [foreign.id()]);
    }
    assert_eq!(
        stub.encrypted(),
        encrypted + 1,
        "a key that works is not probed again"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn id_of_a_key_names_its_vault_and_rows_survive_a_move_of_vault() {
    let stub = TransitStub::start();
    let other = TransitStub::start();
    let [here, there] = [transit(&stub), transit(&other)];
    assert_ne!(here.id(), there.id());
    assert_eq!(
        here.id().as_str(),
        format!("vault-transit:{}/transit/vouchsafe", stub.url())
    );
    let mut wrapped = here.wrap(&data_key()).await.unwrap();
    wrapped.wrapped_by = there.id();
    let loaded = WrappingKeys::new(local(), vec![here]);
    loaded.unwrap_key(&wrapped).await.unwrap();
    let error = WrappingKeys::new(there, vec![])
        .unwrap_key(&wrapped)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Vault refused to decrypt"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_to_an_unreachable_vault_changes_nothing() {
    let (database, stub) = (Database::create().await, TransitStub::start());
    let store = PgStore::open(database.service_options(), Handle::current());
    let local_alone = || WrappingKeys::new(local(), vec![]);
    drop(
        Keyring::open(store.data_keys.clone(), local_alone())
            .await
            .unwrap(),
    );
    stub.seal();
    let to_vault = WrappingKeys::new(transit(&stub), vec![local()]);
    let error = rewrap(&database.service_options(), &to_vault).await.unwrap_err();
    assert!(error.to_string().contains("unseal it"), "{error}");
    drop(
        Keyring::open(store.data_keys.clone(), local_alone())
            .await
            .unwrap(),
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_node_needs_vault_for_a_new_data_key_alone() {
    let (database, stub) = (Database::create().await, TransitStub::start());
    let store = PgStore::open(database.service_options(), Handle::current());
    let vault_alone = || WrappingKeys::new(transit(&stub), vec![]);
    let node = Keyring::open(store.data_keys.clone(), vault_alone())
        .await
        .unwrap();
    let first = node.vault().active_key();
    let second = create_data_key(&database.service_options(), &vault_alone())
        .await
        .unwrap();
    stub.seal();
    let error = Keyring::open(store.data_keys.clone(), vault_alone())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("unseal it"),
        "a node that starts: {error}"
    );
    let error = node.vault_with([second]).await.unwrap_err();
    assert!(
        error.to_string().contains("unseal it"),
        "a code under the new key: {error}"
    );
    assert!(node.refresh(None).await.is_err());
    assert_eq!(node.vault_with([first]).await.unwrap().active_key(), first);
    assert_eq!(node.sealing_vault().await.unwrap().active_key(), first);

    stub.unseal();
    node.refresh(None).await.unwrap();
    assert_eq!(node.vault_with([second]).await.unwrap().active_key(), second);
    drop(
        Keyring::open(store.data_keys.clone(), vault_alone())
            .await
            .unwrap(),
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn first_start_with_vault_creates_keys_that_only_vault_unwraps() {
    let (database, stub) = (Database::create().await, TransitStub::start());
    let store = PgStore::open(database.service_options(), Handle::current());
    let vault_alone = WrappingKeys::new(transit(&stub), vec![]);
    let first = Keyring::open(store.data_keys.clone(), vault_alone.clone())
        .await
        .unwrap();
    assert_eq!(stub.encrypted(), 2);
    let again = Keyring::open(store.data_keys.clone(), vault_alone).await.unwrap();
    assert_eq!(again.vault().active_key(), first.vault().active_key());
    assert_eq!(stub.encrypted(), 2);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrapped_key_is_bound_to_its_id_and_purpose() {
    let stub = TransitStub::start();
    let (transit, key) = (transit(&stub), data_key());
    let wrapped = transit.wrap(&key).await.unwrap();
    assert!(transit.unwrap_key(&wrapped).await.unwrap().is_same_key(&key));
    for moved in [
        WrappedKey {
            key_id: KeyId(8),
            ..wrapped.clone()
        },
        WrappedKey {
            purpose: KeyPurpose::BlindIndex,
            ..wrapped.clone()
        },
        WrappedKey {
            wrapped: b"vault:v1:none".to_vec(),
            ..wrapped.clone()
        },
        WrappedKey {
            wrapped: vec![0xff; 60],
            ..wrapped
        },
    ] {
        assert!(transit.unwrap_key(&moved).await.is_err(), "{moved:?}");
    }
}

/// Vault Agent replaces the file.
#[tokio::test(flavor = "multi_thread")]
async fn token_is_read_before_each_request() {
    let stub = TransitStub::start();
    let (transit, key) = (transit(&stub), data_key());
    let token = std::fs::read(stub.token_file()).unwrap();
    for (token, is_accepted) in [(&token[..], true), (b"expired", false), (&token, true)] {
        std::fs::write(stub.token_file(), token).unwrap();
        assert_eq!(transit.wrap(&key).await.is_ok(), is_accepted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_names_status_and_remedy_and_no_secret() {
    let stub = TransitStub::start();
    let key = data_key();
    let wrap = async |transit: TransitKey| transit.wrap(&key).await.unwrap_err().to_string();
    let stopped = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let unreachable = TransitKey::new(TransitConfig {
        address: &stopped,
        mount: "transit",
        key: "vouchsafe",
        token_file: stub.token_file(),
    })
    .unwrap();
    let mut errors = vec![
        (
            wrap(transit_at(&stub, "transit", "other")).await,
            "path \"transit/encrypt/other\"",
        ),
        (
            wrap(transit_at(&stub, "elsewhere", "vouchsafe")).await,
            "-path=elsewhere",
        ),
        (wrap(unreachable).await, "check VOUCHSAFE_VAULT_ADDR"),
    ];
    std::fs::write(stub.token_file(), "wrong-token\n").unwrap();
    errors.push((
        wrap(transit_at(&stub, "transit", "vouchsafe")).await,
        "invalid or expired",
    ));
    std::fs::write(stub.token_file(), "\n").unwrap();
    errors.push((
        wrap(transit_at(&stub, "transit", "vouchsafe")).await,
        "has no token",
    ));
    std::fs::remove_file(stub.token_file()).unwrap();
    errors.push((
        wrap(transit_at(&stub, "transit", "vouchsafe")).await,
        "cannot read the token for Vault",
    ));
    for (error, expected) in errors {
        assert!(error.contains(expected), "{error}");
        assert!(
            !error.contains("wrong-token") && !error.contains("hvs."),
            "{error}"
        );
    }
}
