//! Registration and update of webhook endpoints.

use sqlx::PgConnection;
use vouchsafe_audit_log::AuditActor;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::webhook::Webhook;
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_security::webhook_url::AuditedUrl;

use super::change::{revoke_lease, set_enabled, write_url_entry};
use super::{MAX_WEBHOOKS, find, stored_kinds};
use crate::webhooks::Webhooks;

/// Requested settings of an endpoint. `None` keeps the current value, or takes the default for a new
/// endpoint.
#[derive(Debug, Clone)]
pub struct PutWebhookRequest {
    pub partner_id: PartnerId,
    /// `None` updates the endpoint with this URL or creates one.
    pub webhook_id: Option<WebhookId>,
    /// Normalized. `None` keeps the URL of the endpoint with this id.
    pub url: Option<String>,
    pub kinds: Option<EventKinds>,
    pub description: Option<String>,
    pub enabled: Option<bool>,
    /// Id of a new endpoint.
    pub new_id: WebhookId,
    /// The secret of a new endpoint, or of one whose URL gets another origin; sealed for `webhook_id` or else
    /// `new_id`.
    pub secret: Vec<u8>,
    /// Hashes URLs for the audit log.
    pub url_key: FingerprintKey,
}

/// Result of registering or updating an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutWebhookOutcome {
    Created(Webhook),
    Updated(Webhook),
    /// Updated, and its URL has another origin: it has the new secret, and no other secret signs.
    Moved(Webhook),
    NotFound,
    /// Another endpoint of the partner has this URL.
    UrlTaken,
    /// The partner has [`MAX_WEBHOOKS`].
    TooMany,
}

impl Webhooks {
    /// Registers or updates an endpoint.
    #[boxed]
    pub async fn put(
        &self,
        request: PutWebhookRequest,
        actor: AuditActor,
    ) -> Result<PutWebhookOutcome, StoreError> {
        transaction!(self.0, "webhook.put", async |transaction| {
            // Serializes changes of a partner's endpoints, so the maximum holds.
            sqlx::query!(
                "SELECT FROM partners WHERE partner_id = $1 FOR NO KEY UPDATE",
                request.partner_id as _,
            )
            .execute(&mut **transaction)
            .await?;
            let outcome = put(transaction, &request, &actor).await?;
            Ok(outcome)
        })
    }
}

async fn put(
    transaction: &mut PgConnection,
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
    let existing = existing.fetch_all(&mut *transaction).await?;
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
    let audited = |url: &String| AuditedUrl::of(url, &request.url_key);
    let (old_url, new_url) = (
        found.map(|found| audited(&found.url)),
        request.url.as_ref().map(audited),
    );
    let is_moved = old_url
        .as_ref()
        .zip(new_url.as_ref())
        .is_some_and(|(old, new)| old.has_other_origin(new));
    let webhook_id = match found {
        Some(found) => {
            let kinds = request.kinds;
            let kinds = kinds.unwrap_or_else(|| EventKinds::from_labels(found.events.as_deref()));
            update(transaction, found.webhook_id, request, kinds, is_moved).await?;
            found.webhook_id
        }
        None if i64::try_from(existing.len()).unwrap_or(i64::MAX) >= MAX_WEBHOOKS => {
            return Ok(PutWebhookOutcome::TooMany);
        }
        None => {
            let Some(url) = &request.url else {
                return Ok(PutWebhookOutcome::NotFound);
            };
            insert(transaction, request, url).await?;
            request.new_id
        }
    };
    let action = if found.is_some() {
        AuditAction::ChangeWebhook
    } else {
        AuditAction::CreateWebhook
    };
    // An entry of a change that keeps the URL has no state.
    let is_url_unchanged = new_url.is_none() || old_url == new_url;
    let urls = if is_url_unchanged {
        (None, None)
    } else {
        (old_url, new_url)
    };
    let id = (request.partner_id, webhook_id);
    write_url_entry(transaction, actor, action, id, urls).await?;
    let webhook = find(Some(request.partner_id), webhook_id);
    let webhook = webhook.fetch_one(&mut *transaction).await?;
    Ok(match found {
        None => PutWebhookOutcome::Created(webhook),
        Some(_) if is_moved => PutWebhookOutcome::Moved(webhook),
        Some(_) => PutWebhookOutcome::Updated(webhook),
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
        request.new_id as _,
        url,
        request.kinds.and_then(stored_kinds) as _,
        request.description.as_deref(),
        enabled,
        &request.secret,
    )
    .execute(&mut *connection)
    .await?;
    // Starts at the current last event. The lock on the counter row prevents that an event is numbered
    // meanwhile.
    sqlx::query!(
        "INSERT INTO webhook_progress (partner_id, webhook_id, cursor)
         SELECT $1, $2, COALESCE((
                SELECT f.last_number
                  FROM feeds AS f
                 WHERE f.partner_id = $1
                   FOR UPDATE), 0)",
        request.partner_id as _,
        request.new_id as _,
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
    is_moved: bool,
) -> Result<(), sqlx::Error> {
    // A previous secret signs during the overlap of a rotation, and the old host knows it.
    sqlx::query!(
        "UPDATE webhooks
            SET url = COALESCE($3, url),
                events = $4,
                description = COALESCE($5, description),
                secret = CASE WHEN $6 THEN $7 ELSE secret END,
                previous_secret = CASE WHEN NOT $6 THEN previous_secret END,
                previous_until = CASE WHEN NOT $6 THEN previous_until END,
                updated_at = now()
          WHERE partner_id = $1 AND webhook_id = $2",
        request.partner_id as _,
        webhook_id as _,
        request.url.as_deref(),
        stored_kinds(kinds) as _,
        request.description.as_deref(),
        is_moved,
        &request.secret,
    )
    .execute(&mut *connection)
    .await?;
    if let Some(enabled) = request.enabled {
        set_enabled(connection, (request.partner_id, webhook_id), enabled).await?;
    }
    revoke_lease(connection, request.partner_id, webhook_id).await
}
