//! Changes of webhook endpoints: rotate the secret, enable, remove.

use sqlx::PgConnection;
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::Webhook;
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_security::webhook_url::AuditedUrl;

use super::find;
use crate::deliveries::make_waiting_due;
use crate::webhooks::Webhooks;

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
    /// Removes an endpoint and its deliveries. Returns `false` if it does not exist.
    #[boxed]
    pub async fn remove(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
        url_key: FingerprintKey,
        actor: AuditActor,
    ) -> Result<bool, StoreError> {
        transaction!(self.0, "webhook.remove", async |transaction| {
            let removed = sqlx::query_scalar!(
                "DELETE FROM webhooks WHERE partner_id = $1 AND webhook_id = $2 RETURNING url",
                partner_id as _,
                webhook_id as _,
            )
            .fetch_optional(&mut **transaction)
            .await?;
            let Some(url) = removed else {
                return Ok(false);
            };
            sqlx::query!(
                "DELETE FROM webhook_progress WHERE partner_id = $1 AND webhook_id = $2",
                partner_id as _,
                webhook_id as _,
            )
            .execute(&mut **transaction)
            .await?;
            sqlx::query!(
                "DELETE FROM deliveries WHERE partner_id = $1 AND webhook_id = $2",
                partner_id as _,
                webhook_id as _,
            )
            .execute(&mut **transaction)
            .await?;
            let id = (partner_id, webhook_id);
            let urls = (Some(AuditedUrl::of(&url, &url_key)), None);
            write_url_entry(transaction, &actor, AuditAction::RemoveWebhook, id, urls).await?;
            Ok(true)
        })
    }

    /// Sets a new secret and returns until when the old one signs in addition, or `None` if the endpoint does
    /// not exist.
    #[boxed]
    pub async fn rotate_secret(
        &self,
        rotation: WebhookSecretRotation,
        actor: AuditActor,
    ) -> Result<Option<OffsetDateTime>, StoreError> {
        transaction!(self.0, "webhook.rotate", async |transaction| {
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
            .fetch_optional(&mut **transaction)
            .await?;
            if until.is_some() {
                revoke_lease(transaction, rotation.partner_id, rotation.webhook_id).await?;
                let id = (rotation.partner_id, rotation.webhook_id);
                write_audit_entry(transaction, &actor, AuditAction::RotateWebhookSecret, id).await?;
            }
            Ok(until)
        })
    }

    /// Enables an endpoint, no matter if the partner or a 410 response disabled it, and makes its deliveries
    /// due at once. `None` if the endpoint does not exist.
    #[boxed]
    pub async fn enable(
        &self,
        webhook_id: WebhookId,
        actor: AuditActor,
    ) -> Result<Option<Webhook>, StoreError> {
        transaction!(self.0, "webhook.enable", async |transaction| {
            let before = find(None, webhook_id).fetch_optional(&mut **transaction).await?;
            let Some(before) = before else {
                return Ok(None);
            };
            let id = (before.partner_id, webhook_id);
            set_enabled(transaction, id, true).await?;
            revoke_lease(transaction, before.partner_id, webhook_id).await?;
            write_audit_entry(transaction, &actor, AuditAction::EnableWebhook, id).await?;
            find(None, webhook_id).fetch_optional(&mut **transaction).await
        })
    }
}

/// Enables or disables an endpoint. After enabling it receives the events of the last 24 hours; older ones
/// stay in the feed.
pub(super) async fn set_enabled(
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
            SET cursor = GREATEST(cursor, last_event_before_v2($1, now() - interval '24 hours'))
          WHERE partner_id = $1 AND webhook_id = $2",
        partner_id as _,
        webhook_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Revokes the lease and makes failed deliveries due at once, because the settings have changed.
pub(super) async fn revoke_lease(
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

/// Records the URL before and after, each as origin and hash.
pub(super) async fn write_url_entry(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: AuditAction,
    (partner_id, webhook_id): (PartnerId, WebhookId),
    (before, after): (Option<AuditedUrl>, Option<AuditedUrl>),
) -> Result<(), sqlx::Error> {
    audit::write_of_partner(
        connection,
        actor,
        partner_id,
        action,
        &webhook_id,
        before.as_ref(),
        after.as_ref(),
    )
    .await
}

/// Records a change that leaves the URL as it is.
pub(super) async fn write_audit_entry(
    connection: &mut PgConnection,
    actor: &AuditActor,
    action: AuditAction,
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
