//! Invariants of the audit log and its checkpoints, by ranges of entries and of checkpoints.

use super::scan::{
    FIRST_NUMBER, LAST_NUMBER, MAX_ROWS, Scan, Steps, description, scan, sliced_scan, to_bigint, violations,
};

/// Looks from each entry of a code retrieval for its order; the scan of orders looks for the entries.
pub(super) const SCAN: Scan = scan! {
    "audit log",
    tables: ["audit_log"],
    first: [FIRST_NUMBER],
    last: [LAST_NUMBER],
    next: r#"SELECT ARRAY[a.audit_id::text] AS "key!"
               FROM audit_log AS a
              WHERE a.audit_id > ($1::text[])[1]::bigint
              ORDER BY a.audit_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    with: "WITH entries AS MATERIALIZED (
             SELECT a.audit_id, a.operator, a.subject, a.after ->> 'credential_id' AS credential,
                    a.after ->> 'address' AS address, (a.after ->> 'vouchers')::integer AS vouchers,
                    CASE WHEN a.subject ~ '^ord_[0-9a-f]{32}$' THEN right(a.subject, 32)::uuid END AS order_id,
                    CASE WHEN a.operator ~ '^ptn_[0-9a-f]{32}$' THEN right(a.operator, 32)::uuid END AS partner_id
               FROM audit_log AS a
              WHERE a.audit_id > ($1::text[])[1]::bigint
                AND a.audit_id <= ($2::text[])[1]::bigint
                AND a.action = 'codes.retrieve'
         ), found AS MATERIALIZED (
             SELECT e.*, o.codes_retrieved_at
               FROM entries AS e
               LEFT JOIN LATERAL (
                     SELECT o.codes_retrieved_at
                       FROM orders AS o
                      WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id
                     OFFSET 0
                    ) AS o ON true
         ), ",
    "retrieval.audited" =>
        "SELECT format('entry %s: %s of %s, credential %s, address %s, %s vouchers', f.audit_id, f.subject, f.operator,
                       f.credential, f.address, f.vouchers)
           FROM found AS f
           LEFT JOIN credentials AS c
             ON c.partner_id = f.partner_id
            AND 'cred_' || replace(c.credential_id::text, '-', '') = f.credential
          WHERE f.codes_retrieved_at IS NULL
             -- Ended credentials are purged.
             OR c.credential_id IS NULL
                AND NOT EXISTS (
                    SELECT
                      FROM audit_log AS i
                     WHERE i.subject = f.credential AND i.action = 'credential.issue' AND i.after ->> 'partner_id' = f.operator
                    )
             OR f.address IS NULL
             OR f.vouchers IS NULL
             OR f.vouchers < 1",
};

/// The column is outside the hash of the checkpoints. An object that was deleted proves nothing.
pub(super) const PARTNER_SCAN: Scan = scan! {
    "partners of audit entries",
    tables: ["audit_log"],
    first: [FIRST_NUMBER],
    last: [LAST_NUMBER],
    next: r#"SELECT ARRAY[a.audit_id::text] AS "key!"
               FROM audit_log AS a
              WHERE a.audit_id > ($1::text[])[1]::bigint
              ORDER BY a.audit_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    with: "WITH derived AS MATERIALIZED (
             SELECT a.audit_id, a.action, a.subject, a.partner_id, partner_of_audit_entry(a) AS partner_of_object
               FROM audit_log AS a
              WHERE a.audit_id > ($1::text[])[1]::bigint
                AND a.audit_id <= ($2::text[])[1]::bigint
         ), ",
    "audit.partner": "an audit entry has the partner of its actor or object" =>
        "SELECT format('entry %s: %s of %s, partner %s instead of %s', d.audit_id, d.action, d.subject, d.partner_id,
                       d.partner_of_object)
           FROM derived AS d
          WHERE d.partner_of_object <> d.partner_id
             OR d.partner_of_object IS NOT NULL AND d.partner_id IS NULL",
};

/// An entry has the time of its insertion, or that of its transaction, which lasts up to two minutes.
pub(super) const TIME_SCAN: Scan = scan! {
    "times of audit entries",
    tables: ["audit_log"],
    first: [FIRST_NUMBER],
    last: [LAST_NUMBER],
    next: r#"SELECT ARRAY[a.audit_id::text] AS "key!"
               FROM audit_log AS a
              WHERE a.audit_id > ($1::text[])[1]::bigint
              ORDER BY a.audit_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    // Includes the entry before the range.
    with: "WITH entries AS MATERIALIZED (
             SELECT a.audit_id, a.action, a.at,
                    max(a.at) OVER (ORDER BY a.audit_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest_before
               FROM audit_log AS a
              WHERE a.audit_id >= ($1::text[])[1]::bigint
                AND a.audit_id <= ($2::text[])[1]::bigint
         ), ",
    "audit.time": "the times of audit entries do not decrease with their numbers, but for the length of a transaction" =>
        "SELECT format('entry %s: %s at %s, after one of %s', e.audit_id, e.action, e.at, e.latest_before)
           FROM entries AS e
          WHERE e.at < e.latest_before - interval '3 minutes'",
};

pub(super) const CHECKPOINT_SCAN: Scan = scan! {
    "audit checkpoints",
    tables: ["audit_checkpoints"],
    first: ["0"],
    last: [LAST_NUMBER],
    // A checkpoint has up to a thousand entries.
    next: r#"SELECT ARRAY[s.number::text] AS "key!"
               FROM audit_checkpoints AS s
              WHERE s.number > ($1::text[])[1]::bigint
              ORDER BY s.number
             OFFSET $2::bigint / 1000
              LIMIT 1"#,
    // Includes the checkpoint before the range.
    with: "WITH chain AS MATERIALIZED (
             SELECT s.*, lag(s.number) OVER numbers AS number_before, lag(s.hash) OVER numbers AS hash_before
               FROM audit_checkpoints AS s
              WHERE s.number >= ($1::text[])[1]::bigint AND s.number <= ($2::text[])[1]::bigint
             WINDOW numbers AS (ORDER BY s.number)
         ), named AS MATERIALIZED (
             SELECT c.number, e.audit_id, a.audit_id AS existing, a.text
               FROM chain AS c
              CROSS JOIN unnest(c.entries) AS e (audit_id)
               LEFT JOIN LATERAL (
                     SELECT a.audit_id, audit_entry_text_v1(a) AS text
                       FROM audit_log AS a
                      WHERE a.audit_id = e.audit_id
                     OFFSET 0
                    ) AS a ON true
              WHERE c.number > ($1::text[])[1]::bigint
         ), texts AS MATERIALIZED (
             SELECT n.number, count(*) AS entries, count(n.existing) AS existing,
                    string_agg(n.text, E'\\n' ORDER BY n.audit_id) AS text
               FROM named AS n
              GROUP BY n.number
         ), ",
    "audit.checkpoints": "audit checkpoints follow each other without gaps, and no entry was changed, \
        inserted, or removed without an archive" =>
        "SELECT format('checkpoint %s, entries %s to %s: %s of %s exist', c.number, c.entries[1],
                       c.entries[cardinality(c.entries)], t.existing, t.entries)
           FROM chain AS c
           JOIN texts AS t USING (number)
           LEFT JOIN archived_checkpoints AS x USING (number)
          WHERE c.number <> COALESCE(c.number_before, 0) + 1
             OR CASE
                -- The entries that stay.
                WHEN x.hash IS NOT NULL THEN x.hash <> sha256(c.hash || convert_to(COALESCE(t.text, ''), 'UTF8'))
                ELSE t.existing <> t.entries OR c.hash <> sha256(COALESCE(c.hash_before, '') || convert_to(t.text, 'UTF8'))
                END",
};

/// An entry may become visible up to 100,000 ids late, and is then in a later checkpoint.
pub(super) const ENTRY_SCAN: Scan = sliced_scan! {
    "entries of audit checkpoints",
    tables: ["audit_log"],
    with: "WITH named AS MATERIALIZED (
             SELECT e.audit_id, count(*) AS checkpoints
               FROM audit_checkpoints AS s
              CROSS JOIN unnest(s.entries) AS e (audit_id)
              WHERE e.audit_id & ($2::integer - 1) = $1::integer
              GROUP BY e.audit_id
         ), ",
    "audit.checkpoints" =>
        "SELECT format('entry %s is in %s checkpoints', n.audit_id, n.checkpoints) FROM named AS n WHERE n.checkpoints > 1
          UNION ALL
         SELECT format('entry %s is in no checkpoint, but later entries are', a.audit_id)
           FROM audit_log AS a
           LEFT JOIN named AS n USING (audit_id)
          WHERE a.audit_id & ($2::integer - 1) = $1::integer
            AND a.audit_id <= (SELECT max(s.entries[cardinality(s.entries)]) FROM audit_checkpoints AS s) - 100000
            AND n.audit_id IS NULL",
};

/// Refunds are left out: they follow from the decision to cancel. A payout is cancelled by its partner.
pub(super) const DECISION_SCAN: Scan = sliced_scan! {
    "decisions",
    tables: ["audit_log"],
    with: "WITH decided AS MATERIALIZED (
             SELECT 'ord_' || replace(o.order_id::text, '-', '') AS subject, 'order' AS kind, o.timeline, o.partner_id,
                    o.erased_at IS NOT NULL AS is_erased
               FROM orders AS o
              WHERE o.timeline @> '[{\"by\": \"operator\"}]' OR o.erased_at IS NOT NULL
              UNION ALL
             SELECT 'po_' || replace(y.payout_id::text, '-', ''), y.amount::text, y.timeline, y.partner_id, y.erased_at IS NOT NULL
               FROM payouts AS y
         ), decisions AS MATERIALIZED (
             SELECT d.subject,
                    CASE
                        WHEN d.kind <> 'order' THEN concat_ws(' ', d.kind, m ->> 'by', m ->> 'status')
                        WHEN m ->> 'status' = 'PROCESSING' THEN 'approved'
                        ELSE 'ended'
                    END AS verb,
                    COALESCE(m ->> 'reason', '') AS reason,
                    count(*) AS decisions
               FROM decided AS d
              CROSS JOIN jsonb_array_elements(d.timeline) AS m
              WHERE hashtext(d.subject) & ($2::integer - 1) = $1::integer
                AND (m ->> 'by' = 'operator' AND m ->> 'status' <> 'REFUNDED' OR d.kind <> 'order' AND m ->> 'status' <> 'PENDING')
              GROUP BY 1, 2, 3
         ), entries AS MATERIALIZED (
             SELECT subject,
                    CASE action
                        WHEN 'order.approve' THEN 'approved'
                        WHEN 'order.reject' THEN 'ended'
                        WHEN 'order.cancel' THEN 'ended'
                        WHEN 'payout.cancel' THEN concat_ws(' ', after ->> 'amount_minor', 'partner', after ->> 'status')
                        ELSE concat_ws(' ', after ->> 'amount_minor', 'operator', after ->> 'status')
                    END AS verb,
                    -- The trail keeps the reason of a decision whose order or payout was erased.
                    CASE WHEN d.is_erased THEN '' ELSE COALESCE(after ->> 'reason', '') END AS reason,
                    count(*) AS entries
               FROM audit_log
               LEFT JOIN decided AS d USING (subject)
              WHERE action IN ('order.approve', 'order.reject', 'order.cancel',
                               'payout.pay', 'payout.reject', 'payout.fail', 'payout.cancel')
                AND hashtext(subject) & ($2::integer - 1) = $1::integer
              GROUP BY 1, 2, 3
         ), ",
    "decision.audited": "operators' decisions on orders and payouts, partners' cancellations of payouts, and their audit entries match" =>
        "SELECT format('%s: %s %s, audit entries %s', subject, d.decisions, verb, e.entries)
           FROM decisions AS d
           FULL JOIN entries AS e USING (subject, verb, reason)
          WHERE d.decisions IS DISTINCT FROM e.entries",
    "erasure.audited": "erased orders and payouts and the audit entries of their erasure match" =>
        "SELECT format('partner %s: %s erased orders and %s payouts, audited %s and %s', partner_id, o.orders, o.payouts, e.orders, e.payouts)
           FROM (
                 SELECT d.partner_id, count(*) FILTER (WHERE d.kind = 'order') AS orders,
                        count(*) FILTER (WHERE d.kind <> 'order') AS payouts
                   FROM decided AS d
                  WHERE d.is_erased AND hashtext(d.partner_id::text) & ($2::integer - 1) = $1::integer
                  GROUP BY d.partner_id
                ) AS o
           FULL JOIN (
                 SELECT a.partner_id, sum((a.after ->> 'orders')::bigint) AS orders, sum((a.after ->> 'payouts')::bigint) AS payouts
                   FROM audit_log AS a
                  WHERE a.action IN ('order.erase', 'payout.erase', 'personal_data.erase')
                    AND hashtext(a.partner_id::text) & ($2::integer - 1) = $1::integer
                  GROUP BY a.partner_id
                ) AS e USING (partner_id)
          WHERE (o.orders, o.payouts) IS DISTINCT FROM (e.orders, e.payouts)",
};

pub(super) const BOOKING_SCAN: Scan = sliced_scan! {
    "bookings",
    tables: ["audit_log"],
    with: "WITH entries AS MATERIALIZED (
             SELECT 'txn_' || replace(l.transaction_id::text, '-', '') AS transaction, l.transaction_id, l.partner_id, l.amount,
                    l.balance_after
               FROM ledger AS l
              WHERE l.kind IN ('TOP_UP', 'ADJUSTMENT')
                AND l.kind <> 'DEBIT' -- the condition of the index
         ), ",
    "booking.audited": "operators' bookings and their audit entries match" =>
        "SELECT format('entry %s of partner %s, audit entry %s', l.transaction_id, l.partner_id, a.audit_id)
           FROM (SELECT * FROM entries WHERE hashtext(transaction) & ($2::integer - 1) = $1::integer) AS l
           FULL JOIN (
                 SELECT after ->> 'transaction_id' AS transaction, *
                   FROM audit_log
                  WHERE action IN ('wallet.top_up', 'wallet.adjust')
                    AND hashtext(after ->> 'transaction_id') & ($2::integer - 1) = $1::integer
                ) AS a USING (transaction)
          WHERE (a.after ->> 'amount_minor')::bigint IS DISTINCT FROM l.amount
             OR (a.after ->> 'balance_minor')::bigint IS DISTINCT FROM l.balance_after",
};
