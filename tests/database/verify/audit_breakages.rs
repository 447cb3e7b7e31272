//! SQL statements that break each invariant of the audit trail.

/// Invariant names and the statements that break them.
pub(crate) const BREAKAGES: &[(&str, &[&str])] = &[
    (
        "booking.audited",
        &["DELETE FROM audit_log WHERE action = 'wallet.top_up'"],
    ),
    (
        "decision.audited",
        &["DELETE FROM audit_log WHERE action = 'order.cancel'"],
    ),
    (
        "decision.audited",
        &[r#"UPDATE payouts
                SET status = 'REJECTED',
                    timeline = timeline || '[{"status":"REJECTED","at":"2020-01-01T00:00:00Z","by":"partner"}]'"#],
    ),
    ("erasure.audited", &["UPDATE orders SET erased_at = now()"]),
    (
        "retrieval.audited",
        &["DELETE FROM audit_log WHERE action = 'codes.retrieve'"],
    ),
    (
        "retrieval.audited",
        &["UPDATE audit_log SET at = at + interval '1 second' WHERE action = 'codes.retrieve'"],
    ),
    (
        "retrieval.audited",
        &[r#"UPDATE audit_log SET after = after || '{"vouchers":0}' WHERE action = 'codes.retrieve'"#],
    ),
    (
        "retrieval.audited",
        &[
            r#"UPDATE audit_log SET after = after || '{"credential_id":"cred_0"}' WHERE action = 'codes.retrieve'"#,
        ],
    ),
    (
        "retrieval.audited",
        &["UPDATE audit_log SET subject = 'ord_0' WHERE action = 'codes.retrieve'"],
    ),
    (
        "retrieval.audited",
        &["INSERT INTO audit_log (operator, action, subject, after)
             SELECT operator, action, 'ord_0', after FROM audit_log WHERE action = 'codes.retrieve' LIMIT 1"],
    ),
    (
        "retrieval.audited",
        &[
            "UPDATE allocations SET first_retrieved_at = first_retrieved_at + interval '1 second'
              WHERE first_retrieved_at IS NOT NULL",
        ],
    ),
    (
        "retrieval.audited",
        &["UPDATE orders SET codes_retrieved_at = NULL WHERE codes_retrieved_at IS NOT NULL"],
    ),
    (
        "audit.checkpoints",
        &["UPDATE audit_log SET operator = 'nobody' WHERE audit_id = 2"],
    ),
    (
        "audit.checkpoints",
        &[r#"UPDATE audit_log SET after = after || '{"name":"Other"}' WHERE action = 'partner.create'"#],
    ),
    (
        "audit.checkpoints",
        &["DELETE FROM audit_log WHERE action = 'product.put'"],
    ),
    (
        "audit.checkpoints",
        &[
            "DELETE FROM audit_checkpoints WHERE number = 1",
            "DELETE FROM audit_log WHERE audit_id = 1",
        ],
    ),
    (
        "audit.checkpoints",
        &[
            "DELETE FROM audit_checkpoints WHERE number = 1",
            "UPDATE audit_checkpoints SET number = number - 1",
        ],
    ),
    (
        "audit.checkpoints",
        &["UPDATE audit_checkpoints SET entries = entries || 1::bigint WHERE number = 2"],
    ),
    (
        "audit.checkpoints",
        &[
            "INSERT INTO audit_log (audit_id, operator, action, subject) OVERRIDING SYSTEM VALUE
             VALUES (-100000, 'somebody', 'stock.void', 'slipped in')",
        ],
    ),
    (
        "audit.partner",
        &["UPDATE audit_log SET partner_id = gen_random_uuid() WHERE action = 'codes.retrieve'"],
    ),
    (
        "audit.partner",
        &["UPDATE audit_log SET partner_id = NULL WHERE action = 'order.cancel'"],
    ),
];
