//! Partners of audit entries: derived from actor and object, to verify those that the service has written.

use sqlx::Executor as _;
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

/// Two partners. The first one owns one object of each kind, with the same digits in all ids.
const INSERT_OBJECTS: &str = "
    INSERT INTO partners (partner_id, name, allowlist)
    VALUES ('00000000000070008000000000000001', 'First', '{}'), ('00000000000070008000000000000002', 'Second', '{}');
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, family_id)
    VALUES ('0000000000007000800000000000000a', '00000000000070008000000000000001', sha256('k'), sha256('s'),
            '0000000000007000800000000000000a');
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

/// Entries without a partner: those that concern the first partner, one of the second, then others.
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

const OF_FIRST: i64 = 13;

const OF_A_PARTNER: usize = 14;

#[tokio::test(flavor = "multi_thread")]
async fn entry_of_each_kind_without_its_partner_is_reported() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    connection.execute(INSERT_OBJECTS).await.unwrap();
    connection.execute(INSERT_ENTRIES).await.unwrap();
    let findings = verify::check(&mut connection).await.unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding.name == "audit.partner")
        .unwrap();
    assert_eq!(finding.rows.len(), OF_A_PARTNER, "{finding:?}");
    let of_first = "SELECT count(*) FROM audit_log AS a WHERE partner_of_audit_entry(a) = '00000000000070008000000000000001'";
    let of_first: i64 = sqlx::query_scalar(of_first)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(of_first, OF_FIRST);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_never_changes() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    connection.execute(INSERT_OBJECTS).await.unwrap();
    connection.execute(INSERT_ENTRIES).await.unwrap();
    for change in [
        "UPDATE audit_log SET partner_id = gen_random_uuid() WHERE action = 'product.put'",
        "UPDATE audit_log SET after = NULL",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ] {
        assert!(connection.execute(change).await.is_err(), "{change}");
    }
    database.remove().await;
}
