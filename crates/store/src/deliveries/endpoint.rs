//! Keys of an endpoint and of its lease, and its state at the time of a read.

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_actors::delivery::outbox::Lease;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{PartnerId, WebhookId};

use crate::node_identity::NodeIdentity;

/// Primary key of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndpointKey {
    pub(super) partner_id: PartnerId,
    pub(super) webhook_id: WebhookId,
}

/// Lease with its holder. The number alone is not unique: a database crash may lose a lease, and the next one
/// gets the same number.
#[derive(Debug, Clone)]
pub(super) struct LeaseHolder {
    pub(super) webhook_id: WebhookId,
    pub(super) lease: Lease,
    pub(super) node: NodeIdentity,
}

/// An endpoint at the time of the read.
pub(super) struct EndpointSnapshot {
    pub(super) key: EndpointKey,
    pub(super) kinds: EventKinds,
    pub(super) has_rows: bool,
    pub(super) rows_ahead: bool,
    /// A retry was requested for the events up to this number.
    pub(super) retry_to: i64,
    pub(super) now: OffsetDateTime,
}

/// Loads an endpoint. Returns `None` if the lease has been lost.
pub(super) async fn load_endpoint(
    pool: &PgPool,
    holder: &LeaseHolder,
) -> Result<Option<EndpointSnapshot>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT w.partner_id AS "partner_id: PartnerId",
                w.events,
                EXISTS (
                SELECT
                  FROM deliveries AS d
                 WHERE d.partner_id = w.partner_id AND d.webhook_id = w.webhook_id AND d.state = 'WAITING'
                ) AS "has_rows!",
                EXISTS (
                SELECT
                  FROM deliveries AS d
                 WHERE d.partner_id = w.partner_id AND d.webhook_id = w.webhook_id AND d.number > p.cursor
                ) AS "rows_ahead!",
                p.retry_to,
                now() AS "now!"
           FROM webhooks AS w
           JOIN webhook_progress AS p ON p.partner_id = w.partner_id AND p.webhook_id = w.webhook_id
          WHERE w.webhook_id = $1
            AND p.lease = $2
            AND p.leased_by = $3
            AND p.incarnation = $4
            AND database_history_v1() = $5"#,
        holder.webhook_id as _,
        holder.lease.number,
        holder.node.name,
        holder.node.incarnation,
        holder.lease.history,
    )
    .map(|row| EndpointSnapshot {
        key: EndpointKey {
            partner_id: row.partner_id,
            webhook_id: holder.webhook_id,
        },
        kinds: EventKinds::from_labels(row.events.as_deref()),
        has_rows: row.has_rows,
        rows_ahead: row.rows_ahead,
        retry_to: row.retry_to,
        now: row.now,
    })
    .fetch_optional(pool)
    .await
}
