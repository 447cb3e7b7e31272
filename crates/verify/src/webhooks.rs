//! Invariants of webhook endpoints: partner, cursor, health and lease.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "webhook.partner",
        "an endpoint belongs to an existing partner, and a partner has at most ten",
        "SELECT format('endpoint %s of partner %s', w.webhook_id, w.partner_id)
           FROM webhooks AS w
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = w.partner_id)
          UNION ALL
         SELECT format('partner %s: %s endpoints', w.partner_id, count(*))
           FROM webhooks AS w
          GROUP BY w.partner_id
         HAVING count(*) > 10"
    ),
    invariant!(
        "webhook.cursor",
        "every endpoint has a cursor in its partner's events, never after the last event",
        "SELECT format('endpoint %s: cursor %s, the last event is %s', webhook_id, p.cursor, f.last_number)
           FROM webhooks AS w
           FULL JOIN webhook_progress AS p USING (partner_id, webhook_id)
           LEFT JOIN feeds AS f USING (partner_id)
          WHERE w.url IS NULL
             OR p.cursor IS NULL
             OR p.cursor NOT BETWEEN 0 AND COALESCE(f.last_number, 0)"
    ),
    invariant!(
        "webhook.disabled",
        "a disabled endpoint has a reason and a time, an enabled one has neither",
        "SELECT format('endpoint %s: %s, %s since %s', w.webhook_id, w.enabled, w.disabled_reason, w.disabled_at)
           FROM webhooks AS w
          WHERE w.enabled <> (w.disabled_reason IS NULL)
             OR w.enabled <> (w.disabled_at IS NULL)"
    ),
    invariant!(
        "webhook.health",
        "only an endpoint whose last attempt failed has a failure time and a backoff step",
        "SELECT format('endpoint %s: %s failures since %s, step %s', p.webhook_id, p.failures, p.failing_since, p.backoff_step)
           FROM webhook_progress AS p
          WHERE LEAST(p.failures, p.backoff_step) < 0
             OR (p.failures > 0) <> (p.failing_since IS NOT NULL)
             OR (p.failures > 0) <> (p.backoff_step > 0)"
    ),
    invariant!(
        "webhook.lease",
        "a lease belongs to an incarnation of a known node and lasts at most 30 seconds",
        // Allows a minute for leases written while the check began.
        "SELECT format('endpoint %s: node %s, incarnation %s, until %s', p.webhook_id, p.leased_by, p.incarnation,
                       p.leased_until)
           FROM webhook_progress AS p
           LEFT JOIN nodes AS n ON n.node = p.leased_by
          WHERE (p.leased_until IS NOT NULL AND p.incarnation IS NULL)
             OR (p.leased_by IS NOT NULL AND p.incarnation NOT BETWEEN 1 AND COALESCE(n.incarnation, 0))
             OR p.leased_until > now() + interval '30 seconds' + interval '1 minute'"
    ),
    invariant!(
        "webhook.due",
        "an endpoint with waiting deliveries has a next attempt time, so that it is polled",
        "SELECT format('endpoint %s: %s waiting deliveries', webhook_id, d.deliveries)
           FROM webhook_progress AS p
           JOIN (
                 SELECT partner_id, webhook_id, count(*) AS deliveries
                   FROM deliveries
                  WHERE state = 'WAITING'
                  GROUP BY partner_id, webhook_id
                 ) AS d USING (partner_id, webhook_id)
          WHERE p.due_at IS NULL"
    ),
    invariant!(
        "webhook.counted",
        "the counters of an endpoint include every attempt of its deliveries",
        "SELECT format('endpoint %s: counted %s delivered and %s failed, logged %s and %s', webhook_id, p.delivered,
                       p.refused, a.taken, a.refused)
           FROM webhook_progress AS p
           JOIN (
                 SELECT d.partner_id, d.webhook_id,
                        count(*) FILTER (WHERE (l ->> 'status')::integer BETWEEN 200 AND 299) AS taken,
                        count(*) FILTER (
                         WHERE (l ->> 'status')::integer NOT BETWEEN 200 AND 299 OR l ->> 'status' IS NULL
                        ) AS refused
                   FROM deliveries AS d
                  CROSS JOIN jsonb_array_elements(d.log) AS l
                  GROUP BY d.partner_id, d.webhook_id
                 ) AS a USING (partner_id, webhook_id)
          WHERE p.delivered < a.taken
             OR p.refused < a.refused"
    ),
    invariant!(
        "webhook.audited",
        "registrations and replays are in the audit log, as many replays as the delivery counts",
        // A replay extends the retry window, so it ends more than 24 hours after the event. Rows written by
        // current versions also count their replays.
        "SELECT format('endpoint %s: no audit entry of its registration', w.webhook_id)
           FROM webhooks AS w
          WHERE NOT EXISTS (
                 SELECT
                   FROM audit_log AS a
                  WHERE a.action = 'webhook.create'
                    AND a.subject = 'wh_' || replace(w.webhook_id::text, '-', '')
                 )
          UNION ALL
         SELECT format('endpoint %s: %s replayed, up to %s times, %s audit entries', d.webhook_id, d.deliveries, d.replays, a.entries)
           FROM (
                 SELECT d.webhook_id, count(*) AS deliveries, GREATEST(max(d.replays), 1) AS replays
                   FROM deliveries AS d
                  WHERE d.replays > 0 OR d.give_up_at > d.event_at + interval '24 hours'
                  GROUP BY d.webhook_id
                 ) AS d
          CROSS JOIN LATERAL (
                 SELECT count(*) AS entries
                   FROM audit_log AS a
                  WHERE a.action = 'webhook.replay'
                    AND a.subject = 'wh_' || replace(d.webhook_id::text, '-', '')
                 ) AS a
          WHERE a.entries < d.replays"
    ),
];
