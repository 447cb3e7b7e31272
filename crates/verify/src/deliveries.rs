//! Invariants of webhook deliveries: event, attempts, retry window and order.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "delivery.endpoint",
        "a delivery belongs to an existing endpoint",
        "SELECT format('delivery %s: endpoint %s', d.delivery_id, d.webhook_id)
           FROM deliveries AS d
          WHERE NOT EXISTS (
                 SELECT
                   FROM webhooks AS w
                  WHERE w.partner_id = d.partner_id AND w.webhook_id = d.webhook_id
                 )"
    ),
    invariant!(
        "delivery.event",
        "a delivery, replayed or not, matches an event of its partner, with the same order and time",
        "SELECT format('delivery %s: event %s of order %s, %s', d.delivery_id, d.number, d.order_id, d.event_at)
           FROM deliveries AS d
          WHERE NOT EXISTS (
                 SELECT
                   FROM (
                         SELECT *
                           FROM events AS e
                          WHERE e.partner_id = d.partner_id AND e.number <= d.number
                          ORDER BY e.number DESC
                          LIMIT 1
                         ) AS e
                  WHERE d.number < e.number + e.count
                    AND e.order_id = d.order_id
                    AND e.created_at = d.event_at
                 )"
    ),
    invariant!(
        "delivery.attempts",
        "a delivery has a log entry for every counted attempt, up to fifty, with a status or a fault",
        "SELECT format('delivery %s: %s attempts, %s logged', d.delivery_id, d.attempts, jsonb_array_length(d.log))
           FROM deliveries AS d
          WHERE d.attempts < 0
             OR (d.attempts > jsonb_array_length(d.log) AND jsonb_array_length(d.log) < 50)
             OR jsonb_array_length(d.log) > 50
             OR EXISTS (
                 SELECT
                   FROM jsonb_array_elements(d.log) AS l
                  WHERE (l ->> 'status' IS NULL) = (l ->> 'fault' IS NULL)
                     OR octet_length(l ->> 'answer') > 1024
                 )"
    ),
    invariant!(
        "delivery.taken",
        "a delivered event has a 2xx response",
        "SELECT format('delivery %s: %s', d.delivery_id, d.log -> -1 ->> 'status')
           FROM deliveries AS d
          WHERE d.state = 'DELIVERED'
            AND (d.log -> -1 ->> 'status')::integer BETWEEN 200 AND 299 IS NOT TRUE"
    ),
    invariant!(
        "delivery.time",
        "a delivery is retried for 24 hours by the clock of its partner, longer if replayed, and does not fail before",
        // Allows a minute of clock skew: each process uses its own clock.
        "SELECT format('delivery %s is %s: event %s, ends %s, written %s', d.delivery_id, d.state, d.event_at, d.give_up_at,
                       d.updated_at)
           FROM deliveries AS d
          WHERE d.give_up_at < d.event_at + interval '24 hours' - COALESCE((
                    SELECT sum((a ->> 'seconds')::bigint)
                      FROM sandbox_clocks AS c
                     CROSS JOIN jsonb_array_elements(c.advances) AS a
                     WHERE c.partner_id = d.partner_id AND (a ->> 'at')::timestamptz > d.event_at), 0) * interval '1 second'
             OR (d.replays > 0 AND d.give_up_at = d.event_at + interval '24 hours')
             OR (d.state = 'FAILED' AND d.updated_at < d.give_up_at - interval '1 minute')"
    ),
    invariant!(
        "delivery.turn",
        "per order, the first waiting delivery has an attempt time and the blocked ones have none",
        "SELECT format('delivery %s of order %s: %s', d.delivery_id, d.order_id, d.next_at)
           FROM (
                 SELECT *, row_number() OVER (PARTITION BY partner_id, webhook_id, order_id ORDER BY number) AS position
                   FROM deliveries
                  WHERE state = 'WAITING'
                 ) AS d
          WHERE (d.position = 1) <> (d.next_at < 'infinity')"
    ),
    invariant!(
        "delivery.sequence",
        "per order, no event has ended while an earlier one still waits for its first delivery",
        // Leaves out replayed events, which may be older than ended ones.
        "SELECT format('delivery %s is %s, and delivery %s of order %s waits', l.delivery_id, l.state, e.delivery_id,
                       e.order_id)
           FROM deliveries AS e
           JOIN deliveries AS l
             ON l.partner_id = e.partner_id
            AND l.webhook_id = e.webhook_id
            AND l.order_id = e.order_id
            AND l.number > e.number
          WHERE e.state = 'WAITING'
            AND l.state <> 'WAITING'
            AND GREATEST(e.give_up_at - e.event_at, l.give_up_at - l.event_at) = interval '24 hours'"
    ),
];
