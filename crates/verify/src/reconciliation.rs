//! Invariants of reconciliation: results and drifts.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "reconciliation.counts",
        "the compared vouchers are matched, drifted or unmatched, and the latter two equal the drifts of the day",
        "SELECT format('%s with %s: compared %s, matched %s, drifted %s, unmatched %s; drifts %s and %s', r.day, r.vendor,
                       r.compared, r.matched, r.drifted, r.unmatched, d.two_sided, d.one_sided)
           FROM reconciliations AS r
          CROSS JOIN LATERAL (
                 SELECT count(*) FILTER (WHERE kind IN ('DIFFERS', 'REPEATED')) AS two_sided,
                        count(*) FILTER (WHERE kind IN ('MISSING', 'UNKNOWN')) AS one_sided
                   FROM drifts
                  WHERE vendor = r.vendor AND day = r.day
                 ) AS d
          WHERE r.generated_at IS NOT NULL
            AND (r.compared <> r.matched + r.drifted + r.unmatched
                 OR r.drifted <> d.two_sided
                 OR r.unmatched <> d.one_sided)"
    ),
    invariant!(
        "reconciliation.books",
        "the vendor's records of a day equal the compared ones, except those that only we have",
        "SELECT format('%s with %s: %s records, counted %s, compared %s', day, vendor, b.records, r.recorded, r.compared)
           FROM (
                 SELECT vendor, day, count(*) AS records FROM vendor_records GROUP BY vendor, day
                 ) AS b
           FULL JOIN (
                 SELECT *,
                        (SELECT count(*)
                           FROM drifts AS d
                          WHERE d.vendor = r.vendor AND d.day = r.day AND d.kind = 'MISSING') AS missing
                   FROM reconciliations AS r
                  WHERE generated_at IS NOT NULL
                 ) AS r USING (vendor, day)
          WHERE (
                 COALESCE(b.records, 0) IS DISTINCT FROM r.recorded
                 OR r.recorded <> r.compared - r.missing
                )
            -- The records of the month are archived.
            AND NOT EXISTS (
                SELECT
                  FROM log_archives AS a
                 WHERE a.log = 'reconciliation'
                   AND a.month = date_trunc('month', day::timestamp)::date
                   AND a.removed_at IS NOT NULL
                )"
    ),
    invariant!(
        "reconciliation.orders",
        "the per-order counts do not exceed the result, and their orders exist",
        "SELECT format('%s with %s: per-order counts exceed the result', r.day, r.vendor)
           FROM reconciliations AS r
           JOIN (
                 SELECT vendor,
                        day,
                        count(*) AS orders,
                        sum(allocated) AS allocated,
                        sum(matched) AS matched,
                        sum(drifted) AS drifted,
                        sum(unmatched) AS unmatched
                   FROM reconciled_orders
                  GROUP BY vendor, day
                 ) AS o USING (vendor, day)
          WHERE r.generated_at IS NULL
             OR o.orders <> r.orders_total
             OR o.allocated <> r.vouchers_allocated
             OR o.matched <> r.matched
             OR o.drifted <> r.drifted
             OR o.unmatched > r.unmatched
          UNION ALL
         SELECT format('%s with %s: order %s of partner %s', p.day, p.vendor, p.order_id, p.partner_id)
           FROM reconciled_orders AS p
          WHERE NOT EXISTS (
                 SELECT
                   FROM orders AS o
                  WHERE o.partner_id = p.partner_id AND o.order_id = p.order_id
                 )"
    ),
    invariant!(
        "drift.result",
        "a drift belongs to a result and to the order that its voucher was bought for",
        "SELECT format('drift %s of %s with %s', d.drift_id, d.day, d.vendor)
           FROM drifts AS d
           LEFT JOIN reconciliations AS r ON r.vendor = d.vendor AND r.day = d.day
           LEFT JOIN purchases AS p
             ON p.purchase_id = COALESCE(d.ours ->> 'purchase_id', d.theirs ->> 'purchase_id')::uuid
            AND p.vendor = d.vendor
          WHERE r.generated_at IS NULL
             OR d.order_id IS DISTINCT FROM p.order_id
             OR d.partner_id IS DISTINCT FROM p.partner_id"
    ),
    invariant!(
        "drift.audited",
        "the resolution of a drift is the last one in the audit log",
        "SELECT format('drift %s: %s, in the audit log %s', d.drift_id, d.resolution, a.resolution)
           FROM drifts AS d
           LEFT JOIN LATERAL (
                 SELECT after ->> 'resolution' AS resolution, after ->> 'reason' AS reason
                   FROM audit_log
                  WHERE action = 'drift.resolve' AND subject = 'drf_' || replace(d.drift_id::text, '-', '')
                  ORDER BY audit_id DESC
                  LIMIT 1
                 ) AS a ON true
          WHERE COALESCE(a.resolution, 'pending') <> d.resolution
             OR a.reason IS DISTINCT FROM d.reason"
    ),
];
