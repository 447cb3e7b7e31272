-- Rights of the role vouchsafe_service (deploy/postgres/roles.sql), which `vouchsafe migrate` renews after the migrations. One transaction:
-- other sessions see the old rights or the new ones. Does nothing where the role does not exist, as in a sandbox.
DO $$
BEGIN
    -- They run with the rights of the owner.
    REVOKE EXECUTE ON FUNCTION create_attempt_partition_v1, drop_attempt_partition_v1 FROM PUBLIC;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vouchsafe_service') THEN
        RETURN;
    END IF;
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM vouchsafe_service;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM vouchsafe_service;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO vouchsafe_service;

    -- Never changed and never removed. audit_id comes from its sequence: no entry is written between older ones.
    GRANT INSERT ON ledger, events, audit_checkpoints TO vouchsafe_service;
    GRANT INSERT (at, operator, action, subject, before, after, trace_id, partner_id) ON audit_log TO vouchsafe_service;
    GRANT INSERT ON deployment, stock, delivery_attempts TO vouchsafe_service;

    -- Never removed.
    GRANT INSERT, UPDATE ON
        nodes, lanes, feeds, continuity, -- nodes and their commits
        partners, wallets, orders, payouts,
        categories, products, vendors, chunks, stock_totals, stock_imports, purchases,
        operators,
        audit_exports, sandbox_clocks,
        reconciliations, reconciled_days
    TO vouchsafe_service;
    -- Old codes are encrypted again under a newer data key.
    GRANT INSERT, UPDATE (key_id, nonce, ciphertext) ON codes TO vouchsafe_service;
    GRANT INSERT, UPDATE ON code_reencryptions TO vouchsafe_service;
    -- UPDATE permits the lock under which a key is created.
    GRANT INSERT, UPDATE ON data_keys TO vouchsafe_service;

    -- Removed after their retention period, or replaced.
    GRANT INSERT, UPDATE, DELETE ON
        credentials, certification_observations, change_requests, bulk_jobs, bulk_items,
        operator_tokens, operator_sessions, operator_sign_in_links, operator_identities,
        allocations, stock_demands, stock_sold, order_demands, -- a rejected order's allocations are removed
        rate_limit_usage, partner_usage, order_totals, idempotency_keys, webhooks, webhook_progress, deliveries,
        traffic_minutes, sales_days, webhook_hours,
        vendor_records, reconciled_orders, reconciled_partners, reconciled_batches, drifts
    TO vouchsafe_service;

    GRANT USAGE, SELECT ON SEQUENCE code_ids, stock_ids TO vouchsafe_service;
    GRANT USAGE ON SEQUENCE data_keys_key_id_seq TO vouchsafe_service;
    GRANT EXECUTE ON FUNCTION create_attempt_partition_v1, drop_attempt_partition_v1 TO vouchsafe_service;
END
$$;
