//! Invariants of events, retrievals, the audit log, credentials and fencing.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "event.numbers",
        "a partner's events are numbered without gaps, and its feed has the last number",
        "SELECT format('partner %s: event %s', partner_id, number)
           FROM (
                 SELECT *, lag(number + count) OVER (PARTITION BY partner_id ORDER BY number) AS next
                   FROM events
                 ) AS e
          WHERE number <> COALESCE(next, 1)
          UNION ALL
         SELECT format('partner %s: feed at %s, events to %s', partner_id, f.last_number, e.last)
           FROM feeds AS f
           FULL JOIN (
                 SELECT partner_id, max(number + count - 1) AS last FROM events GROUP BY partner_id
                 ) AS e USING (partner_id)
          WHERE f.last_number IS DISTINCT FROM e.last"
    ),
    invariant!(
        "event.order",
        "an order's events are numbered from 1 without gaps, and the order has the last number",
        "SELECT format('order %s: event %s', order_id, first_sequence)
           FROM (
                 SELECT *,
                        lag(first_sequence + count) OVER (PARTITION BY partner_id, order_id ORDER BY number) AS next
                   FROM events
                 ) AS e
          WHERE first_sequence <> COALESCE(next, 1)
          UNION ALL
         SELECT format('order %s: at %s, events to %s', order_id, o.last_sequence, e.last)
           FROM orders AS o
           FULL JOIN (
                 SELECT partner_id, order_id, max(first_sequence + count - 1) AS last
                   FROM events
                  GROUP BY partner_id, order_id
                 ) AS e USING (partner_id, order_id)
          WHERE o.last_sequence IS DISTINCT FROM e.last"
    ),
    invariant!(
        "event.body",
        "an event bundle contains the counted events, and the order's total and currency",
        "SELECT format('order %s: event %s', e.order_id, e.first_sequence)
           FROM (
                 SELECT e.*, e.body::jsonb AS bundle FROM events AS e
                 ) AS e
           JOIN orders AS o ON o.partner_id = e.partner_id AND o.order_id = e.order_id
          WHERE (e.bundle ->> 't')::bigint <> o.total
             OR e.bundle ->> 'c' <> o.currency
             OR (e.bundle ->> 'n')::integer <> e.first_sequence
             OR e.count <> (
                 SELECT sum(COALESCE((s -> 'i' ->> 'n')::integer, 1))
                   FROM jsonb_array_elements(e.bundle -> 's') AS s
                 )"
    ),
    invariant!(
        "event.status",
        "the last event of an order has its status",
        "SELECT format('order %s is %s, its last event says %s', o.order_id, o.status, e.status)
           FROM orders AS o
           JOIN (
                 SELECT DISTINCT ON (partner_id, order_id) partner_id, order_id, body::jsonb ->> 'o' AS status
                   FROM events
                  ORDER BY partner_id, order_id, number DESC
                 ) AS e ON e.partner_id = o.partner_id AND e.order_id = o.order_id
          WHERE e.status IS DISTINCT FROM o.status"
    ),
    invariant!(
        "event.stages",
        "the events of an order match its timeline, in order, and its refunds",
        // Acceptance as PENDING is a created event, and a partial refund has no timeline entry.
        "WITH steps AS MATERIALIZED (
             SELECT e.partner_id, e.order_id, e.number, t.place, e.body::jsonb ->> 'o' AS status, t.step,
                    COALESCE(t.step #>> '{}', '') AS word
               FROM events AS e
              CROSS JOIN jsonb_array_elements(e.body::jsonb -> 's') WITH ORDINALITY AS t (step, place)
         ), event_stages AS (
             SELECT s.partner_id, s.order_id,
                    array_agg(
                     CASE
                         WHEN s.word = 'p' THEN 'PROCESSING'
                         WHEN s.word = 'd' THEN 'DELIVERED'
                         WHEN s.step ? 'q' THEN 'PARTIALLY_DELIVERED'
                         WHEN s.step ? 'x' THEN 'CANCELLED'
                         ELSE 'REFUNDED'
                     END ORDER BY s.number, s.place
                    ) FILTER (
                     WHERE s.word IN ('p', 'd')
                        OR s.step ?| ARRAY['q', 'x']
                        OR (s.step ? 'r' AND s.status = 'REFUNDED')
                    ) AS stages,
                    count(*) FILTER (WHERE s.word = 'c') AS created,
                    COALESCE(sum((s.step -> 'r' ->> 'a')::bigint) FILTER (WHERE s.step ? 'r'), 0) AS refunded
               FROM steps AS s
              GROUP BY s.partner_id, s.order_id
         )
         SELECT format('order %s: %s created events, %s, refunded %s of %s', o.order_id, t.created, t.stages,
                       t.refunded, o.refunded)
           FROM orders AS o
          CROSS JOIN LATERAL (
                 SELECT array_agg(m.item ->> 'status' ORDER BY m.entry)
                         FILTER (WHERE m.item ->> 'status' <> 'PENDING') AS stages
                   FROM jsonb_array_elements(order_timeline_v1(o)) WITH ORDINALITY AS m (item, entry)
                 ) AS l
           LEFT JOIN event_stages AS t ON t.partner_id = o.partner_id AND t.order_id = o.order_id
          WHERE t.created IS DISTINCT FROM 1
             OR t.stages IS DISTINCT FROM l.stages
             OR t.refunded <> o.refunded"
    ),
    invariant!(
        "event.issued",
        "each voucher of an order has exactly one issued event",
        "WITH issued AS (
             SELECT e.partner_id, e.order_id, v ->> 'v' AS voucher_id
               FROM events AS e
              CROSS JOIN jsonb_array_elements(e.body::jsonb -> 's') AS s
              CROSS JOIN jsonb_array_elements(e.body::jsonb -> 'v') WITH ORDINALITY AS t (v, place)
              WHERE jsonb_typeof(s) = 'object'
                AND t.place - 1 >= (s -> 'i' ->> 'f')::integer
                AND t.place - 1 < (s -> 'i' ->> 'f')::integer + (s -> 'i' ->> 'n')::integer
         )
         SELECT format('order %s: voucher %s, %s issued events', a.order_id, a.voucher_id, count(i.voucher_id))
           FROM allocations AS a
           LEFT JOIN issued AS i
             ON i.partner_id = a.partner_id
            AND i.order_id = a.order_id
            AND i.voucher_id = 'vch_' || replace(a.voucher_id::text, '-', '')
          WHERE a.order_id IS NOT NULL
          GROUP BY a.order_id, a.voucher_id
         HAVING count(i.voucher_id) <> 1"
    ),
    invariant!(
        "retrieval.audited",
        "each code retrieval has an audit entry with a credential of the order's partner",
        // One statement writes the entry, first_retrieved_at and codes_retrieved_at with one timestamp (retrieve_codes_v1).
        "WITH entries AS MATERIALIZED (
             SELECT a.audit_id, a.at, a.operator, a.subject, a.after ->> 'credential_id' AS credential,
                    a.after ->> 'address' AS address, (a.after ->> 'vouchers')::integer AS vouchers
               FROM audit_log AS a
              WHERE a.action = 'codes.retrieve'
         ), read_orders AS MATERIALIZED (
             SELECT 'ptn_' || replace(o.partner_id::text, '-', '') AS partner,
                    'ord_' || replace(o.order_id::text, '-', '') AS subject, o.codes_retrieved_at
               FROM orders AS o
              WHERE o.codes_retrieved_at IS NOT NULL
         ), read_vouchers AS MATERIALIZED (
             SELECT 'ptn_' || replace(a.partner_id::text, '-', '') AS partner,
                    'ord_' || replace(a.order_id::text, '-', '') AS subject, a.first_retrieved_at, count(*) AS vouchers
               FROM allocations AS a
              WHERE a.first_retrieved_at IS NOT NULL
              GROUP BY a.partner_id, a.order_id, a.first_retrieved_at
         )
         SELECT format('%s: first retrieved %s, no entry', o.subject, o.codes_retrieved_at)
           FROM read_orders AS o
           LEFT JOIN entries AS e
             ON e.operator = o.partner AND e.subject = o.subject AND e.at = o.codes_retrieved_at
          WHERE e.audit_id IS NULL
          UNION ALL
         SELECT format('%s: %s vouchers first retrieved %s, %s in the entry', v.subject, v.vouchers, v.first_retrieved_at,
                       e.vouchers)
           FROM read_vouchers AS v
           LEFT JOIN entries AS e
             ON e.operator = v.partner AND e.subject = v.subject AND e.at = v.first_retrieved_at
          WHERE e.vouchers IS NULL OR e.vouchers < v.vouchers
          UNION ALL
         SELECT format('entry %s: %s of %s, credential %s, address %s, %s vouchers', e.audit_id, e.subject, e.operator,
                       e.credential, e.address, e.vouchers)
           FROM entries AS e
           LEFT JOIN read_orders AS o ON o.partner = e.operator AND o.subject = e.subject
           LEFT JOIN credentials AS c
             ON 'cred_' || replace(c.credential_id::text, '-', '') = e.credential
            AND 'ptn_' || replace(c.partner_id::text, '-', '') = e.operator
          WHERE o.subject IS NULL
             OR c.credential_id IS NULL
             OR e.address IS NULL
             OR e.vouchers IS NULL
             OR e.vouchers < 1"
    ),
    invariant!(
        "booking.audited",
        "operators' bookings and their audit entries match",
        "SELECT format('entry %s of partner %s, audit entry %s', l.transaction_id, l.partner_id, a.audit_id)
           FROM (
                 SELECT 'txn_' || replace(transaction_id::text, '-', '') AS transaction, *
                   FROM ledger
                  WHERE kind IN ('TOP_UP', 'ADJUSTMENT')
                 ) AS l
           FULL JOIN (
                 SELECT after ->> 'transaction_id' AS transaction, *
                   FROM audit_log
                  WHERE action IN ('wallet.top_up', 'wallet.adjust')
                 ) AS a USING (transaction)
          WHERE (a.after ->> 'amount_minor')::bigint IS DISTINCT FROM l.amount
             OR (a.after ->> 'balance_minor')::bigint IS DISTINCT FROM l.balance_after"
    ),
    invariant!(
        "decision.audited",
        "operators' decisions on orders and payouts and their audit entries match",
        // Refunds are left out: they follow from the decision to cancel.
        "SELECT format('%s: %s %s, audit entries %s', subject, d.decisions, verb, a.entries)
           FROM (
                 SELECT 'ord_' || replace(o.order_id::text, '-', '') AS subject,
                        CASE m ->> 'status' WHEN 'PROCESSING' THEN 'approved' ELSE 'ended' END AS verb,
                        COALESCE(m ->> 'reason', '') AS reason,
                        count(*) AS decisions
                   FROM orders AS o
                  CROSS JOIN jsonb_array_elements(order_timeline_v1(o)) AS m
                  WHERE m ->> 'by' = 'operator' AND m ->> 'status' <> 'REFUNDED'
                  GROUP BY 1, 2, 3
                  UNION ALL
                 SELECT 'po_' || replace(y.payout_id::text, '-', ''), y.amount || ' ' || (m ->> 'status'),
                        COALESCE(m ->> 'reason', ''), count(*)
                   FROM payouts AS y
                  CROSS JOIN jsonb_array_elements(y.timeline) AS m
                  WHERE m ->> 'by' = 'operator'
                  GROUP BY 1, 2, 3
                 ) AS d
           FULL JOIN (
                 SELECT subject,
                        CASE action
                            WHEN 'order.approve' THEN 'approved'
                            WHEN 'order.reject' THEN 'ended'
                            WHEN 'order.cancel' THEN 'ended'
                            ELSE (after ->> 'amount_minor') || ' ' || (after ->> 'status')
                        END AS verb,
                        COALESCE(after ->> 'reason', '') AS reason,
                        count(*) AS entries
                   FROM audit_log
                  WHERE action IN ('order.approve', 'order.reject', 'order.cancel',
                                   'payout.pay', 'payout.reject', 'payout.fail')
                  GROUP BY 1, 2, 3
                 ) AS a
             USING (subject, verb, reason)
          WHERE d.decisions IS DISTINCT FROM a.entries"
    ),
    invariant!(
        "audit.checkpoints",
        "audit checkpoints follow each other without gaps, and no entry was changed, removed or inserted",
        // An entry may become visible up to 100,000 ids late, and is then in a later checkpoint.
        "WITH named AS MATERIALIZED (
             SELECT s.number, e.audit_id
               FROM audit_checkpoints AS s
              CROSS JOIN unnest(s.entries) AS e (audit_id)
         ), texts AS MATERIALIZED (
             SELECT n.number, count(*) AS entries, count(a.audit_id) AS existing,
                    string_agg(audit_entry_text_v1(a), E'\\n' ORDER BY n.audit_id) AS text
               FROM named AS n
               LEFT JOIN audit_log AS a ON a.audit_id = n.audit_id
              GROUP BY n.number
         ), chain AS (
             SELECT s.*, lag(s.number) OVER numbers AS number_before, lag(s.hash) OVER numbers AS hash_before
               FROM audit_checkpoints AS s
             WINDOW numbers AS (ORDER BY s.number)
         )
         SELECT format('checkpoint %s, entries %s to %s: %s of %s exist', c.number, c.entries[1],
                       c.entries[cardinality(c.entries)], t.existing, t.entries)
           FROM chain AS c
           JOIN texts AS t ON t.number = c.number
          WHERE c.number <> COALESCE(c.number_before, 0) + 1
             OR t.existing <> t.entries
             OR c.hash <> sha256(COALESCE(c.hash_before, '') || convert_to(t.text, 'UTF8'))
          UNION ALL
         SELECT format('entry %s is in %s checkpoints', n.audit_id, count(*))
           FROM named AS n
          GROUP BY n.audit_id
         HAVING count(*) > 1
          UNION ALL
         SELECT format('entry %s is in no checkpoint, but later entries are', a.audit_id)
           FROM audit_log AS a
          WHERE a.audit_id <= (SELECT max(n.audit_id) FROM named AS n) - 100000
            AND NOT EXISTS (
                 SELECT FROM named AS n WHERE n.audit_id = a.audit_id
                 )"
    ),
    invariant!(
        "access.partner",
        "a credential belongs to an existing partner",
        "SELECT format('credential %s', c.credential_id)
           FROM credentials AS c
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = c.partner_id)"
    ),
    invariant!(
        "access.papers",
        "in production the partner of a live credential is certified and has signed the agreement",
        "SELECT format('credential %s of partner %s', c.credential_id, c.partner_id)
           FROM credentials AS c
           JOIN partners AS p ON p.partner_id = c.partner_id
           JOIN deployment AS d ON d.environment = 'production'
          WHERE c.revoked_at IS NULL
            AND (p.certified_at IS NULL OR p.agreement_signed_at IS NULL)"
    ),
    invariant!(
        "fence.lanes",
        "a lane belongs to an existing node",
        "SELECT format('lane %s of node %s', l.lane, l.node)
           FROM lanes AS l
          WHERE NOT EXISTS (SELECT FROM nodes AS n WHERE n.node = l.node)"
    ),
    invariant!(
        "fence.deployment",
        "a database with partners belongs to one environment",
        "SELECT format('%s environments', count(*))
           FROM deployment
         HAVING count(*) > 1 OR (count(*) = 0 AND EXISTS (SELECT FROM partners))"
    ),
];
