//! Invariants of money: wallets, ledger, orders and payouts.

use super::{Invariant, MAX_ROWS, to_bigint};

/// Amounts are shown in minor units.
pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "money.conservation",
        "the balance of a wallet is the sum of its ledger",
        "SELECT format('wallet %s %s: balance %s, ledger %s', partner_id, currency, w.balance, l.sum)
           FROM wallets AS w
           FULL JOIN (
                 SELECT partner_id, currency, sum(amount) AS sum FROM ledger GROUP BY partner_id, currency
                 ) AS l USING (partner_id, currency)
          WHERE w.balance IS DISTINCT FROM COALESCE(l.sum, 0)"
    ),
    invariant!(
        "money.chain",
        "the ledger entries of a wallet are numbered without gaps, and each has the balance after it",
        "SELECT format('wallet %s %s: entry %s', partner_id, currency, sequence)
           FROM (
                 SELECT *,
                        lag(sequence) OVER wallet AS sequence_before,
                        lag(balance_after) OVER wallet AS balance_before
                   FROM ledger
                 WINDOW wallet AS (PARTITION BY partner_id, currency ORDER BY sequence)
                 ) AS l
          WHERE sequence <> COALESCE(sequence_before, 0) + 1
             OR balance_after <> COALESCE(balance_before, 0) + amount
          UNION ALL
         SELECT format('wallet %s %s: at entry %s, ledger at %s', partner_id, currency, w.sequence, l.last)
           FROM wallets AS w
           LEFT JOIN (
                 SELECT partner_id, currency, max(sequence) AS last FROM ledger GROUP BY partner_id, currency
                 ) AS l USING (partner_id, currency)
          WHERE w.sequence <> COALESCE(l.last, 0)"
    ),
    invariant!(
        "money.no_overdraft",
        "no wallet has, or ever had, a negative balance or pending amount",
        "SELECT format('wallet %s %s: entry %s left %s', partner_id, currency, sequence, balance_after)
           FROM ledger
          WHERE balance_after < 0
          UNION ALL
         SELECT format('wallet %s %s: %s, %s, %s', partner_id, currency, balance, pending_orders, pending_payouts)
           FROM wallets
          WHERE LEAST(balance, pending_orders, pending_payouts) < 0"
    ),
    invariant!(
        "money.signs",
        "top-ups, refunds and reversals are positive, debits and payouts are negative, and no entry is zero",
        "SELECT format('wallet %s %s: entry %s, %s of %s', partner_id, currency, sequence, kind, amount)
           FROM ledger
          WHERE amount = 0
             OR (kind IN ('TOP_UP', 'REFUND', 'PAYOUT_REVERSAL') AND amount < 0)
             OR (kind IN ('DEBIT', 'PAYOUT') AND amount > 0)"
    ),
    invariant!(
        "money.order_paid",
        "the ledger entries of an order sum up to its total minus refunds, in its currency, with one debit",
        "SELECT format('order %s: total %s, refunded %s, moved %s by %s debits', order_id, o.total, o.refunded,
                       l.net, l.debits)
           FROM orders AS o
           FULL JOIN (
                 SELECT partner_id, currency, order_id, sum(amount) AS net,
                        count(*) FILTER (WHERE kind = 'DEBIT') AS debits
                   FROM ledger
                  WHERE order_id IS NOT NULL
                  GROUP BY partner_id, currency, order_id
                 ) AS l USING (partner_id, currency, order_id)
          WHERE l.net IS DISTINCT FROM o.refunded - o.total
             OR l.debits <> 1"
    ),
    invariant!(
        "money.order_units",
        "the debit of an order is the value of its delivered and pending units plus its refunds",
        "SELECT format('order %s: debited %s, delivered %s, pending %s, paid back %s', o.order_id, l.debited,
                       u.delivered, u.pending, l.refunded)
           FROM orders AS o
          CROSS JOIN LATERAL (
                 SELECT sum((i ->> 'u')::bigint * (i ->> 'a')::bigint) AS delivered,
                        sum((i ->> 'u')::bigint * ((i ->> 'q')::bigint - (i ->> 'a')::bigint
                                                   - COALESCE((i ->> 'f')::bigint, 0))) AS pending
                   FROM jsonb_array_elements(o.lines::jsonb) AS i
                 ) AS u
           LEFT JOIN (
                 SELECT partner_id, order_id,
                        -sum(amount) FILTER (WHERE kind = 'DEBIT') AS debited,
                        COALESCE(sum(amount) FILTER (WHERE kind = 'REFUND'), 0) AS refunded
                   FROM ledger
                  WHERE order_id IS NOT NULL
                  GROUP BY partner_id, order_id
                 ) AS l ON l.partner_id = o.partner_id AND l.order_id = o.order_id
          WHERE l.debited IS DISTINCT FROM u.delivered + u.pending + l.refunded
             OR u.pending < 0
             OR (o.closed AND u.pending <> 0)"
    ),
    invariant!(
        "money.kinds",
        "only debits and refunds name an order, and only payouts and reversals name a payout",
        "SELECT format('wallet %s %s: entry %s, %s', partner_id, currency, sequence, kind)
           FROM ledger
          WHERE (kind IN ('DEBIT', 'REFUND')) <> (order_id IS NOT NULL)
             OR (kind IN ('PAYOUT', 'PAYOUT_REVERSAL')) <> (payout_id IS NOT NULL)"
    ),
    invariant!(
        "money.pending",
        "a wallet's pending amount for orders is the value of their units still to be delivered",
        "SELECT format('wallet %s %s: pending %s, due %s', partner_id, currency, w.pending_orders, d.due)
           FROM wallets AS w
           FULL JOIN (
                 SELECT o.partner_id, o.currency,
                        sum((l ->> 'u')::bigint * ((l ->> 'q')::bigint - (l ->> 'a')::bigint
                                                   - COALESCE((l ->> 'f')::bigint, 0))) AS due
                   FROM orders AS o
                  CROSS JOIN jsonb_array_elements(o.lines::jsonb) AS l
                  WHERE NOT o.closed
                  GROUP BY o.partner_id, o.currency
                 ) AS d USING (partner_id, currency)
          WHERE COALESCE(w.pending_orders, 0) <> COALESCE(d.due, 0)"
    ),
    invariant!(
        "money.payout",
        "a payout was debited from its wallet, and credited back if it was rejected or failed",
        "SELECT format('payout %s is %s: amount %s, moved %s', payout_id, y.status, y.amount, l.net)
           FROM payouts AS y
           FULL JOIN (
                 SELECT partner_id, currency, payout_id, sum(amount) AS net
                   FROM ledger
                  WHERE payout_id IS NOT NULL
                  GROUP BY partner_id, currency, payout_id
                 ) AS l USING (partner_id, currency, payout_id)
          WHERE l.net IS DISTINCT FROM CASE WHEN y.status IN ('PENDING', 'PAID') THEN -y.amount ELSE 0 END"
    ),
    invariant!(
        "money.pending_payouts",
        "a wallet's pending amount for payouts is the sum of its pending payouts",
        "SELECT format('wallet %s %s: pending %s, due %s', partner_id, currency, w.pending_payouts, d.due)
           FROM wallets AS w
           FULL JOIN (
                 SELECT partner_id, currency, sum(amount) AS due
                   FROM payouts
                  WHERE status = 'PENDING'
                  GROUP BY partner_id, currency
                 ) AS d USING (partner_id, currency)
          WHERE COALESCE(w.pending_payouts, 0) <> COALESCE(d.due, 0)"
    ),
    invariant!(
        "payout.stages",
        "a payout is decided once, and its timeline ends with its status",
        "SELECT format('payout %s is %s, %s entries', y.payout_id, y.status, jsonb_array_length(y.timeline))
           FROM payouts AS y
          WHERE y.status IS DISTINCT FROM y.timeline -> -1 ->> 'status'
             OR jsonb_array_length(y.timeline) <> CASE y.status WHEN 'PENDING' THEN 1 ELSE 2 END"
    ),
];
