-- Inserts partners $1 to $2 (from 1), each with an unusable credential and a top-up (ledger entry, stored response, audit log
-- row) that covers its orders. Wallet and event feed have the state after the partner's last order.
WITH numbered AS MATERIALIZED (
    SELECT plan.now,
           ('01900000-0000-7000-8000-' || lpad(to_hex(partner), 12, '0'))::uuid AS partner_id,
           ('01900000-0000-7000-9000-' || lpad(to_hex(partner), 12, '0'))::uuid AS transaction_id,
           partner,
           (plan.orders / plan.partners + 11) * 2500 AS amount,
           plan.orders / plan.partners
               + CASE WHEN partner <= plan.orders % plan.partners THEN 1 ELSE 0 END AS orders
      FROM plan
     CROSS JOIN generate_series($1::bigint, $2::bigint) AS partner
), put_partners AS (
    INSERT INTO partners (partner_id, name, allowlist, created_at, updated_at)
    SELECT partner_id, 'grown ' || partner, '{127.0.0.0/8}', now - interval '101 days', now - interval '101 days'
      FROM numbered
), put_credentials AS (
    INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, family_id)
    SELECT ('01900000-0000-7000-a000-' || lpad(to_hex(partner), 12, '0'))::uuid, partner_id,
           sha256(convert_to('grown key ' || partner, 'UTF8')),
           sha256(convert_to('grown secret ' || partner, 'UTF8')),
           ('01900000-0000-7000-a000-' || lpad(to_hex(partner), 12, '0'))::uuid
      FROM numbered
), put_issues AS (
    INSERT INTO audit_log (operator, action, subject, partner_id)
    SELECT 'admin', 'credential.issue', 'cred_' || replace(('01900000-0000-7000-a000-' || lpad(to_hex(partner), 12, '0')), '-', ''),
           partner_id
      FROM numbered
), put_wallets AS (
    INSERT INTO wallets (partner_id, currency, balance, sequence, updated_at)
    SELECT partner_id, 'USD', amount - 2500 * orders, 1 + orders, now - interval '1 hour'
      FROM numbered
), put_feeds AS (
    INSERT INTO feeds (partner_id, last_number)
    SELECT partner_id, 3 * orders
      FROM numbered
     WHERE orders > 0
), put_entries AS (
    INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, reference, created_at)
    SELECT partner_id, transaction_id, 'USD', 1, 'TOP_UP', amount, amount, 'grown', now - interval '101 days'
      FROM numbered
), put_keys AS (
    INSERT INTO idempotency_keys (key, fingerprint, status, body, expires_at)
    SELECT md5('grown booking ' || partner)::uuid, sha256(convert_to('grown booking ' || partner, 'UTF8')), 200,
           convert_to('txn_' || replace(transaction_id::text, '-', ''), 'UTF8'), 'infinity'
      FROM numbered
)
INSERT INTO audit_log (operator, action, subject, before, after, partner_id)
SELECT 'admin', 'wallet.top_up', 'ptn_' || replace(partner_id::text, '-', '') || '/USD',
       '{"balance_minor": 0}',
       jsonb_build_object('reference', 'grown', 'amount_minor', amount, 'balance_minor', amount,
                          'transaction_id', 'txn_' || replace(transaction_id::text, '-', '')),
       partner_id
  FROM numbered
 ORDER BY partner
