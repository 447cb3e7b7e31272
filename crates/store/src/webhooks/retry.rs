//! Requested retry: everything that waits for an endpoint is attempted now.

use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::Webhook;

use super::change::{revoke_lease, write_audit_entry};
use super::{Webhooks, find};
use crate::audit::AuditActor;

impl Webhooks {
    /// Makes every waiting delivery of an endpoint due at once, also while the endpoint fails, and returns the endpoint. `None` if
    /// it does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn retry(
        &self,
        partner_id: Option<PartnerId>,
        webhook_id: WebhookId,
        actor: AuditActor,
    ) -> Result<Option<Webhook>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let before = find(partner_id, webhook_id).fetch_optional(&mut *transaction).await?;
                let Some(before) = before else {
                    return Ok(None);
                };
                revoke_lease(&mut transaction, before.partner_id, webhook_id).await?;
                sqlx::query!(
                    "UPDATE webhook_progress AS p
                        SET retry_to = COALESCE((SELECT f.last_number FROM feeds AS f WHERE f.partner_id = $1), 0)
                      WHERE p.partner_id = $1 AND p.webhook_id = $2",
                    before.partner_id as _,
                    webhook_id as _,
                )
                .execute(&mut *transaction)
                .await?;
                write_audit_entry(&mut transaction, &actor, "webhook.retry", webhook_id).await?;
                let after = find(None, webhook_id).fetch_optional(&mut *transaction).await?;
                transaction.commit().await?;
                Ok(after)
            })
            .await
    }
}
