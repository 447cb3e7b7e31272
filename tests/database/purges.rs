//! Purges: what ended long ago is deleted, all of it, and nothing else.

use sqlx::Executor as _;
use time::Duration;
use tokio::runtime::Handle;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::{ChangeRequestId, CredentialId, PartnerId};
use vouchsafe_store::{ChangedObjects, LoadedAccess, PgStore};
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

/// A partner, and credentials with these numbers: 1 is live, 2 has ended since yesterday, 3 was replaced a
/// year ago by 1.
const INSERT_CREDENTIALS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO partners (partner_id, name, allowlist) VALUES ('00000000-0000-0000-0000-000000000009', 'A partner', '{}');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, not_before, not_after, revoked_at, rotated_from,
                             family_id)
    SELECT ('00000000-0000-0000-0000-00000000000' || c.number)::uuid, p.partner_id, sha256(c.number::text::bytea), sha256(''),
           now() - interval '2 years', c.not_after, c.revoked_at, c.rotated_from::uuid, '00000000-0000-0000-0000-000000000003'
      FROM partners AS p
     CROSS JOIN (VALUES (3, now() - interval '1 year', NULL::timestamptz, NULL),
                        (2, NULL, now() - interval '1 day', NULL),
                        (1, NULL, NULL, '00000000-0000-0000-0000-000000000003'))
           AS c (number, not_after, revoked_at, rotated_from);
    INSERT INTO audit_log (operator, action, subject, partner_id)
    SELECT 'admin', a.action, 'cred_' || replace(c.credential_id::text, '-', ''), c.partner_id
      FROM credentials AS c
      JOIN (VALUES ('credential.issue'), ('credential.revoke')) AS a (action)
        ON a.action = 'credential.issue' OR c.revoked_at IS NOT NULL";

fn credential(number: u128) -> CredentialId {
    CredentialId::from_uuid(uuid::Uuid::from_u128(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_credentials_are_neither_loaded_nor_kept() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current()).credentials;
    database
        .connect()
        .await
        .execute(INSERT_CREDENTIALS)
        .await
        .unwrap();
    let LoadedAccess {
        partners,
        credentials,
        ..
    } = store.load_access().await.unwrap();
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
    let LoadedAccess {
        partners,
        credentials,
        ..
    } = store.load_changed_access(changed).await.unwrap();
    assert!(partners.is_empty() && credentials.len() == 1 && credentials[0].revoked_at.is_some());
    assert_eq!(store.purge_ended().await.unwrap(), 1);
    let partner = PartnerId::from_uuid(uuid::Uuid::from_u128(9));
    let kept = store.list(partner, None, 10).await.unwrap();
    let ids: Vec<_> = kept.iter().map(|credential| credential.credential_id).collect();
    assert_eq!(ids, [credential(2), credential(1)], "listed for 90 days");
    assert_eq!(kept[1].rotated_from, Some(credential(3)), "as its HMAC says");
    assert!(store.record_first_use(credential(1)).await.unwrap().is_some());
    let findings = verify::check(&mut database.connect().await).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
    database.remove().await;
}

/// Tokens, sessions and links whose number is the days since their end; those without an end are live.
const INSERT_OPERATORS: &str = "
    INSERT INTO operators (name, role) VALUES ('jane', 'viewer'), ('sam', 'viewer');
    INSERT INTO operator_tokens (token_id, operator, token_hash, expires_at, revoked_at)
    SELECT gen_random_uuid(), 'jane', sha256(name::bytea), expires_at, revoked_at
      FROM (VALUES ('expired 91', now() - interval '91 days', NULL::timestamptz),
                   ('expired 89', now() - interval '89 days', NULL),
                   ('revoked 91', now() + interval '1 day', now() - interval '91 days'),
                   ('revoked 89', now() + interval '1 day', now() - interval '89 days'),
                   ('file, revoked 91', NULL, now() - interval '91 days'),
                   ('file', NULL, NULL)) AS t (name, expires_at, revoked_at);
    INSERT INTO operator_sessions (session_id, operator, token_hash, method, address, expires_at, ended_at)
    SELECT gen_random_uuid(), 'jane', sha256(name::bytea), 'link', name, expires_at, ended_at
      FROM (VALUES ('expired 31', now() - interval '31 days', NULL::timestamptz),
                   ('expired 29', now() - interval '29 days', NULL),
                   ('ended 31', now() - interval '29 days', now() - interval '31 days'),
                   ('live', now() + interval '1 hour', NULL)) AS s (name, expires_at, ended_at);
    INSERT INTO operator_sign_in_links (operator, token_hash, expires_at)
    VALUES ('jane', sha256('a'), now()), ('sam', sha256('b'), now() + interval '1 minute')";

#[tokio::test(flavor = "multi_thread")]
async fn ended_tokens_and_sessions_of_operators_are_purged() {
    let database = Database::create().await;
    let operators = PgStore::open(database.service_options(), Handle::current()).operators;
    let mut connection = database.connect().await;
    connection.execute(INSERT_OPERATORS).await.unwrap();
    operators.purge_tokens().await.unwrap();
    operators.purge_sessions().await.unwrap();
    let kept = "
        SELECT array(SELECT n FROM unnest(ARRAY['expired 91', 'expired 89', 'revoked 91', 'revoked 89', 'file, revoked 91', 'file']) AS n
                      WHERE EXISTS (SELECT FROM operator_tokens WHERE token_hash = sha256(n::bytea))),
               array(SELECT address FROM operator_sessions ORDER BY address),
               array(SELECT operator FROM operator_sign_in_links)";
    let kept: [Vec<String>; 3] = sqlx::query_as(kept)
        .fetch_one(&mut connection)
        .await
        .map(|(tokens, sessions, links)| [tokens, sessions, links])
        .unwrap();
    assert_eq!(
        kept,
        [
            // A sandbox's start stores the token of its file unless it is known: a revoked one must stay
            // revoked.
            vec!["expired 89", "revoked 89", "file, revoked 91", "file"],
            vec!["expired 29", "live"],
            vec!["sam"],
        ]
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_change_requests_are_purged_after_a_year() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    let now = SystemClock::new().now();
    // The ID has the time of the node that made the request.
    for (object, days, days_by_id, status) in [
        ("old and expired", 367, 367, "EXPIRED"),
        ("old and executed", 367, 367, "EXECUTED"),
        ("old, without an outcome", 367, 367, "CONFIRMED"),
        ("younger", 365, 365, "DECLINED"),
        ("younger, by a slow clock", 1, 400, "DECLINED"),
    ] {
        let insert = "
            INSERT INTO change_requests (request_id, kind, object, details, sealed, requested_by, requested_at, expires_at, status,
                                         decided_by)
            VALUES ($1, 'TOP_UP', $2, '{}', CASE WHEN $3 = 'CONFIRMED' THEN ''::bytea END, 'jane', now() - make_interval(days => $4),
                    now(), $3, 'sam')";
        sqlx::query(insert)
            .bind(ChangeRequestId::generate_at(now - Duration::days(days_by_id)))
            .bind(object)
            .bind(status)
            .bind(days)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    store.change_requests.purge_ended().await.unwrap();
    let kept: Vec<String> = sqlx::query_scalar("SELECT object FROM change_requests ORDER BY object")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(
        kept,
        ["old, without an outcome", "younger", "younger, by a slow clock"]
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_deliveries_are_purged_beyond_one_batch() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
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
