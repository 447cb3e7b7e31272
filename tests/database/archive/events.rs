//! Archives of events: ranges of feeds, what keeps a month, and what is left of it.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use tokio::runtime::Handle;
use vouchsafe_archive::{ArchiveError, ArchivedMonth, Log};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_store::{FeedPosition, PgNode, PgStore};

use super::{archive_log, broken, execute_as_superuser, month, read_lines, removal};
use crate::verify::seeded_database::SeededDatabase;

/// A database whose first commit of events is five months old, the second one four months, and the others
/// new. No delivery is open.
async fn database_with_old_events() -> SeededDatabase {
    let database = SeededDatabase::create().await;
    let age = "SET session_replication_role = replica;
        WITH aged AS (
            SELECT e.partner_id, e.number, row_number() OVER (ORDER BY e.number) AS position FROM events AS e
        )
        UPDATE events AS e
           SET created_at = e.created_at - make_interval(months => CASE a.position WHEN 1 THEN 5 WHEN 2 THEN 4 ELSE 0 END)
          FROM aged AS a
         WHERE a.partner_id = e.partner_id AND a.number = e.number;
        UPDATE webhook_progress AS p SET cursor = f.last_number FROM feeds AS f WHERE f.partner_id = p.partner_id;
        DELETE FROM deliveries";
    execute_as_superuser(&database, age).await;
    database
}

async fn archive_events(
    database: &SeededDatabase,
    to: &Path,
    remove: bool,
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    archive_log(&database.options(), Log::Events, 2, to, removal(remove)).await
}

async fn event_numbers(database: &SeededDatabase) -> Vec<i64> {
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let numbers = sqlx::query_scalar("SELECT number FROM events ORDER BY number");
    numbers.fetch_all(&mut connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_events_are_removed_and_all_invariants_hold() {
    let database = database_with_old_events().await;
    let numbers = event_numbers(&database).await;
    let to = TempDir::new().unwrap();
    let written = archive_events(&database, to.path(), false).await.unwrap();
    assert_eq!(
        event_numbers(&database).await,
        numbers,
        "nothing is removed without the flag"
    );
    let events: Vec<_> = written
        .iter()
        .flat_map(|month| read_lines(&month.directory.join("events.ndjson.gz")))
        .collect();
    let archived: Vec<_> = events
        .iter()
        .map(|event| event["number"].as_i64().unwrap())
        .collect();
    assert_eq!((written.len(), &archived[..]), (3, &numbers[..2]), "{written:?}");
    assert_eq!(events[0]["body"]["o"], "DELIVERED", "{events:?}");

    let removed = archive_events(&database, to.path(), true).await.unwrap();
    assert!(
        removed
            .iter()
            .zip(&written)
            .all(|(one, other)| one.manifest == other.manifest)
    );
    assert_eq!(event_numbers(&database).await, numbers[2..]);
    for rows in [1, 2, 1_000] {
        assert_eq!(broken(&database, rows).await, [""; 0], "in ranges of {rows} rows");
    }

    // The feed begins after them, also with pages that are smaller than the gap.
    let store = PgStore::open(database.options(), Handle::current());
    let node = PgNode::start(&store.database, "node-1".to_owned()).await.unwrap();
    let partners: uuid::Uuid = sqlx::query_scalar("SELECT partner_id FROM feeds")
        .fetch_one(&mut PgConnection::connect_with(&database.options()).await.unwrap())
        .await
        .unwrap();
    let page = node
        .read_feed(PartnerId::from_uuid(partners), FeedPosition::Oldest, 2)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.events.first().map(|event| event.number), Some(numbers[2]));

    // `verify` reports an event that is missing after the removed ones.
    execute_as_superuser(
        &database,
        "DELETE FROM events WHERE number = (SELECT min(number) FROM events)",
    )
    .await;
    for rows in [1, 1_000] {
        let broken = broken(&database, rows).await;
        assert!(
            broken.iter().any(|row| row.contains("event ")),
            "in ranges of {rows} rows: {broken:?}"
        );
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_a_delivery_needs_are_not_removed() {
    let database = database_with_old_events().await;
    let numbers = event_numbers(&database).await;
    let to = TempDir::new().unwrap();
    for (needed, over) in [
        (
            "UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL; UPDATE \
             webhook_progress SET cursor = 0",
            "UPDATE webhook_progress AS p SET cursor = f.last_number FROM feeds AS f WHERE f.partner_id = p.partner_id",
        ),
        (
            "INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at, event_at)
             SELECT w.partner_id, w.webhook_id, 1, gen_random_uuid(), gen_random_uuid(), 'FAILED', 1, now(), now(), now()
               FROM webhooks AS w LIMIT 1",
            "DELETE FROM deliveries",
        ),
    ] {
        execute_as_superuser(&database, needed).await;
        let refused = archive_events(&database, to.path(), true).await;
        assert!(matches!(refused, Err(ArchiveError::Busy { .. })), "{needed}: {refused:?}");
        assert_eq!(event_numbers(&database).await, numbers, "{needed}");
        execute_as_superuser(&database, over).await;
    }
    archive_events(&database, to.path(), true).await.unwrap();
    assert_eq!(event_numbers(&database).await, numbers[2..]);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_of_events_is_continued_and_leaves_no_gap() {
    let database = database_with_old_events().await;
    let numbers = event_numbers(&database).await;
    let to = TempDir::new().unwrap();
    archive_events(&database, to.path(), false).await.unwrap();
    let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
    let month = |months_ago: u32| format!("({})::date", month(months_ago));
    let remove = |months_ago, up_to: i64| {
        let month = month(months_ago);
        AssertSqlSafe(format!(
            "UPDATE log_archives SET removal_began_at = now() WHERE month = {month};
             SELECT remove_archived_events_v1({month}, partner_id, {up_to}, 1) FROM feeds"
        ))
    };
    // A bundle that is not archived as a whole, and a month whose predecessor is still there.
    let refused = connection.execute(remove(5, 1)).await;
    assert!(refused.is_err(), "{refused:?}");
    let unrecorded = format!(
        "SELECT remove_archived_events_v1({}, partner_id, 100, 1) FROM feeds",
        month(2)
    );
    let refused = connection.execute(AssertSqlSafe(unrecorded)).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(event_numbers(&database).await, numbers);

    // Killed after the rows were removed.
    connection.execute(remove(5, numbers[1] - 1)).await.unwrap();
    assert_eq!(event_numbers(&database).await, numbers[1..]);
    assert_eq!(broken(&database, 1).await, [""; 0]);
    archive_events(&database, to.path(), true).await.unwrap();
    assert_eq!(event_numbers(&database).await, numbers[2..]);
    assert_eq!(broken(&database, 1).await, [""; 0]);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_order_is_archived_without_its_texts() {
    let database = database_with_old_events().await;
    let erase = "SET session_replication_role = replica;
        UPDATE events SET body = replace(body, '{\"n\":1,', '{\"n\":1,\"r\":\"of a person\",') WHERE number = 1;
        UPDATE orders SET erased_at = now() WHERE order_id = (SELECT order_id FROM events WHERE number = 1)";
    execute_as_superuser(&database, erase).await;
    let to = TempDir::new().unwrap();
    let written = archive_events(&database, to.path(), false).await.unwrap();
    let events = read_lines(&written[0].directory.join("events.ndjson.gz"));
    assert!(!events[0].to_string().contains("of a person"), "{events:?}");
    assert_eq!(events[0]["body"]["o"], "DELIVERED", "{events:?}");
    database.remove().await;
}
