//! Conformance suite over the Postgres outbox, and cases of statements that block on a row and miss concurrent writes.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_domain::delivery::DeliveryAttempt;
use vouchsafe_domain::delivery::replay::ReplayRequest;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{EventId, PartnerId, WebhookId};
use vouchsafe_simulation::memory_outbox::bundle;
use vouchsafe_simulation::outbox::{self, EndpointStatus, OutboxSubject, Row, RowState, order_id};
use vouchsafe_simulation::{build, outbox_cases};
use vouchsafe_store::{
    AuditActor, PgNode, PgOutbox, PgStore, PutWebhookRequest, ReplayOutcome, WebhookSecretRotation, verify,
};

use crate::server::Database;

mod lock_waits;
mod plans;
mod redelivery;

macro_rules! over_postgres {
    ($($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let subject = PgOutboxSubject::create().await;
                outbox::run_and_audit(stringify!($case), &subject).await;
                subject.database.remove().await;
            }
        )*
    };
}
outbox_cases!(over_postgres);

/// Time columns, all of which are shifted to let time pass.
const TIME_COLUMNS: [(&str, &[&str]); 4] = [
    ("webhook_progress", &["leased_until", "due_at", "failing_since"]),
    ("deliveries", &["next_at", "ends_at", "event_at", "updated_at"]),
    ("events", &["created_at"]),
    ("webhooks", &["disabled_at", "previous_until"]),
];

pub(super) struct PgOutboxSubject {
    database: Database,
    pool: PgPool,
    store: PgStore,
    partner_id: PartnerId,
    webhook_id: WebhookId,
}

impl PgOutboxSubject {
    async fn create() -> Self {
        let database = Database::create().await;
        let pool = PgPoolOptions::new().max_connections(4);
        let subject = Self {
            pool: pool.connect_with(database.options()).await.unwrap(),
            store: PgStore::open(database.options(), Handle::current()),
            database,
            partner_id: build::partner(1),
            webhook_id: WebhookId::generate(),
        };
        sqlx::query("INSERT INTO partners (partner_id, name, allowlist) VALUES ($1, 'A partner', '{}')")
            .bind(subject.partner_id.as_uuid())
            .execute(&subject.pool)
            .await
            .unwrap();
        subject.put(None, None, None).await;
        subject
    }

    async fn put(&self, webhook_id: Option<WebhookId>, kinds: Option<EventKinds>, enabled: Option<bool>) {
        let webhook = PutWebhookRequest {
            webhook_id,
            kinds,
            enabled,
            ..self.endpoint(self.webhook_id)
        };
        self.store
            .webhooks
            .put(webhook, AuditActor::service())
            .await
            .unwrap();
    }

    /// Adds another endpoint of the partner.
    async fn add(&self, webhook_id: WebhookId) {
        let webhook = PutWebhookRequest {
            url: format!("https://{}.example/", webhook_id.as_uuid()),
            ..self.endpoint(webhook_id)
        };
        self.store
            .webhooks
            .put(webhook, AuditActor::service())
            .await
            .unwrap();
    }

    fn endpoint(&self, webhook_id: WebhookId) -> PutWebhookRequest {
        PutWebhookRequest {
            partner_id: self.partner_id,
            webhook_id: None,
            url: "https://hooks.example/".to_owned(),
            kinds: None,
            description: None,
            enabled: None,
            new: (webhook_id, b"sealed".to_vec()),
        }
    }

    async fn committed_at(&self, number: i64) -> OffsetDateTime {
        sqlx::query_scalar("SELECT created_at FROM events WHERE number = $1")
            .bind(number)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// Replays one event by id, or several by time range.
    async fn try_replay(&self, numbers: RangeInclusive<i64>) -> ReplayOutcome {
        let (first, last) = (*numbers.start(), *numbers.end());
        let from = self.committed_at(first).await;
        let request = if first == last {
            ReplayRequest::Event(EventId::for_number(self.partner_id, first, from))
        } else {
            ReplayRequest::TimeRange(from, self.committed_at(last).await + time::Duration::MICROSECOND)
        };
        let replay = self.store.deliveries.replay_events(
            self.partner_id,
            self.webhook_id,
            request,
            AuditActor::service(),
        );
        replay.await.unwrap()
    }

    async fn try_remove(&self) -> bool {
        let remove = self
            .store
            .webhooks
            .remove(self.partner_id, self.webhook_id, AuditActor::service());
        remove.await.unwrap()
    }
}

impl OutboxSubject for PgOutboxSubject {
    fn webhook_id(&self) -> WebhookId {
        self.webhook_id
    }

    async fn start(&self, node: &str) -> Arc<dyn Outbox> {
        let node = PgNode::start(&self.store.database, node.to_owned())
            .await
            .unwrap();
        Arc::new(PgOutbox::new(&node))
    }

    async fn commit(&self, order: u32) -> i64 {
        let order_id = order_id(order);
        let sequence: i64 = sqlx::query_scalar("SELECT count(*) + 1 FROM events WHERE order_id = $1")
            .bind(order_id.as_uuid())
            .fetch_one(&self.pool)
            .await
            .unwrap();
        let body = bundle(order, u32::try_from(sequence).unwrap());
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
        .bind(self.partner_id.as_uuid())
        .bind(order_id.as_uuid())
        .bind(i32::try_from(sequence).unwrap())
        .bind(serde_json::to_string(&body).unwrap())
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    async fn advance_time(&self, by: Duration) {
        let mut superuser = PgConnection::connect_with(&self.database.superuser_options())
            .await
            .unwrap();
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

    async fn replay(&self, numbers: RangeInclusive<i64>) {
        let events = usize::try_from(numbers.end() - numbers.start() + 1).unwrap();
        assert_eq!(self.try_replay(numbers).await, ReplayOutcome::Scheduled(events));
    }

    async fn set_enabled(&self, on: bool) {
        self.put(Some(self.webhook_id), None, Some(on)).await;
    }

    async fn set_event_kinds(&self, kinds: EventKinds) {
        self.put(Some(self.webhook_id), Some(kinds), None).await;
    }

    async fn rotate_secret(&self) {
        let rotation = WebhookSecretRotation {
            partner_id: self.partner_id,
            webhook_id: self.webhook_id,
            secret: b"another".to_vec(),
            overlap_s: 3_600,
        };
        let rotated = self
            .store
            .webhooks
            .rotate_secret(rotation, AuditActor::service())
            .await;
        assert!(rotated.unwrap().is_some());
    }

    async fn enable(&self) {
        let enabled = self
            .store
            .webhooks
            .enable(self.webhook_id, AuditActor::service())
            .await;
        assert!(enabled.unwrap().is_some());
    }

    async fn remove(&self) {
        assert!(self.try_remove().await);
    }

    async fn forget_last_lease(&self) {
        sqlx::query(
            "UPDATE webhook_progress
                SET lease = lease - 1,
                    leased_by = NULL,
                    incarnation = NULL,
                    leased_until = NULL,
                    turn = 0",
        )
        .execute(&self.pool)
        .await
        .unwrap();
    }

    async fn row(&self, number: i64) -> Option<Row> {
        let row: Option<(String, bool, i32, Json<Vec<DeliveryAttempt>>)> = sqlx::query_as(
            "SELECT state, next_at = 'infinity', attempts, log FROM deliveries WHERE number = $1",
        )
        .bind(number)
        .fetch_optional(&self.pool)
        .await
        .unwrap();
        row.map(|(state, never, attempts, Json(log))| Row {
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

    async fn status(&self) -> Option<EndpointStatus> {
        let row: Option<(i64, i32, i64, i64, bool)> = sqlx::query_as(
            "SELECT p.cursor, p.failures, p.delivered, p.refused, w.enabled
               FROM webhook_progress AS p
               JOIN webhooks AS w ON w.webhook_id = p.webhook_id",
        )
        .fetch_optional(&self.pool)
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

    /// Checks of endpoints and deliveries only, because these events have no orders.
    async fn violations(&self) -> Vec<String> {
        let mut connection = self.pool.acquire().await.unwrap();
        let findings = verify::check(&mut connection).await.unwrap();
        let ours = |name: &str| name.starts_with("webhook.") || name.starts_with("delivery.");
        assert!(findings.iter().filter(|finding| ours(finding.name)).count() > 10);
        let broken = findings.into_iter().filter(|finding| ours(finding.name));
        broken
            .flat_map(|finding| {
                finding
                    .rows
                    .into_iter()
                    .map(move |row| format!("{}: {row}", finding.name))
            })
            .collect()
    }
}
