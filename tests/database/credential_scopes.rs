//! Scopes of credentials that version 0.2.0 rotates.

use sqlx::{Connection as _, Executor as _, PgConnection};
use vouchsafe_test_harness::Database;

/// A restricted and an unrestricted credential.
const INSERT_CREDENTIALS: &str = "
    INSERT INTO partners (partner_id, name, allowlist) VALUES ('00000000-0000-0000-0000-000000000009', 'A partner', '{}');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, scopes)
    VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000009', sha256('k1'), sha256('s1'), '{orders,read}'),
           ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000009', sha256('k2'), sha256('s2'), NULL);";

/// Successors as version 0.2.0 inserts them; the third one is a successor of a successor.
const ROTATE: &str = "
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after, rotated_from)
    VALUES ('00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000009', sha256('k3'), sha256('s3'), NULL, now(), NULL,
            '00000000-0000-0000-0000-000000000001');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after, rotated_from)
    VALUES ('00000000-0000-0000-0000-000000000004', '00000000-0000-0000-0000-000000000009', sha256('k4'), sha256('s4'), NULL, now(), NULL,
            '00000000-0000-0000-0000-000000000002');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, allowlist, not_before, not_after, rotated_from)
    VALUES ('00000000-0000-0000-0000-000000000005', '00000000-0000-0000-0000-000000000009', sha256('k5'), sha256('s5'), NULL, now(), NULL,
            '00000000-0000-0000-0000-000000000003');";

#[tokio::test(flavor = "multi_thread")]
async fn successor_that_the_previous_version_inserts_has_the_scopes_of_its_predecessor() {
    let database = Database::create().await;
    let mut service = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    service.execute(INSERT_CREDENTIALS).await.unwrap();
    service.execute(ROTATE).await.unwrap();
    let scopes: Vec<Option<Vec<String>>> =
        sqlx::query_scalar("SELECT scopes FROM credentials ORDER BY credential_id")
            .fetch_all(&mut service)
            .await
            .unwrap();
    let restricted = Some(vec!["orders".to_owned(), "read".to_owned()]);
    assert_eq!(
        scopes,
        [restricted.clone(), None, restricted.clone(), None, restricted]
    );
    service.close().await.unwrap();
    database.remove().await;
}
