//! What becomes of an endpoint: registered, changed, rotated, switched on again, removed.

use sqlx::{PgConnection, PgTransaction};
use time::OffsetDateTime;
use vouchsafe_actors::domain::event_kind::EventKinds;
use vouchsafe_actors::domain::ids::{PartnerId, WebhookId};

use super::row::{Webhook, kinds_of};
use super::{MAX_WEBHOOKS, find, words_of};
use crate::store::PgStore;
use crate::store::audit::{self, By, Deed, NOTHING};

/// What a partner wants of an endpoint. What is left out stays, or is as it is for a new one.
#[derive(Debug, Clone)]
pub struct PutWebhook {
    pub partner_id: PartnerId,
    /// Which; without it the one with this URL, or a new one.
    pub webhook_id: Option<WebhookId>,
    pub url: String,
    /// What it asks for.
    pub kinds: Option<EventKinds>,
    /// What the partner calls it.
    pub description: Option<String>,
    /// Whether it gets anything.
    pub enabled: Option<bool>,
    /// The id of a new one, and its secret, sealed for that id.
    pub new: (WebhookId, Vec<u8>),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    Created(Webhook),
    Updated(Webhook),
    /// There is none with this id.
    NotFound,
    /// Another one of the partner has this URL.
    UrlTaken,
    /// The partner has [`MAX_WEBHOOKS`].
    TooMany,
}

/// A new secret for an endpoint.
#[derive(Debug, Clone)]
pub struct WebhookRotation {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    /// The new secret, sealed.
    pub secret: Vec<u8>,
    /// For how long the old one signs, too. Seconds.
    pub overlap_s: u32,
}

impl PgStore {
    /// Registers or changes an endpoint.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put_webhook(&self, wanted: PutWebhook, by: By) -> Result<PutOutcome, sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            // One change of a partner's endpoints at a time: they are counted.
            sqlx::query("SELECT FROM partners WHERE partner_id = $1 FOR NO KEY UPDATE")
                .bind(wanted.partner_id.as_uuid())
                .execute(&mut *transaction)
                .await?;
            let outcome = put(&mut transaction, &wanted, &by).await?;
            match outcome {
                PutOutcome::Created(_) | PutOutcome::Updated(_) => transaction.commit().await?,
                _ => transaction.rollback().await?,
            }
            Ok(outcome)
        })
        .await
    }

    /// Removes an endpoint with its deliveries; says whether there was one.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn remove_webhook(
        &self,
        partner_id: PartnerId,
        webhook_id: WebhookId,
        by: By,
    ) -> Result<bool, sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            let removed = sqlx::query("DELETE FROM webhooks WHERE partner_id = $1 AND webhook_id = $2")
                .bind(partner_id.as_uuid())
                .bind(webhook_id.as_uuid())
                .execute(&mut *transaction)
                .await?;
            if removed.rows_affected() == 0 {
                return transaction.rollback().await.map(|()| false);
            }
            for statement in [
                "DELETE FROM webhook_progress WHERE partner_id = $1 AND webhook_id = $2",
                "DELETE FROM deliveries WHERE partner_id = $1 AND webhook_id = $2",
            ] {
                sqlx::query(statement)
                    .bind(partner_id.as_uuid())
                    .bind(webhook_id.as_uuid())
                    .execute(&mut *transaction)
                    .await?;
            }
            note(&mut transaction, &by, "webhook.remove", webhook_id).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Gives an endpoint a new secret; says until when the old one signs, too. `None` where there is no such endpoint.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn rotate_webhook(
        &self,
        rotation: WebhookRotation,
        by: By,
    ) -> Result<Option<OffsetDateTime>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            let until = sqlx::query_scalar(
                "UPDATE webhooks
                    SET previous_secret = secret,
                        previous_until = now() + make_interval(secs => $4),
                        secret = $3,
                        updated_at = now()
                  WHERE partner_id = $1 AND webhook_id = $2
                 RETURNING previous_until",
            )
            .bind(rotation.partner_id.as_uuid())
            .bind(rotation.webhook_id.as_uuid())
            .bind(&rotation.secret)
            .bind(f64::from(rotation.overlap_s))
            .fetch_optional(&mut *transaction)
            .await?;
            if until.is_some() {
                recall(&mut transaction, rotation.partner_id, rotation.webhook_id).await?;
                note(&mut transaction, &by, "webhook.rotate", rotation.webhook_id).await?;
            }
            transaction.commit().await?;
            Ok(until)
        })
        .await
    }

    /// Switches an endpoint on, whoever switched it off, and lets it be tried at once. `None` where there is no such endpoint.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn enable_webhook(
        &self,
        webhook_id: WebhookId,
        by: By,
    ) -> Result<Option<Webhook>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            let Some(before) = find(&mut transaction, None, webhook_id).await? else {
                return Ok(None);
            };
            let id = (before.partner_id, webhook_id);
            switch(&mut transaction, id, true).await?;
            recall(&mut transaction, before.partner_id, webhook_id).await?;
            note(&mut transaction, &by, "webhook.enable", webhook_id).await?;
            let after = find(&mut transaction, None, webhook_id).await?;
            transaction.commit().await?;
            Ok(after)
        })
        .await
    }
}

async fn put(
    transaction: &mut PgTransaction<'_>,
    wanted: &PutWebhook,
    by: &By,
) -> Result<PutOutcome, sqlx::Error> {
    type Known = (uuid::Uuid, Option<Vec<String>>, String);
    let known: Vec<Known> = sqlx::query_as(
        "SELECT webhook_id, events, url FROM webhooks WHERE partner_id = $1 FOR NO KEY UPDATE",
    )
    .bind(wanted.partner_id.as_uuid())
    .fetch_all(&mut **transaction)
    .await?;
    let with_url = known.iter().find(|(_, _, url)| *url == wanted.url);
    let found = match wanted.webhook_id {
        None => with_url,
        Some(webhook_id) => {
            let Some(found) = known.iter().find(|(id, ..)| *id == webhook_id.as_uuid()) else {
                return Ok(PutOutcome::NotFound);
            };
            if with_url.is_some_and(|(id, ..)| *id != found.0) {
                return Ok(PutOutcome::UrlTaken);
            }
            Some(found)
        }
    };
    let (webhook_id, is_new) = match found {
        Some((id, events, _)) => {
            let kinds = wanted.kinds.unwrap_or_else(|| kinds_of(events.as_deref()));
            let webhook_id = WebhookId::from_uuid(*id);
            update(transaction, webhook_id, wanted, kinds).await?;
            (webhook_id, false)
        }
        None if i64::try_from(known.len()).unwrap_or(i64::MAX) >= MAX_WEBHOOKS => {
            return Ok(PutOutcome::TooMany);
        }
        None => {
            insert(transaction, wanted).await?;
            (wanted.new.0, true)
        }
    };
    note(
        transaction,
        by,
        if is_new {
            "webhook.create"
        } else {
            "webhook.change"
        },
        webhook_id,
    )
    .await?;
    let webhook = find(transaction, Some(wanted.partner_id), webhook_id).await?;
    let webhook = webhook.ok_or(sqlx::Error::RowNotFound)?;
    Ok(if is_new {
        PutOutcome::Created(webhook)
    } else {
        PutOutcome::Updated(webhook)
    })
}

/// A new one begins with what is committed after it: the counter's row is locked, so that no event is numbered meanwhile.
async fn insert(connection: &mut PgConnection, wanted: &PutWebhook) -> Result<(), sqlx::Error> {
    let enabled = wanted.enabled.unwrap_or(true);
    sqlx::query(
        "INSERT INTO webhooks (partner_id, webhook_id, url, events, description, enabled, disabled_reason, disabled_at,
                               secret)
         VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN NOT $6 THEN 'PARTNER' END, CASE WHEN NOT $6 THEN now() END, $7)",
    )
    .bind(wanted.partner_id.as_uuid())
    .bind(wanted.new.0.as_uuid())
    .bind(&wanted.url)
    .bind(wanted.kinds.and_then(words_of))
    .bind(&wanted.description)
    .bind(enabled)
    .bind(&wanted.new.1)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO webhook_progress (partner_id, webhook_id, cursor)
         SELECT $1, $2, COALESCE((
                SELECT f.last_number
                  FROM feeds AS f
                 WHERE f.partner_id = $1
                   FOR UPDATE), 0)",
    )
    .bind(wanted.partner_id.as_uuid())
    .bind(wanted.new.0.as_uuid())
    .execute(connection)
    .await
    .map(drop)
}

async fn update(
    connection: &mut PgConnection,
    webhook_id: WebhookId,
    wanted: &PutWebhook,
    kinds: EventKinds,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE webhooks
            SET url = $3,
                events = $4,
                description = COALESCE($5, description),
                updated_at = now()
          WHERE partner_id = $1 AND webhook_id = $2",
    )
    .bind(wanted.partner_id.as_uuid())
    .bind(webhook_id.as_uuid())
    .bind(&wanted.url)
    .bind(words_of(kinds))
    .bind(&wanted.description)
    .execute(&mut *connection)
    .await?;
    if let Some(enabled) = wanted.enabled {
        switch(connection, (wanted.partner_id, webhook_id), enabled).await?;
    }
    recall(connection, wanted.partner_id, webhook_id).await
}

/// Switches an endpoint on or off. One that was off gets what is younger than 24 hours; the rest is in the feed.
async fn switch(
    connection: &mut PgConnection,
    (partner_id, webhook_id): (PartnerId, WebhookId),
    enabled: bool,
) -> Result<(), sqlx::Error> {
    let switched = sqlx::query(
        "UPDATE webhooks
            SET enabled = $3,
                disabled_reason = CASE WHEN NOT $3 THEN 'PARTNER' END,
                disabled_at = CASE WHEN NOT $3 THEN now() END,
                updated_at = now()
          WHERE partner_id = $1 AND webhook_id = $2 AND enabled <> $3",
    )
    .bind(partner_id.as_uuid())
    .bind(webhook_id.as_uuid())
    .bind(enabled)
    .execute(&mut *connection)
    .await?;
    if switched.rows_affected() == 0 || !enabled {
        return Ok(());
    }
    sqlx::query(
        "UPDATE webhook_progress
            SET cursor = GREATEST(cursor, events_before($1, now() - interval '24 hours'))
          WHERE partner_id = $1 AND webhook_id = $2",
    )
    .bind(partner_id.as_uuid())
    .bind(webhook_id.as_uuid())
    .execute(connection)
    .await
    .map(drop)
}

/// Takes the lease away, and lets what failed be tried at once: the endpoint is another one now.
async fn recall(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    webhook_id: WebhookId,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE webhook_progress AS p
            SET lease = p.lease + 1,
                leased_until = NULL,
                due_at = CASE WHEN p.failing_since IS NULL THEN p.due_at ELSE now() END
          WHERE p.partner_id = $1 AND p.webhook_id = $2",
    )
    .bind(partner_id.as_uuid())
    .bind(webhook_id.as_uuid())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE deliveries
            SET next_at = now()
          WHERE partner_id = $1
            AND webhook_id = $2
            AND state = 'WAITING'
            AND next_at > now()
            AND next_at < 'infinity'",
    )
    .bind(partner_id.as_uuid())
    .bind(webhook_id.as_uuid())
    .execute(connection)
    .await
    .map(drop)
}

/// That it was done stands in the trail; neither its URL, which may hold a token, nor its secret.
async fn note(
    connection: &mut PgConnection,
    by: &By,
    action: &'static str,
    webhook_id: WebhookId,
) -> Result<(), sqlx::Error> {
    let subject = webhook_id.to_string();
    let deed = Deed {
        action,
        subject: &subject,
    };
    audit::write(connection, by, deed, NOTHING, NOTHING).await
}
