//! Re-encryption of old codes: resumable, once per code, and in place.

use sqlx::{AssertSqlSafe, Executor as _};
use tokio::runtime::Handle;
use vouchsafe_domain::product::CodeIdentity;
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::{CodeId, SealedBlob};
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{
    PgStore, ReencryptionRow, RequestOutcome, create_data_key, list_keys, request_reencryption,
};
use vouchsafe_verify as verify;

use vouchsafe_test_harness::Database;

use crate::catalogue::{self, BRAND, product, seal_voucher, sku};

/// More than a batch.
const CODES: usize = 1_100;

pub(super) struct TestShop {
    database: Database,
    pub(super) store: PgStore,
    pub(super) keyring: Keyring,
    pub(super) codes: Vec<CodeId>,
}

impl TestShop {
    /// Stores codes under the first data key and creates the second one, which all nodes had the time to
    /// learn.
    pub(super) async fn open() -> Self {
        let database = Database::create().await;
        let store = PgStore::open(database.service_options(), Handle::current());
        let keyring = catalogue::open_keyring(&store).await;
        catalogue::seed(&store, product(BRAND)).await;
        let mut shop = Self {
            database,
            store,
            keyring,
            codes: Vec::new(),
        };
        shop.codes = shop.import("CODE", CODES).await;
        shop
    }

    pub(super) async fn import(&self, prefix: &str, count: usize) -> Vec<CodeId> {
        self.try_import(prefix, count).await.unwrap()
    }

    pub(super) async fn try_import(&self, prefix: &str, count: usize) -> Result<Vec<CodeId>, StoreError> {
        let vault = self.keyring.sealing_vault().await.unwrap();
        let ids = self.store.stock.generate_ids(count).await.unwrap();
        let sealed = ids.codes.iter().enumerate();
        let vouchers = sealed.map(|(n, id)| seal_voucher(&vault, *id, &format!("{prefix}-{n}"), None));
        catalogue::try_import(&self.store, CodeIdentity::Code, ids.stock, vouchers.collect()).await?;
        Ok(ids.codes)
    }

    pub(super) async fn create_key(&self) {
        let master = MasterKey::parse(&"ab".repeat(32)).unwrap();
        create_data_key(&self.database.service_options(), &master.into())
            .await
            .unwrap();
        self.run("UPDATE data_keys SET created_at = created_at - interval '2 minutes'")
            .await;
    }

    pub(super) async fn run(&self, sql: &str) {
        let mut connection = self.database.connect().await;
        connection.execute(AssertSqlSafe(sql)).await.unwrap();
    }

    pub(super) async fn request(&self) -> RequestOutcome {
        request_reencryption(&self.database.service_options())
            .await
            .unwrap()
    }

    /// Encrypts one batch again, as the service does. Returns whether there is more to do.
    pub(super) async fn step(&self) -> Option<bool> {
        let batch = self.store.reencryptions.next_batch().await.unwrap()?;
        self.keyring.vault_with([batch.key_id()]).await.unwrap();
        let vault = self.keyring.sealing_vault().await.unwrap();
        let codes = batch.encrypt_again(&vault).unwrap();
        Some(self.store.reencryptions.store(batch, codes).await.unwrap())
    }

    pub(super) async fn sealed(&self, code_id: CodeId) -> SealedBlob {
        let mut connection = self.database.connect().await;
        let (key_id, nonce, ciphertext): (i32, Vec<u8>, Vec<u8>) =
            sqlx::query_as("SELECT key_id, nonce, ciphertext FROM codes WHERE code_id = $1")
                .bind(code_id.0)
                .fetch_one(&mut connection)
                .await
                .unwrap();
        SealedBlob {
            key_id: vouchsafe_security::vault::data_key::KeyId(key_id),
            nonce: nonce.try_into().unwrap(),
            ciphertext,
        }
    }

    pub(super) async fn text_of(&self, code_id: CodeId) -> String {
        let sealed = self.sealed(code_id).await;
        let code = self.keyring.vault().open(code_id, &sku(), &sealed).unwrap();
        code.parts().map(|(_, text)| text).next().unwrap().to_owned()
    }

    /// The codes under each data key for codes.
    pub(super) async fn counts(&self) -> Vec<i64> {
        let report = list_keys(&self.database.service_options(), true).await.unwrap();
        report.data_keys.into_iter().filter_map(|key| key.codes).collect()
    }

    async fn newest_request(&self) -> ReencryptionRow {
        let report = list_keys(&self.database.service_options(), false).await.unwrap();
        report.reencryptions.into_iter().next().unwrap()
    }

    async fn count_audited_requests(&self) -> i64 {
        let mut connection = self.database.connect().await;
        sqlx::query_scalar(
            "SELECT count(*) FROM audit_log WHERE action = 'code.reencrypt' AND operator = 'command-line'",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap()
    }

    pub(super) async fn remove(self) {
        let mut connection = self.database.connect().await;
        let findings = verify::check(&mut connection).await.unwrap();
        assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
        self.database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_codes_are_encrypted_under_the_newest_key_in_batches() {
    let shop = TestShop::open().await;
    assert_eq!(shop.request().await, RequestOutcome::NoOlderKey);
    shop.create_key().await;
    assert!(matches!(shop.request().await, RequestOutcome::Requested(_)));
    assert!(matches!(shop.request().await, RequestOutcome::InProgress(_)));
    assert_eq!(shop.count_audited_requests().await, 1);
    let before = shop.sealed(shop.codes[0]).await;
    assert_eq!(shop.counts().await, [1_100, 0]);

    assert_eq!(shop.step().await, Some(true));
    assert_eq!(shop.counts().await, [100, 1_000]);
    // A node that restarts continues after the position; new codes are left alone.
    let later = shop.import("LATER", 5).await;
    let untouched = shop.sealed(later[0]).await;
    assert_eq!(shop.step().await, Some(false));
    assert_eq!(shop.step().await, None);
    assert_eq!(shop.counts().await, [0, 1_105]);
    assert_eq!(shop.sealed(later[0]).await, untouched);

    let after = shop.sealed(shop.codes[0]).await;
    assert!(after.key_id > before.key_id && after.nonce != before.nonce);
    assert_eq!(shop.text_of(shop.codes[0]).await, "CODE-0");
    assert_eq!(shop.text_of(shop.codes[1_099]).await, "CODE-1099");
    let vault = shop.keyring.vault();
    assert!(
        vault.open(shop.codes[1], &sku(), &after).is_err(),
        "bound to its row"
    );
    assert!(
        vault.open(shop.codes[0], &sku(), &before).is_ok(),
        "old key stays loaded"
    );
    let row = shop.newest_request().await;
    assert_eq!(
        (row.codes, row.failures, row.ended_at.is_some()),
        (1_100, 0, true)
    );
    let seals = shop.store.data_keys.load().await.unwrap().active_seals;
    assert_eq!(
        seals, 1_105,
        "re-encrypted codes count against the limit of the key"
    );
    shop.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_is_stored_once_and_changed_code_is_left_alone() {
    let shop = TestShop::open().await;
    shop.create_key().await;
    shop.request().await;
    let batch = async || shop.store.reencryptions.next_batch().await.unwrap().unwrap();
    let (mine, other) = (batch().await, batch().await);
    shop.keyring.reload().await.unwrap();
    let vault = shop.keyring.vault();
    let [first, second] = [&mine, &other].map(|batch| batch.encrypt_again(&vault).unwrap());
    // Between read and write another session replaces a code, as a later re-encryption would.
    shop.run(&format!(
        "UPDATE codes SET nonce = decode('000102030405060708090a0b', 'hex') WHERE code_id = {}",
        shop.codes[3].0
    ))
    .await;
    assert!(shop.store.reencryptions.store(mine, first).await.unwrap());
    let stored = shop.sealed(shop.codes[0]).await;
    assert!(
        !shop.store.reencryptions.store(other, second).await.unwrap(),
        "stored already"
    );
    assert_eq!(shop.sealed(shop.codes[0]).await, stored);
    assert_eq!(shop.newest_request().await.codes, 999);
    assert!(shop.sealed(shop.codes[3]).await.nonce.starts_with(&[0, 1, 2]));

    // Now undecryptable: it is counted and stays, also for the next request.
    assert_eq!(shop.step().await, Some(false));
    shop.request().await;
    while shop.step().await == Some(true) {}
    let row = shop.newest_request().await;
    assert_eq!((row.codes, row.failures), (0, 1));
    shop.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_waits_until_nodes_know_the_new_key() {
    let shop = TestShop::open().await;
    shop.create_key().await;
    shop.run("UPDATE data_keys SET created_at = now()").await;
    shop.request().await;
    assert_eq!(shop.step().await, None);
    shop.run("UPDATE data_keys SET created_at = now() - interval '61 seconds'")
        .await;
    assert_eq!(shop.step().await, Some(true));
    shop.remove().await;
}

/// The last statement of a batch fails, as in a crash: its codes and its position stay together.
#[tokio::test(flavor = "multi_thread")]
async fn batch_that_is_interrupted_changes_no_code_and_is_repeated() {
    let shop = TestShop::open().await;
    shop.create_key().await;
    shop.request().await;
    assert_eq!(shop.step().await, Some(true));
    let last = shop.codes[1_099];
    let before = shop.sealed(last).await;
    shop.run("ALTER TABLE data_keys ADD CONSTRAINT crash CHECK (reencrypted <= 1000) NOT VALID")
        .await;
    let batch = shop.store.reencryptions.next_batch().await.unwrap().unwrap();
    let codes = batch.encrypt_again(&shop.keyring.vault()).unwrap();
    assert_eq!(codes.len(), 100);
    assert!(shop.store.reencryptions.store(batch, codes).await.is_err());
    assert_eq!(shop.sealed(last).await, before);
    assert_eq!(shop.counts().await, [100, 1_000]);
    assert_eq!(shop.text_of(last).await, "CODE-1099");
    assert_eq!(shop.text_of(shop.codes[0]).await, "CODE-0");
    let row = shop.newest_request().await;
    assert_eq!((row.codes, row.ended_at), (1_000, None));

    shop.run("ALTER TABLE data_keys DROP CONSTRAINT crash").await;
    assert_eq!(shop.step().await, Some(false));
    assert_eq!(shop.counts().await, [0, 1_100]);
    assert_eq!(shop.text_of(last).await, "CODE-1099");
    shop.remove().await;
}
