//! SQL statements that break each invariant of endpoints and deliveries, and no other.

/// Invariant names and the statements that break only them.
pub(crate) const BREAKAGES: &[(&str, &[&str])] = &[
    (
        "webhook.partner",
        &[
            "INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
             VALUES (gen_random_uuid(), gen_random_uuid(), '', true, '')",
            INSERT_PROGRESS,
            INSERT_AUDIT_ENTRIES,
        ],
    ),
    ("webhook.partner", &[INSERT_NINE_WEBHOOKS, INSERT_PROGRESS, INSERT_AUDIT_ENTRIES]),
    (
        "webhook.cursor",
        &["UPDATE webhook_progress SET cursor = cursor + 100"],
    ),
    ("webhook.cursor", &["UPDATE webhook_progress SET cursor = -1"]),
    (
        "webhook.cursor",
        &["DELETE FROM webhook_progress WHERE leased_until IS NULL"],
    ),
    (
        "webhook.cursor",
        &["DELETE FROM webhooks WHERE NOT enabled"],
    ),
    (
        "webhook.disabled",
        &[
            "ALTER TABLE webhooks DROP CONSTRAINT webhooks_check",
            "UPDATE webhooks SET disabled_reason = NULL WHERE NOT enabled",
        ],
    ),
    (
        "webhook.disabled",
        &[
            "ALTER TABLE webhooks DROP CONSTRAINT webhooks_check",
            "UPDATE webhooks SET enabled = true",
        ],
    ),
    ("webhook.health", &["UPDATE webhook_progress SET failures = 1, backoff_step = 1"]),
    ("webhook.health", &["UPDATE webhook_progress SET failing_since = now()"]),
    (
        "webhook.health",
        &["UPDATE webhook_progress SET failures = 1, failing_since = now()"],
    ),
    (
        "webhook.lease",
        &["UPDATE webhook_progress SET leased_by = 'nobody' WHERE leased_until IS NOT NULL"],
    ),
    (
        "webhook.lease",
        &["UPDATE webhook_progress SET incarnation = incarnation + 1"],
    ),
    (
        "webhook.lease",
        &["UPDATE webhook_progress SET leased_until = now() + interval '1 hour' WHERE leased_until IS NOT NULL"],
    ),
    ("webhook.due", &["UPDATE webhook_progress SET due_at = NULL"]),
    ("webhook.counted", &["UPDATE webhook_progress SET delivered = 0"]),
    ("webhook.counted", &["UPDATE webhook_progress SET refused = refused - 1"]),
    (
        "webhook.audited",
        &[
            "INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
             SELECT partner_id, gen_random_uuid(), '', true, '' FROM partners",
            INSERT_PROGRESS,
        ],
    ),
    (
        "webhook.audited",
        &[
            "INSERT INTO deliveries
             SELECT d.partner_id, w.webhook_id, number, gen_random_uuid(), order_id, 'WAITING', 0, now(),
                    give_up_at + interval '1 hour', '[]', event_at
               FROM deliveries AS d
               JOIN webhooks AS w ON NOT w.enabled
              WHERE d.number = 1",
            "UPDATE webhook_progress SET due_at = now()",
        ],
    ),
    ("webhook.audited", &["UPDATE deliveries SET replays = replays + 1 WHERE replays > 0"]),
    (
        "delivery.endpoint",
        &["INSERT INTO deliveries
             SELECT partner_id, gen_random_uuid(), number, gen_random_uuid(), order_id, 'WAITING', 0, now(), give_up_at,
                    '[]', event_at
               FROM deliveries
              WHERE number = 1"],
    ),
    (
        "delivery.event",
        &["UPDATE deliveries SET number = number + 100 WHERE number = (SELECT max(number) FROM deliveries)"],
    ),
    (
        "delivery.event",
        &["UPDATE deliveries SET order_id = gen_random_uuid() WHERE number = (SELECT max(number) FROM deliveries)"],
    ),
    (
        "delivery.event",
        &["UPDATE deliveries
              SET event_at = event_at - interval '1 microsecond'
            WHERE number = (SELECT max(number) FROM deliveries)"],
    ),
    (
        "delivery.attempts",
        &["UPDATE deliveries SET attempts = attempts + 1 WHERE number = 1"],
    ),
    (
        "delivery.attempts",
        &["UPDATE deliveries SET log = '[]' WHERE number = 1"],
    ),
    (
        "delivery.attempts",
        &["UPDATE deliveries SET log = jsonb_set(log, '{0,status}', 'null') WHERE number = 1"],
    ),
    (
        "delivery.attempts",
        &["UPDATE deliveries SET log = jsonb_set(log, '{0,answer}', to_jsonb(repeat('x', 1025))) WHERE number = 1"],
    ),
    (
        "delivery.taken",
        &["UPDATE deliveries SET log = log - -1 WHERE state = 'DELIVERED'"],
    ),
    (
        "delivery.time",
        &["UPDATE deliveries SET give_up_at = give_up_at - interval '1 second' WHERE number = 1"],
    ),
    ("delivery.time", &["UPDATE deliveries SET replays = 1 WHERE number = 1"]),
    (
        "delivery.time",
        &["UPDATE deliveries SET state = 'FAILED' WHERE number = (SELECT max(number) FROM deliveries)"],
    ),
    (
        "delivery.turn",
        &["UPDATE deliveries SET next_at = now() WHERE number = 2"],
    ),
    (
        "delivery.turn",
        &["UPDATE deliveries SET next_at = 'infinity' WHERE number = 1"],
    ),
    (
        "delivery.sequence",
        &["UPDATE deliveries SET state = 'FAILED', updated_at = give_up_at WHERE number = 2"],
    ),
];

/// Nine more endpoints per partner.
const INSERT_NINE_WEBHOOKS: &str = "
    INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
    SELECT partner_id, gen_random_uuid(), n::text, true, ''
      FROM partners
     CROSS JOIN generate_series(1, 9) AS n";

/// Progress rows of new endpoints.
const INSERT_PROGRESS: &str = "
    INSERT INTO webhook_progress (partner_id, webhook_id, cursor)
    SELECT partner_id, webhook_id, 0 FROM webhooks
        ON CONFLICT DO NOTHING";

const INSERT_AUDIT_ENTRIES: &str = "
    INSERT INTO audit_log (operator, action, subject, partner_id)
    SELECT 'service', 'webhook.create', 'wh_' || replace(webhook_id::text, '-', ''), partner_id FROM webhooks";
