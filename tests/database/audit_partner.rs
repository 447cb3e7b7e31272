//! Partners of audit entries that version 0.2.0 wrote: set by a trigger while it still runs, else filled in by the service.

use sqlx::{Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::PgStore;
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

/// Two partners. The first one owns one object of each kind, with the same digits in all ids.
const INSERT_OBJECTS: &str = "
    INSERT INTO partners (partner_id, name, allowlist)
    VALUES ('00000000000070008000000000000001', 'First', '{}'), ('00000000000070008000000000000002', 'Second', '{}');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash)
    VALUES ('0000000000007000800000000000000a', '00000000000070008000000000000001', sha256('k'), sha256('s'));
    INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
    VALUES ('00000000000070008000000000000001', '0000000000007000800000000000000a', 'https://example.com', true, '');
    INSERT INTO payouts (partner_id, payout_id, status, currency, amount, destination, destination_sealed, timeline, created_at, updated_at)
    VALUES ('00000000000070008000000000000001', '0000000000007000800000000000000a', 'PENDING', 'USD', 1, '{}', '', '[]', now(), now());
    INSERT INTO reconciliations (vendor, day) VALUES ('v', '2026-01-05');
    INSERT INTO drifts (drift_id, vendor, day, reference, kind, occurrence, partner_id, order_id, ours)
    VALUES ('0000000000007000800000000000000a', 'v', '2026-01-05', 'r', 'MISSING', 1, '00000000000070008000000000000001',
            '0000000000007000800000000000000a', '{}');
    INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, lines, created_at, updated_at)
    VALUES ('00000000000070008000000000000001', '0000000000007000800000000000000a', 'REFUNDED', 'USD', 1, true, 1, '[]', now(), now());
    INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency, quantity,
                           expiry_policy, requested_at)
    VALUES ('0000000000007000800000000000000a', '00000000000070008000000000000001', '0000000000007000800000000000000a', 0, 'v', 'p',
            1, 'USD', 1, '{}', now());";

/// Entries as version 0.2.0 writes them: those of the first partner, then others.
const INSERT_ENTRIES: &str = r#"
    INSERT INTO audit_log (operator, action, subject, after) VALUES
        ('admin', 'partner.create', 'ptn_00000000000070008000000000000001', NULL),
        ('admin', 'wallet.top_up', 'ptn_00000000000070008000000000000001/USD', NULL),
        ('admin', 'credential.revoke', 'cred_0000000000007000800000000000000a', NULL),
        ('admin', 'credential.revoke', 'cred_0000000000007000800000000000000d', '{"partner_id": "ptn_00000000000070008000000000000001"}'),
        ('admin', 'webhook.enable', 'wh_0000000000007000800000000000000a', NULL),
        ('ptn_00000000000070008000000000000001', 'webhook.create', 'wh_0000000000007000800000000000000d', NULL),
        ('admin', 'webhook.replay', 'wh_0000000000007000800000000000000d', NULL),
        ('admin', 'payout.pay', 'po_0000000000007000800000000000000a', NULL),
        ('admin', 'drift.resolve', 'drf_0000000000007000800000000000000a', NULL),
        ('admin', 'order.reject', 'ord_0000000000007000800000000000000a', NULL),
        ('admin', 'purchase.end', '00000000-0000-7000-8000-00000000000a', NULL),
        ('ptn_00000000000070008000000000000001', 'codes.retrieve', 'ord_0000000000007000800000000000000d', NULL),
        ('admin', 'request.create', 'crq_0000000000007000800000000000000a', '{"object": "po_0000000000007000800000000000000a"}');
    INSERT INTO audit_log (operator, action, subject, after) VALUES
        ('admin', 'partner.create', 'ptn_00000000000070008000000000000002', NULL),
        ('admin', 'drift.resolve', 'drf_0000000000007000800000000000000d', NULL),
        ('admin', 'product.put', 'gift', NULL),
        ('admin', 'stock.import', 'gift/100', NULL),
        ('admin', 'operator.create', 'ann', NULL),
        ('admin', 'request.create', 'crq_0000000000007000800000000000000b', '{"object": "ann"}');"#;

const OF_FIRST: usize = 13;

/// As after a migration: the newest entries do not have their partner yet.
const FORGET_PARTNERS: &str = "
    ALTER TABLE audit_log DISABLE TRIGGER USER;
    UPDATE audit_log SET partner_id = NULL;
    ALTER TABLE audit_log ENABLE TRIGGER USER;
    INSERT INTO audit_partner_backfill (audit_id) SELECT max(audit_id) FROM audit_log";

async fn assert_partners(store: &PgStore, connection: &mut PgConnection) {
    let first: PartnerId = "ptn_00000000000070008000000000000001".parse().unwrap();
    let filter = AuditFilter {
        partner_id: Some(first),
        ..AuditFilter::default()
    };
    let found = store.audit_log.list(filter, None, 100).await.unwrap();
    let subjects: Vec<_> = found.iter().map(|entry| &entry.subject).collect();
    assert_eq!(found.len(), OF_FIRST, "{subjects:?}");
    let newest = "SELECT array_agg(audit_id ORDER BY audit_id DESC) FROM (SELECT * FROM audit_log ORDER BY audit_id LIMIT 13) AS a";
    let expected: Vec<i64> = sqlx::query_scalar(newest)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let ids: Vec<_> = found.iter().map(|entry| entry.audit_id).collect();
    assert_eq!(ids, expected);
    let of_second = "SELECT count(*) FROM audit_log WHERE partner_id = '00000000000070008000000000000002'";
    let of_second: i64 = sqlx::query_scalar(of_second)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let without = "SELECT count(*) FROM audit_log WHERE partner_id IS NULL AND action <> 'stock.void'";
    let without: i64 = sqlx::query_scalar(without)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!((of_second, without), (1, 5));
    let findings = verify::check(connection).await.unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding.name == "audit.partner")
        .unwrap();
    assert!(finding.holds, "{finding:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_previous_version_have_their_partner_at_once() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    connection.execute(INSERT_OBJECTS).await.unwrap();
    connection.execute(INSERT_ENTRIES).await.unwrap();
    assert_partners(&store, &mut connection).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partners_of_old_entries_are_filled_in_batches_and_checkpoints_still_hold() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    connection.execute(INSERT_OBJECTS).await.unwrap();
    connection.execute(INSERT_ENTRIES).await.unwrap();
    let more = "INSERT INTO audit_log (operator, action, subject) SELECT 'admin', 'stock.void', 'gift' FROM generate_series(1, 600)";
    connection.execute(more).await.unwrap();
    store
        .audit_log
        .write_checkpoint(CheckpointKey::new([1; 32]))
        .await
        .unwrap()
        .unwrap();
    connection.execute(FORGET_PARTNERS).await.unwrap();
    let mut batches = 1;
    while store.audit_log.fill_partners().await.unwrap() {
        batches += 1;
    }
    assert!(batches > 2, "{batches}");
    assert_partners(&store, &mut connection).await;
    let findings = verify::check(&mut connection).await.unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding.name == "audit.checkpoints")
        .unwrap();
    assert!(finding.holds, "{finding:?}");
    assert!(!store.audit_log.fill_partners().await.unwrap(), "nothing is left");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partner_of_an_entry_is_set_once_and_nothing_else_changes() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    connection.execute(INSERT_OBJECTS).await.unwrap();
    connection.execute(INSERT_ENTRIES).await.unwrap();
    for change in [
        "UPDATE audit_log SET partner_id = NULL WHERE action = 'partner.create'",
        "UPDATE audit_log SET partner_id = gen_random_uuid() WHERE action = 'partner.create'",
        "UPDATE audit_log SET partner_id = gen_random_uuid(), subject = 'x' WHERE action = 'product.put'",
        "UPDATE audit_log SET after = NULL",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ] {
        assert!(connection.execute(change).await.is_err(), "{change}");
    }
    let set = "UPDATE audit_log SET partner_id = gen_random_uuid() WHERE action = 'product.put'";
    connection.execute(set).await.unwrap();
    database.remove().await;
}
