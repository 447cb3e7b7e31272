//! SQL of the outbox cases, and cases of statements that block on a row and miss concurrent writes.

use std::ops::RangeInclusive;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_domain::delivery::DeliveryAttempt;
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::ids::{EventId, PartnerId, WebhookId};
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_simulation::conformance::{EndpointChange, EndpointFixture};
use vouchsafe_simulation::{DeliveryRow, EndpointStatus, RowState, build};
use vouchsafe_store::{AuditActor, PutWebhookRequest, ReplayOutcome, WebhookSecretRotation};

use crate::subject::PgSubject;

mod lock_waits;
mod plans;
mod polls;
mod redelivery;
mod replay_ranges;

type Fixture<'s> = EndpointFixture<'s, PgSubject>;

/// Time columns, all of which are shifted to let time pass.
const TIME_COLUMNS: [(&str, &[&str]); 4] = [
    ("webhook_progress", &["leased_until", "due_at", "failing_since"]),
    ("deliveries", &["next_at", "give_up_at", "event_at", "updated_at"]),
    ("events", &["created_at"]),
    ("webhooks", &["disabled_at", "previous_until"]),
];

fn url_key() -> FingerprintKey {
    FingerprintKey::from_bytes([1; 32])
}

pub(crate) fn put_request(partner_id: PartnerId, webhook_id: WebhookId) -> PutWebhookRequest {
    PutWebhookRequest {
        partner_id,
        webhook_id: None,
        url: Some(format!("https://{}.example/", webhook_id.as_uuid())),
        kinds: None,
        description: None,
        enabled: None,
        new_id: webhook_id,
        secret: b"sealed".to_vec(),
        url_key: url_key(),
    }
}

pub(crate) async fn put(subject: &PgSubject, endpoint: PutWebhookRequest) {
    let put = subject.store().webhooks.put(endpoint, AuditActor::service());
    put.await.unwrap();
}

pub(crate) async fn change(subject: &PgSubject, webhook_id: WebhookId, change: EndpointChange) {
    let partner_id = partner_of(subject.pool(), webhook_id).await;
    let request = PutWebhookRequest {
        webhook_id: Some(webhook_id),
        ..put_request(partner_id, webhook_id)
    };
    let (webhooks, actor) = (&subject.store().webhooks, AuditActor::service());
    match change {
        EndpointChange::SetEnabled(on) => {
            let enabled = Some(on);
            put(subject, PutWebhookRequest { enabled, ..request }).await;
        }
        EndpointChange::SetEventKinds(kinds) => {
            let kinds = Some(kinds);
            put(subject, PutWebhookRequest { kinds, ..request }).await;
        }
        EndpointChange::EnableByOperator => {
            assert!(webhooks.enable(webhook_id, actor).await.unwrap().is_some());
        }
        EndpointChange::RotateSecret => {
            let rotation = WebhookSecretRotation {
                partner_id,
                webhook_id,
                secret: b"another".to_vec(),
                overlap_s: 3_600,
            };
            let rotated = webhooks.rotate_secret(rotation, actor).await;
            assert!(rotated.unwrap().is_some());
        }
        EndpointChange::RequestRetry => {
            let retried = webhooks.retry(Some(partner_id), webhook_id, actor).await;
            assert!(retried.unwrap().is_some());
        }
        EndpointChange::Remove => assert!(try_remove(subject, webhook_id).await),
        EndpointChange::ForgetLastLease => {
            let forget = "UPDATE webhook_progress
                             SET lease = lease - 1,
                                 leased_by = NULL,
                                 incarnation = NULL,
                                 leased_until = NULL,
                                 last_flush = 0";
            subject.pool().execute(forget).await.unwrap();
        }
        EndpointChange::LoseEvents { after } => lose_events(subject.pool(), after).await,
        EndpointChange::ReplaceHistory => {
            let quarantine = subject
                .store()
                .quarantine
                .start("a case".to_owned(), AuditActor::service());
            quarantine.await.unwrap();
        }
    }
}

async fn lose_events(pool: &PgPool, after: i64) {
    for lose in [
        "DELETE FROM events WHERE number > $1",
        "UPDATE feeds SET last_number = $1",
    ] {
        sqlx::query(lose).bind(after).execute(pool).await.unwrap();
    }
}

async fn partner_of(pool: &PgPool, webhook_id: WebhookId) -> PartnerId {
    let partner = sqlx::query_scalar("SELECT partner_id FROM webhooks WHERE webhook_id = $1");
    let partner = partner.bind(webhook_id.as_uuid()).fetch_one(pool).await;
    PartnerId::from_uuid(partner.unwrap())
}

pub(crate) async fn try_remove(subject: &PgSubject, webhook_id: WebhookId) -> bool {
    let partner_id = partner_of(subject.pool(), webhook_id).await;
    let webhooks = &subject.store().webhooks;
    let removed = webhooks.remove(partner_id, webhook_id, url_key(), AuditActor::service());
    removed.await.unwrap()
}

async fn committed_at(pool: &PgPool, number: i64) -> OffsetDateTime {
    sqlx::query_scalar("SELECT created_at FROM events WHERE number = $1")
        .bind(number)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Replays one event by id, or several by time range.
pub(crate) async fn try_replay(
    subject: &PgSubject,
    webhook_id: WebhookId,
    numbers: RangeInclusive<i64>,
) -> ReplayOutcome {
    let partner_id = build::partner(1);
    let (first, last) = (*numbers.start(), *numbers.end());
    let from = committed_at(subject.pool(), first).await;
    let request = if first == last {
        ReplayRequest::Event(EventId::for_number(partner_id, first, from))
    } else {
        let last = committed_at(subject.pool(), last).await;
        ReplayRequest::TimeRange(from, last + time::Duration::MICROSECOND)
    };
    let deliveries = &subject.store().deliveries;
    let replay = deliveries.replay_events(partner_id, webhook_id, request, AuditActor::service());
    replay.await.unwrap()
}

pub(crate) async fn append_event(pool: &PgPool, partner_id: PartnerId, order: u32) -> i64 {
    let order_id = build::numbered_order_id(order);
    let sequence: i64 = sqlx::query_scalar("SELECT count(*) + 1 FROM events WHERE order_id = $1")
        .bind(order_id.as_uuid())
        .fetch_one(pool)
        .await
        .unwrap();
    let body = build::event_bundle(order, u32::try_from(sequence).unwrap());
    sqlx::query_scalar(
        "WITH counted AS (
            INSERT INTO feeds AS f (partner_id, last_number)
            VALUES ($1, 1)
            ON CONFLICT (partner_id) DO UPDATE
               SET last_number = f.last_number + 1
            RETURNING last_number
         )
         INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
         SELECT $1, c.last_number, 1, $2, $3, $4, now()
           FROM counted AS c
         RETURNING number",
    )
    .bind(partner_id.as_uuid())
    .bind(order_id.as_uuid())
    .bind(i32::try_from(sequence).unwrap())
    .bind(serde_json::to_string(&body).unwrap())
    .fetch_one(pool)
    .await
    .unwrap()
}

pub(crate) async fn advance_time(superuser: &PgConnectOptions, by: Duration) {
    let mut superuser = PgConnection::connect_with(superuser).await.unwrap();
    let mut transaction = superuser.begin().await.unwrap();
    // Events are immutable; replica mode disables their trigger.
    transaction
        .execute("SET LOCAL session_replication_role = replica")
        .await
        .unwrap();
    for (table, columns) in TIME_COLUMNS {
        let earlier: Vec<_> = columns
            .iter()
            .map(|column| format!("{column} = {column} - make_interval(secs => $1)"))
            .collect();
        let update = format!("UPDATE {table} SET {}", earlier.join(", "));
        sqlx::query(AssertSqlSafe(update))
            .bind(by.as_secs_f64())
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    transaction.commit().await.unwrap();
}

pub(crate) async fn delivery(pool: &PgPool, webhook_id: WebhookId, number: i64) -> Option<DeliveryRow> {
    let row: Option<(String, bool, i32, Json<Vec<DeliveryAttempt>>)> = sqlx::query_as(
        "SELECT state, next_at = 'infinity', attempts, log FROM deliveries WHERE number = $1 AND webhook_id = $2",
    )
    .bind(number)
    .bind(webhook_id.as_uuid())
    .fetch_optional(pool)
    .await
    .unwrap();
    row.map(|(state, never, attempts, Json(log))| DeliveryRow {
        state: match state.as_str() {
            "DELIVERED" => RowState::Delivered,
            "FAILED" => RowState::Failed,
            _ if never => RowState::Blocked,
            _ => RowState::Waiting,
        },
        attempts: attempts.cast_unsigned(),
        log,
    })
}

pub(crate) async fn status(pool: &PgPool, webhook_id: WebhookId) -> Option<EndpointStatus> {
    let row: Option<(i64, i32, i64, i64, bool)> = sqlx::query_as(
        "SELECT p.cursor, p.failures, p.delivered, p.refused, w.enabled
           FROM webhook_progress AS p
           JOIN webhooks AS w ON w.webhook_id = p.webhook_id
          WHERE p.webhook_id = $1",
    )
    .bind(webhook_id.as_uuid())
    .fetch_optional(pool)
    .await
    .unwrap();
    row.map(|(cursor, failures, delivered, refused, enabled)| EndpointStatus {
        cursor,
        failures: failures.cast_unsigned(),
        delivered: delivered.cast_unsigned(),
        refused: refused.cast_unsigned(),
        enabled,
    })
}
