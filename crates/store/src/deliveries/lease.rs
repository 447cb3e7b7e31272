//! Endpoint leases, and polling for endpoints with due deliveries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use vouchsafe_database::boxed;

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::{LEASE_DURATION, Lease, LeasedEndpoint};
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_domain::delivery::{SealedSecret, WebhookTarget};
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::store_error::Unavailable;

use super::interval;
use crate::node::PgNode;
use crate::node_identity::NodeIdentity;

/// An endpoint with due deliveries that this node may lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueEndpoint {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub is_failing: bool,
}

/// The enabled endpoints, and the nodes that share them.
#[derive(Debug, Clone, Default)]
pub struct EndpointRoster {
    /// Endpoints that are not failing, by partner: they deliver new events at once.
    pub ready_by_partner: HashMap<PartnerId, Vec<WebhookId>>,
    pub enabled: HashSet<WebhookId>,
    /// Number of enabled endpoints that are failing.
    pub failing: usize,
    /// Number of endpoints that are disabled because of a 410.
    pub gone: usize,
    /// Age of the oldest event after the cursor of any enabled endpoint.
    pub backlog_age: Duration,
    pub nodes: usize,
}

struct EndpointRow {
    partner_id: PartnerId,
    webhook_id: WebhookId,
    failing: bool,
    age_s: f64,
}

/// Leases an endpoint that has work and no other holder. Commits asynchronously: after a database crash two
/// nodes may deliver for a moment, and receivers recognize duplicates by the event id.
pub(super) async fn acquire_lease(
    pool: &PgPool,
    webhook_id: WebhookId,
    node: &NodeIdentity,
) -> Result<Option<LeasedEndpoint>, sqlx::Error> {
    sqlx::query!(
        r#"WITH async_commit AS (SELECT set_config('synchronous_commit', 'off', true))
         UPDATE webhook_progress AS p
            SET lease = p.lease + 1,
                lease_history = database_history_v1(),
                last_flush = 0,
                leased_by = $2,
                incarnation = $3,
                leased_until = now() + $4
           FROM (
                -- Waits for a change of the endpoint, which locks this row first: without the lock this statement would take over the
                -- lease that the change has revoked, with the URL and the secrets before the change.
                SELECT partner_id, webhook_id, url, secret, previous_secret, previous_until, enabled
                  FROM webhooks
                 WHERE webhook_id = $1
                   FOR SHARE
                ) AS w, async_commit
          WHERE p.partner_id = w.partner_id
            AND p.webhook_id = w.webhook_id
            AND w.enabled
            AND (p.leased_until IS NULL
                 OR p.leased_until NOT BETWEEN now() AND now() + $4 + interval '10 seconds' -- later: the clock was set back
                 OR (p.leased_by = $2 AND p.incarnation < $3)
                 OR p.lease_history <> database_history_v1()) -- its holder writes nothing
            AND (p.due_at <= now() + interval '1 second'
                 OR (p.failures < $5 AND p.cursor < (
                     SELECT f.last_number
                       FROM feeds AS f
                      WHERE f.partner_id = p.partner_id)))
         RETURNING p.partner_id AS "partner_id: PartnerId", w.url, w.secret, w.previous_secret, w.previous_until, p.lease,
                   p.lease_history AS "history!", p.cursor, p.retry_to, p.failures, p.backoff_step,
                   GREATEST(COALESCE(extract(epoch FROM p.due_at - now()), 0), 0)::float8 AS "wait_s!""#,
        webhook_id as _,
        node.name,
        node.incarnation,
        interval(LEASE_DURATION),
        FAILING_THRESHOLD.cast_signed(),
    )
    .map(|row| {
        let sealed = |bytes: Vec<u8>| SealedSecret(Arc::from(bytes));
        LeasedEndpoint {
            lease: Lease {
                number: row.lease,
                history: row.history,
            },
            target: Arc::new(WebhookTarget {
                partner_id: row.partner_id,
                webhook_id,
                url: row.url,
                secret: sealed(row.secret),
                previous_secret: row.previous_secret.map(sealed).zip(row.previous_until),
            }),
            cursor: row.cursor,
            retry_to: row.retry_to,
            consecutive_failures: row.failures.cast_unsigned(),
            backoff_step: row.backoff_step.cast_unsigned(),
            retry_in: Duration::try_from_secs_f64(row.wait_s).unwrap_or_default(),
        }
    })
    .fetch_optional(pool)
    .await
}

impl PgNode {
    /// Lists the endpoints with due deliveries that this node may lease.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn list_due_endpoints(&self) -> Result<Vec<DueEndpoint>, Unavailable> {
        let node = self.identity();
        let statement = sqlx::query_as!(
            DueEndpoint,
            r#"SELECT p.partner_id AS "partner_id: PartnerId", p.webhook_id AS "webhook_id: WebhookId",
                    p.failures >= $3 AS "is_failing!"
               FROM webhook_progress AS p
               JOIN webhooks AS w ON w.partner_id = p.partner_id AND w.webhook_id = p.webhook_id
               LEFT JOIN feeds AS f ON f.partner_id = p.partner_id
              WHERE w.enabled
                AND (p.due_at <= now() OR p.failures < $3 AND p.cursor < f.last_number)
                AND (p.leased_until IS NULL
                     OR p.leased_until NOT BETWEEN now() AND now() + $4 + interval '10 seconds'
                     OR p.leased_by = $1 AND p.incarnation <= $2
                     OR p.lease_history <> database_history_v1())
              ORDER BY p.due_at NULLS FIRST"#,
            node.name.clone(),
            node.incarnation,
            FAILING_THRESHOLD.cast_signed(),
            interval(LEASE_DURATION),
        );
        let due = self.delivery_database().fetch_all(statement).await;
        due.map_err(Unavailable::from)
    }

    /// Lists the enabled endpoints and counts the nodes that share them.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn load_endpoint_roster(&self) -> Result<EndpointRoster, Unavailable> {
        let loaded = self.delivery_database().run(move |pool| async move {
            let rows = list_enabled(&pool).await?;
            let counts = sqlx::query!(
                r#"SELECT (SELECT count(*) FROM nodes WHERE is_lease_live_v1(lease_until, renewed_at)) AS "nodes!",
                          (SELECT count(*) FROM webhooks WHERE disabled_reason = 'GONE') AS "gone!""#
            );
            let counts = counts.fetch_one(&pool).await?;
            let mut roster = EndpointRoster {
                nodes: usize::try_from(counts.nodes).unwrap_or(1).max(1),
                gone: usize::try_from(counts.gone).unwrap_or_default(),
                ..EndpointRoster::default()
            };
            for row in rows {
                roster.add(&row);
            }
            Ok(roster)
        });
        loaded.await.map_err(Unavailable::from)
    }
}

impl EndpointRoster {
    fn add(&mut self, row: &EndpointRow) {
        if row.failing {
            self.failing += 1;
        }
        self.add_endpoint(DueEndpoint {
            partner_id: row.partner_id,
            webhook_id: row.webhook_id,
            is_failing: row.failing,
        });
        let age = Duration::try_from_secs_f64(row.age_s).unwrap_or_default();
        self.backlog_age = self.backlog_age.max(age);
    }

    /// Adds an endpoint that was created or enabled since the roster was loaded.
    pub fn add_endpoint(&mut self, endpoint: DueEndpoint) {
        let is_new = self.enabled.insert(endpoint.webhook_id);
        if is_new && !endpoint.is_failing {
            self.ready_by_partner
                .entry(endpoint.partner_id)
                .or_default()
                .push(endpoint.webhook_id);
        }
    }
}

async fn list_enabled(pool: &PgPool) -> Result<Vec<EndpointRow>, sqlx::Error> {
    sqlx::query_as!(
        EndpointRow,
        r#"SELECT p.partner_id AS "partner_id: PartnerId", p.webhook_id AS "webhook_id: WebhookId",
                p.failures >= $1 AS "failing!",
                COALESCE((
                    SELECT extract(epoch FROM now() - e.created_at)
                      FROM events AS e
                     WHERE e.partner_id = p.partner_id
                       AND e.number > p.cursor
                       AND p.cursor < f.last_number
                     ORDER BY e.number
                     LIMIT 1), 0)::float8 AS "age_s!"
           FROM webhook_progress AS p
           JOIN webhooks AS w ON w.partner_id = p.partner_id AND w.webhook_id = p.webhook_id
           LEFT JOIN feeds AS f ON f.partner_id = p.partner_id
          WHERE w.enabled"#,
        FAILING_THRESHOLD.cast_signed(),
    )
    .fetch_all(pool)
    .await
}
