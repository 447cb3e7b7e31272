//! Deliveries that have rows: what they are of, their attempts, their end, and which of an order's goes first.

use super::Invariant;

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "delivery.endpoint",
        says: "a delivery belongs to an endpoint that exists",
        sql: "
            SELECT format('delivery %s: endpoint %s', d.delivery_id, d.webhook_id)
              FROM deliveries AS d
             WHERE NOT EXISTS (
                    SELECT
                      FROM webhooks AS w
                     WHERE w.partner_id = d.partner_id AND w.webhook_id = d.webhook_id
                    )",
    },
    Invariant {
        name: "delivery.event",
        says: "a delivery, a replayed one too, is of an event of its partner, and knows its order and when it was committed",
        sql: "
            SELECT format('delivery %s: event %s of order %s, %s', d.delivery_id, d.number, d.order_id, d.event_at)
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
                    )",
    },
    Invariant {
        name: "delivery.attempts",
        says: "a delivery remembers every attempt that it counts, the last fifty of them, each with a status or why there was \
               none",
        sql: "
            SELECT format('delivery %s: %s attempts, %s remembered', d.delivery_id, d.attempts, jsonb_array_length(d.log))
              FROM deliveries AS d
             WHERE d.attempts < 0
                OR (d.attempts > jsonb_array_length(d.log) AND jsonb_array_length(d.log) < 50)
                OR jsonb_array_length(d.log) > 50
                OR EXISTS (
                    SELECT
                      FROM jsonb_array_elements(d.log) AS l
                     WHERE (l ->> 'status' IS NULL) = (l ->> 'fault' IS NULL)
                        OR octet_length(l ->> 'answer') > 1024
                    )",
    },
    Invariant {
        name: "delivery.taken",
        says: "a delivery is called delivered after an answer 2xx, and after nothing else",
        sql: "
            SELECT format('delivery %s: %s', d.delivery_id, d.log -> -1 ->> 'status')
              FROM deliveries AS d
             WHERE d.state = 'DELIVERED'
               AND (d.log -> -1 ->> 'status')::integer BETWEEN 200 AND 299 IS NOT TRUE",
    },
    Invariant {
        name: "delivery.time",
        says: "a delivery has 24 hours from its event's commit, or more when it is replayed, and is not given up before",
        // A minute is allowed for clocks that differ: a process counts by its own.
        sql: "
            SELECT format('delivery %s is %s: event %s, ends %s, written %s', d.delivery_id, d.state, d.event_at, d.ends_at,
                          d.updated_at)
              FROM deliveries AS d
             WHERE d.ends_at < d.event_at + interval '24 hours'
                OR (d.replays > 0 AND d.ends_at = d.event_at + interval '24 hours')
                OR (d.state = 'FAILED' AND d.updated_at < d.ends_at - interval '1 minute')",
    },
    Invariant {
        name: "delivery.turn",
        says: "of an order, the first delivery that waits has a time, and those that wait behind it have none",
        sql: "
            SELECT format('delivery %s of order %s: %s', d.delivery_id, d.order_id, d.next_at)
              FROM (
                    SELECT *, row_number() OVER (PARTITION BY partner_id, webhook_id, order_id ORDER BY number) AS place
                      FROM deliveries
                     WHERE state = 'WAITING'
                    ) AS d
             WHERE (d.place = 1) <> (d.next_at < 'infinity')",
    },
    Invariant {
        name: "delivery.sequence",
        says: "of an order, no event has ended while an earlier one still waits for the first time",
        // What is replayed may be older than what has ended.
        sql: "
            SELECT format('delivery %s is %s, and delivery %s of order %s waits', l.delivery_id, l.state, e.delivery_id,
                          e.order_id)
              FROM deliveries AS e
              JOIN deliveries AS l
                ON l.partner_id = e.partner_id
               AND l.webhook_id = e.webhook_id
               AND l.order_id = e.order_id
               AND l.number > e.number
             WHERE e.state = 'WAITING'
               AND l.state <> 'WAITING'
               AND GREATEST(e.ends_at - e.event_at, l.ends_at - l.event_at) = interval '24 hours'",
    },
];
