//! Requested retry: everything that waits for an endpoint is attempted now.

use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::Webhook;

use super::change::write_audit_entry;
use super::{Webhooks, find};
use crate::deliveries::make_waiting_due;

impl Webhooks {
    /// Makes every waiting delivery of an endpoint due at once, also while the endpoint fails, and returns
    /// the endpoint. `None` if it does not exist.
    ///
    /// Only a failing endpoint is leased anew, because its holder waits for a time that it read before. One
    /// that works keeps its lease, so that its attempts in flight are not repeated: its holder reads the due
    /// rows after the next poll.
    #[boxed]
    pub async fn retry(
        &self,
        partner_id: Option<PartnerId>,
        webhook_id: WebhookId,
        actor: AuditActor,
    ) -> Result<Option<Webhook>, StoreError> {
        transaction!(self.0, "webhook.retry", async |transaction| {
            let before = find(partner_id, webhook_id)
                .fetch_optional(&mut **transaction)
                .await?;
            let Some(before) = before else {
                return Ok(None);
            };
            sqlx::query!(
                    "UPDATE webhook_progress AS p
                        SET retry_to = COALESCE((SELECT f.last_number FROM feeds AS f WHERE f.partner_id = $1), 0),
                            lease = CASE WHEN p.failures >= $3 THEN p.lease + 1 ELSE p.lease END,
                            leased_until = CASE WHEN p.failures >= $3 THEN NULL ELSE p.leased_until END,
                            due_at = CASE WHEN COALESCE(p.due_at, p.failing_since) IS NOT NULL THEN now() END
                      WHERE p.partner_id = $1 AND p.webhook_id = $2",
                    before.partner_id as _,
                    webhook_id as _,
                    FAILING_THRESHOLD.cast_signed(),
                )
                .execute(&mut **transaction)
                .await?;
            make_waiting_due(transaction, before.partner_id, webhook_id).await?;
            let id = (before.partner_id, webhook_id);
            write_audit_entry(transaction, &actor, AuditAction::RetryWebhook, id).await?;
            find(None, webhook_id).fetch_optional(&mut **transaction).await
        })
    }
}
