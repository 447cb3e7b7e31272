//! A data key that the database lost, as in a failover to a standby that lagged.

use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::seal::CodeId;
use vouchsafe_store::keyring::Keyring;

use crate::catalogue::{self, sku};
use crate::reencryption::TestShop;

/// The failover, in one transaction: the row is gone, and the next key gets its number.
async fn lose_newest_key(shop: &TestShop) {
    shop.run(
        "DELETE FROM data_keys WHERE key_id = (SELECT max(key_id) FROM data_keys);
         SELECT setval('data_keys_key_id_seq', (SELECT max(key_id) FROM data_keys))",
    )
    .await;
}

async fn active_after_refresh(keyring: &Keyring) -> KeyId {
    keyring.refresh(None).await.unwrap();
    keyring.vault().active_key()
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_under_a_lost_data_key_are_not_stored_and_the_node_returns_to_an_older_key() {
    let shop = TestShop::open().await;
    let first = shop.keyring.vault().active_key();
    shop.create_key().await;
    let lost = active_after_refresh(&shop.keyring).await;
    assert!(lost > first);
    lose_newest_key(&shop).await;

    let error = shop.try_import("LOST", 1).await.unwrap_err().to_string();
    assert!(error.contains(&format!("lacks data key {lost}")), "{error}");
    assert_eq!(shop.counts().await, [1_100]);
    assert_eq!(active_after_refresh(&shop.keyring).await, first);
    shop.import("STORED", 1).await;
    assert_eq!(shop.counts().await, [1_101]);
    shop.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reencryption_under_a_lost_data_key_changes_no_code() {
    let shop = TestShop::open().await;
    shop.create_key().await;
    shop.request().await;
    shop.create_key().await;
    shop.keyring.reload().await.unwrap();
    lose_newest_key(&shop).await;

    let before = shop.sealed(shop.codes[0]).await;
    let batch = shop.store.reencryptions.next_batch().await.unwrap().unwrap();
    let codes = batch.encrypt_again(&shop.keyring.vault()).unwrap();
    assert!(shop.store.reencryptions.store(batch, codes).await.is_err());
    assert_eq!(shop.sealed(shop.codes[0]).await, before);
    shop.keyring.reload().await.unwrap();
    while shop.step().await == Some(true) {}
    assert_eq!(shop.counts().await, [0, 1_100]);
    assert_eq!(shop.text_of(shop.codes[0]).await, "CODE-0");
    shop.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_data_key_under_the_number_of_a_lost_one_replaces_it() {
    let shop = TestShop::open().await;
    shop.create_key().await;
    let lost = active_after_refresh(&shop.keyring).await;
    lose_newest_key(&shop).await;
    shop.create_key().await;
    let other = catalogue::open_keyring(&shop.store).await;
    assert_eq!(other.vault().active_key(), lost);

    let code = VoucherCode::parse(CodeParts {
        code: "CODE",
        ..CodeParts::default()
    });
    let sealed = other.vault().seal(CodeId(7), &sku(), &code.unwrap()).unwrap();
    assert!(shop.keyring.vault().open(CodeId(7), &sku(), &sealed).is_err());
    assert_eq!(active_after_refresh(&shop.keyring).await, lost);
    assert!(shop.keyring.vault().open(CodeId(7), &sku(), &sealed).is_ok());
    shop.remove().await;
}
