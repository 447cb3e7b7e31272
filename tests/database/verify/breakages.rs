//! SQL statements that break each invariant.

/// Invariant names and the statements that break them.
pub(crate) const BREAKAGES: &[(&str, &[&str])] = &[
    (
        "money.conservation",
        &["UPDATE wallets SET balance = balance + 1"],
    ),
    (
        "money.chain",
        &["UPDATE ledger SET balance_after = balance_after + 1 WHERE sequence = 2"],
    ),
    (
        "money.no_overdraft",
        &[
            "ALTER TABLE ledger DROP CONSTRAINT ledger_balance_after_check",
            "UPDATE ledger SET balance_after = -1 WHERE sequence = 3",
        ],
    ),
    (
        "money.signs",
        &["UPDATE ledger SET amount = -amount WHERE kind = 'DEBIT'"],
    ),
    (
        "money.order_paid",
        &["DELETE FROM ledger WHERE kind = 'DEBIT' AND sequence = 3"],
    ),
    (
        "money.order_paid",
        &["UPDATE ledger SET order_id = gen_random_uuid() WHERE kind = 'REFUND'"],
    ),
    (
        "money.order_paid",
        &["UPDATE orders SET currency = 'EUR' WHERE status = 'DELIVERED'"],
    ),
    (
        "money.order_units",
        &["UPDATE ledger SET amount = amount - 1 WHERE kind = 'DEBIT' AND sequence = 2"],
    ),
    ("money.kinds", &["UPDATE ledger SET kind = 'UNKNOWN' WHERE kind = 'TOP_UP'"]),
    (
        "order.status",
        &["UPDATE orders SET fulfilled_from = 'unknown' WHERE fulfilled_from IS NOT NULL"],
    ),
    (
        "order.status",
        &["UPDATE orders SET status = 'UNKNOWN' WHERE status = 'DELIVERED'"],
    ),
    (
        "order.closed",
        &["UPDATE orders SET pending_reason = 'UNKNOWN' WHERE pending_reason IS NOT NULL"],
    ),
    (
        "stock.state",
        &["INSERT INTO allocations (stock_id, withdrawal_reason) SELECT max(stock_id), 'unknown' FROM stock"],
    ),
    (
        "money.kinds",
        &["UPDATE ledger SET order_id = gen_random_uuid() WHERE kind = 'TOP_UP'"],
    ),
    (
        "money.kinds",
        &[
            "ALTER TABLE ledger DROP CONSTRAINT debit_of_order",
            "UPDATE ledger SET transaction_id = gen_random_uuid() WHERE kind = 'DEBIT' AND sequence = 2",
        ],
    ),
    (
        "money.pending",
        &["UPDATE wallets SET pending_orders = pending_orders - 1"],
    ),
    ("money.payout", &["UPDATE payouts SET amount = amount + 1"]),
    (
        "money.pending_payouts",
        &["UPDATE wallets SET pending_payouts = pending_payouts - 1"],
    ),
    (
        "caps.order_totals",
        &[
            "SELECT record_order_totals_v1(partner_id, currency) FROM wallets",
            "UPDATE order_totals SET orders = orders + 1 WHERE at > '-infinity'",
        ],
    ),
    (
        "payout.stages",
        &["UPDATE payouts SET timeline = timeline || timeline"],
    ),
    (
        "order.total",
        &["UPDATE orders SET total = total + 1 WHERE status = 'PENDING'"],
    ),
    (
        "order.holds",
        &["DELETE FROM allocations WHERE stock_id = (SELECT min(stock_id) FROM allocations)"],
    ),
    ("order.owns", &["UPDATE allocations SET line = 1"]),
    (
        "order.owns",
        &["UPDATE allocations SET order_id = gen_random_uuid() WHERE order_id IS NOT NULL"],
    ),
    (
        "order.valid",
        &["UPDATE stock SET expiry = '2020-02-29' WHERE stock_id = (SELECT min(stock_id) FROM allocations)"],
    ),
    (
        "order.returned",
        &["UPDATE orders SET lines = lines::jsonb #- '{0,f}' WHERE status = 'REFUNDED'"],
    ),
    (
        "order.status",
        &["UPDATE orders SET status = 'DELIVERED' WHERE status = 'PENDING'"],
    ),
    (
        "order.closed",
        &["UPDATE orders SET closed = true WHERE status = 'PENDING'"],
    ),
    (
        "order.stages",
        &[
            r#"UPDATE orders SET timeline = '[{"status":"REFUNDED","at":"2026-11-20T12:00:00Z"}]' || order_timeline_v1(orders)"#,
        ],
    ),
    ("order.currency", &["UPDATE products SET currency = 'EUR'"]),
    (
        "purchase.line",
        &["UPDATE purchases SET quantity = quantity + 100"],
    ),
    (
        "order.demands",
        &["INSERT INTO order_demands (product_id, denomination, order_id, partner_id, accepted_at)
             SELECT 'gift', 1, order_id, partner_id, created_at FROM orders LIMIT 1"],
    ),
    (
        "order.demands",
        &[
            "ALTER TABLE orders DISABLE TRIGGER USER",
            r#"UPDATE orders SET pending_reason = 'VENDOR', closed = false, lines = '[{"p":"gift","d":1,"u":1,"q":1,"a":0}]'
                WHERE status = 'DELIVERED'"#,
        ],
    ),
    (
        "order.moment",
        &["UPDATE orders SET created_at = created_at + interval '1 microsecond' WHERE status = 'PENDING'"],
    ),
    (
        "order.partner",
        &["UPDATE wallets SET partner_id = gen_random_uuid()"],
    ),
    ("key.order", &["DELETE FROM idempotency_keys WHERE status = 202"]),
    (
        "key.booking",
        &["UPDATE idempotency_keys SET expires_at = now() WHERE expires_at = 'infinity'"],
    ),
    (
        "key.time",
        &["UPDATE idempotency_keys SET expires_at = now() + interval '2 days' WHERE status = 202"],
    ),
    (
        "stock.once",
        &["INSERT INTO stock SELECT stock_id + 1000, chunk_id, code_id, expiry FROM stock LIMIT 1"],
    ),
    (
        "stock.state",
        &[
            "ALTER TABLE allocations DROP CONSTRAINT allocations_check",
            "UPDATE allocations SET withdrawal_reason = 'void' WHERE stock_id = (SELECT min(stock_id) FROM allocations)",
        ],
    ),
    (
        "stock.state",
        &["UPDATE allocations SET first_retrieved_at = now() WHERE returned_at IS NOT NULL"],
    ),
    (
        "stock.expired",
        &["INSERT INTO allocations (stock_id, withdrawal_reason)
             SELECT max(stock_id), 'expired' FROM stock"],
    ),
    (
        "stock.code",
        &["UPDATE codes SET denomination = denomination + 1"],
    ),
    (
        "stock.chunk",
        &["UPDATE chunks SET last_stock_id = last_stock_id - 1 WHERE last_stock_id > first_stock_id"],
    ),
    (
        "stock.expiry",
        &["UPDATE stock SET expiry = expiry - 1 WHERE stock_id = (SELECT min(stock_id) FROM stock)"],
    ),
    ("stock.emptied", &["UPDATE chunks SET emptied = true"]),
    (
        "stock.counts",
        &["UPDATE chunks SET voided = 0, expired = 0, restocked = 0"],
    ),
    ("stock.totals", &["INSERT INTO stock_totals SELECT product_id, denomination, 1, 0, 0 FROM chunks LIMIT 1"]),
    ("stock.cleared", &["UPDATE chunks SET cleared_epoch = cleared_epoch + 1"]),
    (
        "stock.cleared",
        &["UPDATE continuity SET quarantine_epoch = quarantine_epoch + 1"],
    ),
    (
        "stock.owner",
        &["UPDATE chunks SET incarnation = incarnation + 1"],
    ),
    (
        "stock.taken",
        &["DELETE FROM stock WHERE stock_id = (SELECT min(stock_id) FROM allocations)"],
    ),
    (
        "stock.public_id",
        &["UPDATE allocations SET voucher_id = (SELECT min(voucher_id::text)::uuid FROM allocations)"],
    ),
    ("stock.denomination", &["DELETE FROM products"]),
    (
        "codes.unique",
        &[
            "ALTER TABLE codes DROP CONSTRAINT codes_blind_index_key",
            "UPDATE codes SET blind_index = sha256('the same')",
        ],
    ),
    ("codes.batch", &["UPDATE codes SET import_id = -1"]),
    (
        "codes.nonce",
        &["UPDATE codes SET nonce = substr(sha256('the same'), 1, 12)"],
    ),
    (
        "codes.key",
        &["UPDATE codes SET key_id = (SELECT key_id FROM data_keys WHERE purpose = 'blind_index')"],
    ),
    (
        "codes.data_keys",
        &["DELETE FROM data_keys WHERE purpose = 'blind_index'"],
    ),
    ("event.numbers", &["DELETE FROM events WHERE number = 1"]),
    (
        "event.order",
        &["UPDATE events SET first_sequence = 2 WHERE number = 1"],
    ),
    (
        "event.order",
        &["UPDATE events SET order_id = gen_random_uuid() WHERE number = 1"],
    ),
    // The number of events and of orders stays.
    (
        "event.order",
        &["UPDATE events SET order_id = (SELECT order_id FROM events WHERE number > 1 AND first_sequence = 1 LIMIT 1)
            WHERE number = 1"],
    ),
    (
        "event.order",
        &["UPDATE events SET order_id = (SELECT order_id FROM events WHERE number = 1) WHERE first_sequence > 1"],
    ),
    (
        "event.body",
        &["UPDATE events SET count = count + 1 WHERE number > 1"],
    ),
    (
        "event.status",
        &[r#"UPDATE events SET body = replace(body, '"o":"PENDING"', '"o":"PROCESSING"')"#],
    ),
    (
        "event.stages",
        &[r#"UPDATE orders
                  SET timeline = jsonb_insert(
                        order_timeline_v1(orders), '{0}', '{"status":"PROCESSING","at":"2020-01-01T00:00:00Z"}', true
                      )
                WHERE status = 'PENDING'"#],
    ),
    (
        "event.stages",
        &["UPDATE events SET body = replace(body, '\"x\"', '\"q\"')"],
    ),
    (
        "event.issued",
        &[r#"UPDATE events SET body = replace(body, '"n":2}', '"n":1}')"#],
    ),
    (
        "access.partner",
        &["UPDATE credentials SET partner_id = gen_random_uuid()"],
    ),
    (
        "access.papers",
        &["UPDATE deployment SET environment = 'production'"],
    ),
    ("access.audited", &["INSERT INTO operators VALUES ('mallory', 'admin')"]),
    ("access.audited", &["UPDATE credentials SET revoked_at = now()"]),
    ("access.role", &["UPDATE operators SET role = 'viewer'"]),
    ("audit.time", &["INSERT INTO audit_log (at, operator, action, subject) VALUES ('epoch', '', '', '')"]),
    ("fence.lanes", &["DELETE FROM nodes"]),
    ("fence.deployment", &["DELETE FROM deployment"]),
    (
        "reconciliation.counts",
        &["UPDATE reconciliations SET matched = matched + 1"],
    ),
    ("reconciliation.books", &["DELETE FROM vendor_records"]),
    (
        "reconciliation.orders",
        &["UPDATE reconciled_orders SET matched = matched + 1"],
    ),
    (
        "drift.result",
        &["UPDATE drifts SET order_id = gen_random_uuid() WHERE order_id IS NOT NULL"],
    ),
    (
        "drift.audited",
        &["DELETE FROM audit_log WHERE action = 'drift.resolve'"],
    ),
];
