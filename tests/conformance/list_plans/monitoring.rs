//! Plans of the lists for monitoring: delivery log, audit trail of a partner, change requests, checkpoints
//! and the overview's counts.

use sqlx::{AssertSqlSafe, Executor as _};
use time::Duration;
use uuid::Uuid;
use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_domain::change_request::{ChangeKind, ChangeRequestFilter, ChangeRequestStatus};
use vouchsafe_domain::delivery::attempt::{AttemptFilter, AttemptResult};
use vouchsafe_domain::ids::{AttemptId, DeliveryId, OrderId, WebhookId};
use vouchsafe_domain::period::Period;
use vouchsafe_store::StoreError;

use super::filled::{ListFixture, day, partner};

/// Days with a partition of the delivery log.
const DAYS: i64 = 10;

/// 10,000 attempts a day of one endpoint and 1,000 of another one. Those at the first ten events failed;
/// order `n` has event `n`.
const INSERT_ATTEMPTS: &str = "
    INSERT INTO delivery_attempts (webhook_id, attempt_id, partner_id, number, event_at, event, order_id, attempt, latency_ms,
                                   delivered, status, fault, answer)
    SELECT w.webhook_id,
           (lpad(to_hex((extract(epoch FROM a.at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid,
           $partner, i, a.at, 'order.delivered', lpad(to_hex(i), 32, '0')::uuid, 1, 7, i > 10,
           CASE WHEN i > 10 THEN 204 END, CASE WHEN i <= 10 THEN 'timeout' END, ''
      FROM generate_series(1, 100000) AS i
     CROSS JOIN LATERAL (SELECT '2026-01-01Z'::timestamptz + i * interval '8.64 s' - interval '1 s' AS at) AS a
     CROSS JOIN LATERAL (
           SELECT lpad('1', 32, '0')::uuid AS webhook_id UNION ALL SELECT lpad('2', 32, '0')::uuid WHERE i % 10 = 0
          ) AS w;
    INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at, event_at)
    SELECT $partner, lpad('1', 32, '0')::uuid, i, lpad(to_hex(i), 32, '0')::uuid, lpad(to_hex(i), 32, '0')::uuid, 'FAILED', 9, now(),
           now(), now()
      FROM generate_series(1, 10) AS i";

/// 100,000 requests that were carried out, after the three oldest that wait.
const INSERT_REQUESTS: &str = "
    INSERT INTO change_requests (request_id, kind, object, details, sealed, requested_by, expires_at, status, decided_by, decided_at)
    SELECT lpad(to_hex(i), 32, '0')::uuid, CASE i WHEN 3 THEN 'ADJUSTMENT' ELSE 'TOP_UP' END, 'ptn_1', '{}',
           CASE WHEN i <= 3 THEN ''::bytea END, 'ann', now() + interval '1 day',
           CASE WHEN i <= 3 THEN 'WAITING' ELSE 'EXECUTED' END, CASE WHEN i > 3 THEN 'ben' END, CASE WHEN i > 3 THEN now() END
      FROM generate_series(1, 100003) AS i";

const INSERT_CHECKPOINTS: &str = "
    INSERT INTO audit_checkpoints (number, entries, hash, mac)
    SELECT i, ARRAY[i], sha256(i::text::bytea), '' FROM generate_series(1, 100000) AS i";

pub(super) async fn check_monitoring(lists: &ListFixture) {
    create_partitions(lists).await;
    let attempts = INSERT_ATTEMPTS.replace("$partner", &format!("'{}'", partner(1).as_uuid()));
    for statements in [&*attempts, INSERT_REQUESTS, INSERT_CHECKPOINTS] {
        let statements = AssertSqlSafe(statements.to_owned());
        lists.subject.pool().execute(statements).await.unwrap();
    }
    let analyze = "ANALYZE delivery_attempts, deliveries, change_requests, audit_checkpoints";
    lists.subject.pool().execute(analyze).await.unwrap();
    check_delivery_log(lists).await;
    check_audit_of_partners(lists).await;
    check_requests(lists).await;
    for before in [None, Some(50)] {
        let description = format!("checkpoints before {before:?}");
        let checkpoints = lists.store.audit_log.list_checkpoints(before, 26, None);
        lists.assert_reads_few_rows(&description, 26, checkpoints).await;
    }
    lists
        .assert_reads_few_rows("open work", 1, count_open_work(lists))
        .await;
    check_indexes_are_needed(lists).await;
}

async fn create_partitions(lists: &ListFixture) {
    for number in 0..DAYS {
        let [from, to] = [number, number + 1].map(|number| {
            let bound = AttemptId::lower_bound_at(day(number).unwrap());
            bound.as_uuid()
        });
        let create = format!(
            "CREATE TABLE attempts_of_day_{number} PARTITION OF delivery_attempts FOR VALUES FROM ('{from}') TO ('{to}')"
        );
        lists.subject.pool().execute(AssertSqlSafe(create)).await.unwrap();
    }
}

async fn check_delivery_log(lists: &ListFixture) {
    let any = AttemptFilter::default;
    let failed = || AttemptFilter {
        outcome: Some(AttemptResult::Failed),
        ..any()
    };
    let oldest = Period {
        from: day(0),
        to: day(0).map(|at| at + Duration::HOUR),
    };
    let first = Uuid::from_u128(1);
    let of_order = AttemptFilter {
        order_id: Some(OrderId::from_uuid(first)),
        ..any()
    };
    let of_delivery = AttemptFilter {
        delivery_id: Some(DeliveryId::from_uuid(first)),
        ..any()
    };
    let delivered = AttemptFilter {
        outcome: Some(AttemptResult::Delivered),
        ..any()
    };
    for (description, filter, count) in [
        ("all", any(), 26),
        (
            "an hour",
            AttemptFilter {
                period: oldest,
                ..any()
            },
            26,
        ),
        ("failed", failed(), 10),
        (
            "failed in an hour",
            AttemptFilter {
                period: oldest,
                ..failed()
            },
            10,
        ),
        ("delivered", delivered, 26),
        ("an order", of_order, 1),
        ("a delivery", of_delivery, 1),
    ] {
        let attempts = lists.store.deliveries.list_attempts(endpoint(), filter, None, 26);
        let description = format!("attempts: {description}");
        lists.assert_reads_few_rows(&description, count, attempts).await;
    }
    let before = day(1).map(AttemptId::lower_bound_at);
    let attempts = lists
        .store
        .deliveries
        .list_attempts(endpoint(), any(), before, 26);
    lists
        .assert_reads_few_rows("attempts before a day", 26, attempts)
        .await;
}

fn endpoint() -> WebhookId {
    WebhookId::from_uuid(Uuid::from_u128(1))
}

/// Partner 1 has read 100,000 codes; partner 3 has the oldest nine entries of operators.
async fn check_audit_of_partners(lists: &ListFixture) {
    for (number, action, before, count) in [
        (1, None, None, 26),
        (1, None, Some(150_000), 26),
        (3, None, None, 9),
        (3, Some("stock.void"), None, 9),
        (1, Some("stock.void"), None, 0),
        (2, None, None, 0),
    ] {
        let description = format!("audit of partner {number}: {action:?}, before {before:?}");
        let read = lists.store.audit_log.list(of_partner(number, action), before, 26);
        lists.assert_reads_few_rows(&description, count, read).await;
    }
}

fn of_partner(number: u64, action: Option<&str>) -> AuditFilter {
    AuditFilter {
        partner_id: Some(partner(number)),
        action: action.map(str::to_owned),
        ..AuditFilter::default()
    }
}

async fn check_requests(lists: &ListFixture) {
    let any = ChangeRequestFilter::default;
    let waiting = || ChangeRequestFilter {
        status: Some(ChangeRequestStatus::Waiting),
        ..any()
    };
    let of_kind = ChangeRequestFilter {
        kind: Some(ChangeKind::Adjustment),
        ..waiting()
    };
    for (description, filter, count) in [
        ("all", any(), 26),
        ("waiting", waiting(), 3),
        ("waiting adjustments", of_kind, 1),
    ] {
        let requests = lists.store.change_requests.list(filter, None, 26);
        let description = format!("requests: {description}");
        lists.assert_reads_few_rows(&description, count, requests).await;
    }
}

async fn count_open_work(
    lists: &ListFixture,
) -> Result<Vec<vouchsafe_domain::overview::OpenWork>, StoreError> {
    Ok(vec![lists.store.count_open_work().await?])
}

async fn check_indexes_are_needed(lists: &ListFixture) {
    let of_partner = lists.store.audit_log.list(of_partner(3, None), None, 26);
    lists
        .assert_reads_many_rows_without("DROP INDEX audit_log_of_partner", of_partner)
        .await;
    let failed = AttemptFilter {
        outcome: Some(AttemptResult::Failed),
        ..AttemptFilter::default()
    };
    let attempts = lists.store.deliveries.list_attempts(endpoint(), failed, None, 26);
    lists
        .assert_reads_many_rows_without("DROP INDEX delivery_attempts_failed", attempts)
        .await;
    lists
        .assert_reads_many_rows_without("DROP INDEX change_requests_open", count_open_work(lists))
        .await;
}
