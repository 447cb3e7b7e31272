//! Purges: what ended long ago is deleted, all of it, and nothing else.

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_store::{ChangedObjects, PgStore};
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

/// A partner, and credentials with these numbers: 1 is live, 2 has ended since yesterday, 3 was replaced a year ago by 1.
const INSERT_CREDENTIALS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO partners (partner_id, name, allowlist) VALUES ('00000000-0000-0000-0000-000000000009', 'A partner', '{}');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, not_before, not_after, revoked_at, rotated_from)
    SELECT ('00000000-0000-0000-0000-00000000000' || c.number)::uuid, p.partner_id, sha256(c.number::text::bytea), sha256(''),
           now() - interval '2 years', c.not_after, c.revoked_at, c.rotated_from::uuid
      FROM partners AS p
     CROSS JOIN (VALUES (3, now() - interval '1 year', NULL::timestamptz, NULL),
                        (2, NULL, now() - interval '1 day', NULL),
                        (1, NULL, NULL, '00000000-0000-0000-0000-000000000003'))
           AS c (number, not_after, revoked_at, rotated_from)";

fn credential(number: u128) -> CredentialId {
    CredentialId::from_uuid(uuid::Uuid::from_u128(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_credentials_are_neither_loaded_nor_kept() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current()).credentials;
    database
        .connect()
        .await
        .execute(INSERT_CREDENTIALS)
        .await
        .unwrap();
    let (partners, credentials) = store.load_access().await.unwrap();
    let ids: Vec<_> = credentials
        .iter()
        .map(|credential| credential.credential_id)
        .collect();
    assert_eq!(
        (partners.len(), &ids[..]),
        (1, &[credential(1)][..]),
        "live ones alone"
    );
    let changed = ChangedObjects {
        credentials: vec![credential(2)],
        ..ChangedObjects::default()
    };
    let (partners, credentials) = store.load_changed_access(changed).await.unwrap();
    assert!(partners.is_empty() && credentials.len() == 1 && credentials[0].revoked_at.is_some());
    assert_eq!(store.purge_ended().await.unwrap(), 1);
    let partner = PartnerId::from_uuid(uuid::Uuid::from_u128(9));
    let kept = store.list(partner, None, 10).await.unwrap();
    let ids: Vec<_> = kept.iter().map(|credential| credential.credential_id).collect();
    assert_eq!(ids, [credential(2), credential(1)], "listed for 90 days");
    assert_eq!(kept[1].rotated_from, None);
    assert!(store.record_first_use(credential(1)).await.unwrap().is_some());
    let findings = verify::check(&mut database.connect().await).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_deliveries_are_purged_beyond_one_batch() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current());
    let insert = "
        INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at,
                                event_at, updated_at)
        SELECT gen_random_uuid(), gen_random_uuid(), i, gen_random_uuid(), gen_random_uuid(), 'DELIVERED', 1, now(), now(), now(),
               now() - interval '1 year'
          FROM generate_series(1, 25000) AS i";
    database.connect().await.execute(insert).await.unwrap();
    assert_eq!(store.deliveries.purge_ended().await.unwrap(), 25_000);
    database.remove().await;
}
