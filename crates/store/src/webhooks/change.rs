//! Changes of webhook endpoints: register, update, rotate the secret, enable, remove.

use sqlx::{PgConnection, PgTransaction};
use time::OffsetDateTime;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::Webhook;

use super::{MAX_WEBHOOKS, find, stored_kinds};
use crate::audit::{self, AuditActor, NO_STATE};
use crate::deliveries::make_waiting_due;
use crate::webhooks::Webhooks;

/// Requested settings of an endpoint. `None` keeps the current value, or takes the default for a new endpoint.
#[derive(Debug, Clone)]
pub struct PutWebhookRequest {
    pub partner_id: PartnerId,
    /// `None` updates the endpoint with this URL or creates one.
    pub webhook_id: Option<WebhookId>,
    /// `None` keeps the URL of the endpoint with this id.
    pub url: Option<String>,
    pub kinds: Option<EventKinds>,
    pub description: Option<String>,
    pub enabled: Option<bool>,
    /// Id of a new endpoint, and its secret sealed for that id.
    pub new: (WebhookId, Vec<u8>),
}

/// Result of registering or updating an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutWebhookOutcome {
    Created(Webhook),
    Updated(Webhook),
    NotFound,
    /// Another endpoint of the partner has this URL.
    UrlTaken,
    /// The partner has [`MAX_WEBHOOKS`].
    TooMany,
}

/// A rotation of the signing secret of an endpoint.
#[derive(Debug, Clone)]
pub struct WebhookSecretRotation {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    /// The new secret, sealed.
    pub secret: Vec<u8>,
    /// How long the old secret signs in addition. Seconds.
    pub overlap_s: u32,
}

impl Webhooks {
    /// Registers or updates an endpoint.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put(
        &self,
        request: PutWebhookRequest,
        actor: AuditActor,
    ) -> Result<PutWebhookOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                // Serializes changes of a partner's endpoints, so the maximum holds.
                sqlx::query!(
                    "SELECT FROM partners WHERE partner_id = $1 FOR NO KEY UPDATE",
                    request.partner_id as _,
                )
                .execute(&mut *transaction)
                .await?;
                let outcome = put(&mut transaction, &request, &actor).await?;
                match outcome {
                    PutWebhookOutcome::Created(_) | PutWebhookOutcome::Updated(_) => {
                        transaction.commit().await?
                    }
                    _ => transaction.rollback().await?,
                }
                Ok(outcome)
            })
            .await
    }

    /// Removes an endpoint and its deliveries. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn remove(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
        actor: AuditActor,
    ) -> Result<bool, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let removed = sqlx::query!(
                    "DELETE FROM webhooks WHERE partner_id = $1 AND webhook_id = $2",
                    partner_id as _,
                    webhook_id as _,
                )
                .execute(&mut *transaction)
                .await?;
                if removed.rows_affected() == 0 {
                    return transaction.rollback().await.map(|()| false);
                }
                sqlx::query!(
                    "DELETE FROM webhook_progress WHERE partner_id = $1 AND webhook_id = $2",
                    partner_id as _,
                    webhook_id as _,
                )
                .execute(&mut *transaction)
                .await?;
                sqlx::query!(
                    "DELETE FROM deliveries WHERE partner_id = $1 AND webhook_id = $2",
                    partner_id as _,
                    webhook_id as _,
                )
                .execute(&mut *transaction)
                .await?;
                let id = (partner_id, webhook_id);
                write_audit_entry(&mut transaction, &actor, "webhook.remove", id).await?;
                transaction.commit().await?;
                Ok(true)
            })
            .await
    }

    /// Sets a new secret and returns until when the old one signs in addition, or `None` if the endpoint does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn rotate_secret(
        &self,
        rotation: WebhookSecretRotation,
        actor: AuditActor,
    ) -> Result<Option<OffsetDateTime>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let until = sqlx::query_scalar!(
                    r#"UPDATE webhooks
                        SET previous_secret = secret,
                            previous_until = now() + make_interval(secs => $4),
                            secret = $3,
                            updated_at = now()
                      WHERE partner_id = $1 AND webhook_id = $2
                     RETURNING previous_until AS "previous_until!""#,
                    rotation.partner_id as _,
                    rotation.webhook_id as _,
                    &rotation.secret,
                    f64::from(rotation.overlap_s),
                )
                .fetch_optional(&mut *transaction)
                .await?;
                if until.is_some() {
                    revoke_lease(&mut transaction, rotation.partner_id, rotation.webhook_id).await?;
                    let id = (rotation.partner_id, rotation.webhook_id);
                    write_audit_entry(&mut transaction, &actor, "webhook.rotate", id).await?;
                }
                transaction.commit().await?;
                Ok(until)
            })
            .await
    }

    /// Enables an endpoint, no matter if the partner or a 410 response disabled it, and makes its deliveries due at once.
    /// `None` if the endpoint does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn enable(
        &self,
        webhook_id: WebhookId,
        actor: AuditActor,
    ) -> Result<Option<Webhook>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let before = find(None, webhook_id).fetch_optional(&mut *transaction).await?;
                let Some(before) = before else {
                    return Ok(None);
                };
                let id = (before.partner_id, webhook_id);
                set_enabled(&mut transaction, id, true).await?;
                revoke_lease(&mut transaction, before.partner_id, webhook_id).await?;
                write_audit_entry(&mut transaction, &actor, "webhook.enable", id).await?;
                let after = find(None, webhook_id).fetch_optional(&mut *transaction).await?;
                transaction.commit().await?;
                Ok(after)
            })
            .await
    }
}

async fn put(
    transaction: &mut PgTransaction<'_>,
    request: &PutWebhookRequest,
    actor: &AuditActor,
) -> Result<PutWebhookOutcome, sqlx::Error> {
    let existing = sqlx::query!(
        r#"SELECT webhook_id AS "webhook_id: WebhookId", events, url
             FROM webhooks
            WHERE partner_id = $1
              FOR NO KEY UPDATE"#,
        request.partner_id as _,
    );
    let existing = existing.fetch_all(&mut **transaction).await?;
    let with_url = existing
        .iter()
        .find(|webhook| Some(&webhook.url) == request.url.as_ref());
    let found = match request.webhook_id {
        None => with_url,
        Some(webhook_id) => {
            let Some(found) = existing.iter().find(|webhook| webhook.webhook_id == webhook_id) else {
                return Ok(PutWebhookOutcome::NotFound);
            };
            if with_url.is_some_and(|webhook| webhook.webhook_id != webhook_id) {
                return Ok(PutWebhookOutcome::UrlTaken);
            }
            Some(found)
        }
    };
    let (webhook_id, is_new) = match found {
        Some(found) => {
            let kinds = request.kinds;
            let kinds = kinds.unwrap_or_else(|| EventKinds::from_labels(found.events.as_deref()));
            update(transaction, found.webhook_id, request, kinds).await?;
            (found.webhook_id, false)
        }
        None if i64::try_from(existing.len()).unwrap_or(i64::MAX) >= MAX_WEBHOOKS => {
            return Ok(PutWebhookOutcome::TooMany);
        }
        None => {
            let Some(url) = &request.url else {
                return Ok(PutWebhookOutcome::NotFound);
            };
            insert(transaction, request, url).await?;
            (request.new.0, true)
        }
    };
    let action = if is_new {
        "webhook.create"
    } else {
        "webhook.change"
    };
    write_audit_entry(transaction, actor, action, (request.partner_id, webhook_id)).await?;
    let webhook = find(Some(request.partner_id), webhook_id);
    let webhook = webhook.fetch_one(&mut **transaction).await?;
    Ok(if is_new {
        PutWebhookOutcome::Created(webhook)
    } else {
        PutWebhookOutcome::Updated(webhook)
    })
}

async fn insert(
    connection: &mut PgConnection,
    request: &PutWebhookRequest,
    url: &str,
) -> Result<(), sqlx::Error> {
    let enabled = request.enabled.unwrap_or(true);
    sqlx::query!(
        "INSERT INTO webhooks (partner_id, webhook_id, url, events, description, enabled, disabled_reason, disabled_at,
                               secret)
         VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN NOT $6 THEN 'PARTNER' END, CASE WHEN NOT $6 THEN now() END, $7)",
        request.partner_id as _,
        request.new.0 as _,
        url,
        request.kinds.and_then(stored_kinds) as _,
        request.description.as_deref(),
        enabled,
        &request.new.1,
    )
    .execute(&mut *connection)
    .await?;
    // Starts at the current last event. The lock on the counter row prevents that an event is numbered meanwhile.
    sqlx::query!(
        "INSERT INTO webhook_progress (partner_id, webhook_id, cursor)
         SELECT $1, $2, COALESCE((
                SELECT f.last_number
                  FROM feeds AS f
                 WHERE f.partner_id = $1
                   FOR UPDATE), 0)",
        request.partner_id as _,
        request.new.0 as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn update(
    connection: &mut PgConnection,
    webhook_id: WebhookId,
    request: &PutWebhookRequest,
    kinds: EventKinds,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE webhooks
            SET url = COALESCE($3, url),
                events = $4,
                description = COALESCE($5, description),
                updated_at = now()
          WHERE partner_id = $1 AND webhook_id = $2",
        request.partner_id as _,
        webhook_id as _,
        request.url.as_deref(),
        stored_kinds(kinds) as _,
        request.description.as_deref(),
    )
    .execute(&mut *connection)
    .await?;
    if let Some(enabled) = request.enabled {
        set_enabled(connection, (request.partner_id, webhook_id), enabled).await?;
    }
    revoke_lease(connection, request.partner_id, webhook_id).await
}

/// Enables or disables an endpoint. After enabling it receives the events of the last 24 hours; older ones stay in the feed.
async fn set_enabled(
    connection: &mut PgConnection,
    (partner_id, webhook_id): (PartnerId, WebhookId),
    enabled: bool,
) -> Result<(), sqlx::Error> {
    let switched = sqlx::query!(
        "UPDATE webhooks
            SET enabled = $3,
                disabled_reason = CASE WHEN NOT $3 THEN 'PARTNER' END,
                disabled_at = CASE WHEN NOT $3 THEN now() END,
                updated_at = now()
          WHERE partner_id = $1 AND webhook_id = $2 AND enabled <> $3",
        partner_id as _,
        webhook_id as _,
        enabled,
    )
    .execute(&mut *connection)
    .await?;
    if switched.rows_affected() == 0 || !enabled {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE webhook_progress
            SET cursor = GREATEST(cursor, last_event_before_v1($1, now() - interval '24 hours'))
          WHERE partner_id = $1 AND webhook_id = $2",
        partner_id as _,
        webhook_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Revokes the lease and makes failed deliveries due at once, because the settings have changed.
async fn revoke_lease(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    webhook_id: WebhookId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE webhook_progress AS p
            SET lease = p.lease + 1,
                leased_until = NULL,
                due_at = CASE WHEN COALESCE(p.due_at, p.failing_since) IS NOT NULL THEN now() END
          WHERE p.partner_id = $1 AND p.webhook_id = $2",
        partner_id as _,
        webhook_id as _,
    )
    .execute(&mut *connection)
    .await?;
    make_waiting_due(connection, partner_id, webhook_id).await
}

/// Records neither URL, which may contain a token, nor secret.
pub(super) async fn write_audit_entry(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: &'static str,
    (partner_id, webhook_id): (PartnerId, WebhookId),
) -> Result<(), sqlx::Error> {
    audit::write_of_partner(
        connection,
        actor,
        partner_id,
        action,
        &webhook_id,
        NO_STATE,
        NO_STATE,
    )
    .await
}
