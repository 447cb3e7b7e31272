//! Nodes whose clock is wrong: the database's clock decides what is purged.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection};
use vouchsafe_test_harness::{Database, Instance, WAIT_TIMEOUT, eventually};

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef",
);

/// Shifts the wall clock of a process into which it is preloaded.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += SHIFT_S;
    return result;
}
"#;

/// More than every retention period.
const SHIFT_DAYS: i64 = 400;

/// Needed by the rows below.
const PREPARE: &str = r#"
    INSERT INTO partners (partner_id, name, allowlist) VALUES (gen_random_uuid(), 'A partner', '{}');
    INSERT INTO operators (name, role) VALUES ('admin', 'admin');
    INSERT INTO categories (category_id, name) VALUES ('all', 'All');
    INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations, expiry_policy, redemption,
                          route, approval, returnable, min_validity_days, low_stock_at, discontinued)
    VALUES ('gift', 'gift', 'gift', 'all', 'mock', 'USD', '{US}', '{1}', '{"type": "NONE"}', '{}', 'vendor', 'rule', true, 0, 0, false);
    CREATE TABLE seeded (source text, is_kept boolean, content jsonb)"#;

/// A table that a node purges.
struct PurgedTable {
    /// Rows, in a FROM clause.
    source: &'static str,
    /// Inserts a row as old as `$age`.
    insert: &'static str,
    /// Ages of rows that are purged, and of rows that are not.
    purged: &'static [&'static str],
    kept: &'static [&'static str],
}

const TABLES: &[PurgedTable] = &[
    PurgedTable {
        source: "idempotency_keys",
        insert: "INSERT INTO idempotency_keys (key, fingerprint, status, body, expires_at)
                 VALUES (gen_random_uuid(), sha256(''), 200, '', now() - interval '$age')",
        purged: &["1 minute"],
        kept: &["-1 day"],
    },
    PurgedTable {
        source: "partner_usage",
        insert: "INSERT INTO partner_usage (partner_id, day, counter, value)
                 VALUES (gen_random_uuid(), (now() AT TIME ZONE 'UTC' - interval '$age')::date, 'spend', 1)",
        purged: &["9 days"],
        kept: &["6 days"],
    },
    PurgedTable {
        source: "order_totals",
        insert: "INSERT INTO order_totals (partner_id, currency, at, sequence, orders, total)
                 SELECT '00000000-0000-7000-8000-000000000001', 'USD', now() - interval '$age', 1, 1, 1",
        // The last one before every window is kept.
        purged: &["28 hours", "27 hours"],
        kept: &["26 hours", "24 hours"],
    },
    PurgedTable {
        source: "credentials",
        insert: "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, not_before, revoked_at, family_id)
                 SELECT gen_random_uuid(), partner_id, sha256(gen_random_uuid()::text::bytea), sha256(''), now() - interval '2 years',
                        now() - interval '$age', gen_random_uuid()
                   FROM partners",
        purged: &["91 days"],
        kept: &["89 days"],
    },
    PurgedTable {
        source: "rate_limit_usage",
        insert: "INSERT INTO rate_limit_usage (owner_id, class, at_us, counts, window_s, expires_at)
                 VALUES (gen_random_uuid(), 'orders', '{}', '{}', 86400, now() - interval '$age')",
        purged: &["1 hour"],
        kept: &["-1 day"],
    },
    PurgedTable {
        source: "stock_demands",
        insert: "INSERT INTO stock_demands (product_id, denomination, node, quantity, demanded_at, renewed_at)
                 VALUES ('gift', 1, 'another', 1, now(), now() - interval '$age')",
        purged: &["1 hour"],
        kept: &[],
    },
    PurgedTable {
        source: "deliveries",
        insert: "INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at,
                                         event_at, updated_at)
                 SELECT partner_id, gen_random_uuid(), 1, gen_random_uuid(), gen_random_uuid(), 'DELIVERED', 1, now(), now(), now(),
                        now() - interval '$age'
                   FROM partners",
        purged: &["1 year"],
        kept: &["1 day"],
    },
    PurgedTable {
        source: "change_requests",
        insert: "INSERT INTO change_requests (request_id, kind, object, details, requested_by, requested_at, expires_at, status)
                 VALUES ((lpad(to_hex((extract(epoch FROM now() - interval '$age') * 1000)::bigint), 12, '0')
                          || '70008000000000000000')::uuid,
                         'TOP_UP', '', '{}', 'jane', now() - interval '$age', now() - interval '$age', 'EXPIRED')",
        purged: &["367 days"],
        kept: &["365 days"],
    },
    PurgedTable {
        source: "operator_sessions",
        insert: "INSERT INTO operator_sessions (session_id, operator, token_hash, method, address, expires_at)
                 VALUES (gen_random_uuid(), 'admin', sha256(gen_random_uuid()::text::bytea), 'link', '', now() - interval '$age')",
        purged: &["31 days"],
        kept: &["29 days"],
    },
    PurgedTable {
        source: "operator_sign_in_links",
        insert: "WITH added AS (
                    INSERT INTO operators (name, role) VALUES (gen_random_uuid()::text, 'viewer') RETURNING name
                 )
                 INSERT INTO operator_sign_in_links (operator, token_hash, expires_at)
                 SELECT name, sha256(name::bytea), now() - interval '$age' FROM added",
        purged: &["1 minute"],
        kept: &["-1 day"],
    },
    PurgedTable {
        source: "operator_tokens",
        insert: "INSERT INTO operator_tokens (token_id, operator, token_hash, expires_at)
                 VALUES (gen_random_uuid(), 'admin', sha256(gen_random_uuid()::text::bytea), now() - interval '$age')",
        purged: &["91 days"],
        kept: &["89 days"],
    },
    PurgedTable {
        source: "stock_sold",
        insert: "INSERT INTO stock_sold (product_id, denomination, at, sold) VALUES ('gift', 1, now() - interval '$age', 1)",
        purged: &["20 days"],
        kept: &["8 days", "1 day"],
    },
    PurgedTable {
        source: "(SELECT inhrelid FROM pg_inherits WHERE inhparent = 'delivery_attempts'::regclass)",
        insert: "SELECT create_attempt_partition_v1((now() AT TIME ZONE 'UTC' - interval '$age')::date)",
        purged: &["32 days"],
        kept: &["29 days"],
    },
];

/// Inserts rows of these ages, and notes them.
async fn seed(connection: &mut PgConnection, table: &PurgedTable, ages: &[&str], is_kept: bool) {
    let PurgedTable { source, insert, .. } = table;
    for age in ages {
        let insert = insert.replace("$age", age);
        connection.execute(AssertSqlSafe(insert)).await.unwrap();
    }
    let note = format!(
        "INSERT INTO seeded
         SELECT $1, $2, to_jsonb(t) FROM {source} AS t
          WHERE NOT EXISTS (SELECT FROM seeded AS s WHERE s.source = $1 AND s.content = to_jsonb(t))"
    );
    let note = sqlx::query(AssertSqlSafe(note)).bind(source).bind(is_kept);
    let noted = note.execute(connection).await.unwrap();
    assert_eq!(noted.rows_affected(), ages.len() as u64, "{source}");
}

/// Number of seeded rows that are left: of those to purge, and of those to keep.
async fn count_left(connection: &mut PgConnection, table: &PurgedTable) -> [usize; 2] {
    let source = table.source;
    let count = format!(
        "SELECT count(*) FILTER (WHERE NOT s.is_kept), count(*) FILTER (WHERE s.is_kept)
           FROM seeded AS s
           JOIN {source} AS t ON to_jsonb(t) = s.content
          WHERE s.source = $1"
    );
    let count: (i64, i64) = sqlx::query_as(AssertSqlSafe(count))
        .bind(source)
        .fetch_one(connection)
        .await
        .unwrap();
    [count.0, count.1].map(|count| usize::try_from(count).unwrap())
}

/// Builds a library that shifts the clock of a process by some days.
fn build_shifted_clock(directory: &Path, days: i64) -> PathBuf {
    let source = directory.join("clock.c");
    std::fs::write(&source, SHIFTED_CLOCK).unwrap();
    let library = directory.join("clock.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", &format!("-DSHIFT_S=({days} * 86400)"), "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    assert!(compiled.unwrap().success());
    library
}

#[tokio::test(flavor = "multi_thread")]
async fn node_with_a_wrong_clock_purges_by_the_clock_of_the_database() {
    let directory = tempfile::tempdir().unwrap();
    for days in [SHIFT_DAYS, -SHIFT_DAYS] {
        let database = Database::create().await;
        let mut connection = database.connect().await;
        connection.execute(PREPARE).await.unwrap();
        for table in TABLES {
            seed(&mut connection, table, table.purged, false).await;
            seed(&mut connection, table, table.kept, true).await;
        }
        let (url, clock) = (
            database.options().to_url_lossy().to_string(),
            build_shifted_clock(directory.path(), days),
        );
        let settings = [
            MASTER_KEY,
            ("DATABASE_URL", &url),
            ("LD_PRELOAD", clock.to_str().unwrap()),
        ];
        let service = Instance::start_with(&settings);
        for table in TABLES {
            eventually(table.source, WAIT_TIMEOUT, async || {
                (count_left(&mut connection, table).await[0] == 0).then_some(())
            })
            .await;
        }
        let mut lost = Vec::new();
        for table in TABLES {
            let [_, kept] = count_left(&mut connection, table).await;
            if kept < table.kept.len() {
                lost.push(table.source);
            }
        }
        assert!(lost.is_empty(), "with a clock {days} days ahead: {lost:#?}");
        drop(service);
        database.remove().await;
    }
}
