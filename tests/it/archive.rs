//! `vouchsafe archive`: files, exit codes and tables of the command.

use std::fs;

use hyper::Method;
use serde_json::Value;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use vouchsafe_test_harness::{Instance, Operator, expect_error, expect_success, text_of};

use crate::commands::{run_with, utf8};

/// An attempt of three months ago, and that day.
const OLD_ATTEMPT: &str = "
    WITH old AS (
        SELECT now() AT TIME ZONE 'UTC' - interval '3 months' AS at
    ), written AS (
        INSERT INTO delivery_attempts (webhook_id, attempt_id, partner_id, number, event_at, event, order_id, attempt, latency_ms, delivered,
                                       status, answer)
        SELECT gen_random_uuid(),
               (lpad(to_hex((extract(epoch FROM o.at) * 1000)::bigint), 12, '0') || '70009000000000000000')::uuid,
               gen_random_uuid(), 1, now(), 'order.created', gen_random_uuid(), 1, 7, true, 204, ''
          FROM old AS o
    )
    SELECT to_char(o.at, 'YYYY-MM-DD') FROM old AS o";

#[tokio::test]
async fn archive_is_written_listed_verified_and_removed() {
    // Else the service drops the partition.
    let service = Instance::start_with(&[("VOUCHSAFE_DELIVERY_LOG_DAYS", "366")]);
    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let partition =
        "SELECT create_attempt_partition_v1((now() AT TIME ZONE 'UTC' - interval '3 months')::date)";
    connection.execute(partition).await.unwrap();
    let day: String = sqlx::query_scalar(OLD_ATTEMPT)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let month = &day[..7];
    let to = TempDir::new().unwrap();
    let directory = to.path().to_str().unwrap();
    let run = |words: &[&str]| {
        let output = run_with(&service, &[&["archive"], words].concat(), None);
        (output.status.code(), utf8(&output.stdout), utf8(&output.stderr))
    };

    let (code, _, stderr) = run(&["write", "--to", directory]);
    assert_eq!(code, Some(2), "a policy is required: {stderr}");
    let write = ["write", "--to", directory, "--keep-delivery-attempts", "1"];
    let archive = format!("{directory}/delivery_attempts-{month}");
    fs::create_dir(&archive).unwrap();
    let (code, stdout, stderr) = run(&[&write[..], &["--keep-events", "2", "--json"]].concat());
    assert_eq!(code, Some(1), "a directory is in the way: {stdout}");
    assert!(stderr.contains(&archive), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["errors"].as_array().map(Vec::len), Some(1), "{report}");
    fs::remove_dir(&archive).unwrap();
    let (code, stdout, stderr) = run(&write);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(
        stdout,
        format!("delivery_attempts {month}: 1 rows archived in {archive}\n")
    );

    let (code, stdout, _) = run(&["verify", directory, "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &report["archives"][0]["rows"]),
        (Some(0), &Value::from(1)),
        "{report}"
    );
    let manifest = report["archives"][0]["manifest"].as_str().unwrap();

    let (code, stdout, stderr) = run(&[&write[..], &["--remove"]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let (_, stdout, _) = run(&["list", "--json"]);
    let list: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(list["archives"][0]["manifest"], manifest);
    assert!(list["archives"][0]["removed_at"].is_string(), "{list}");
    let (_, stdout, _) = run(&["list"]);
    assert!(
        stdout.contains(&format!("delivery_attempts  {month}")),
        "{stdout}"
    );

    let (code, stdout, stderr) = run(&[
        "write",
        "--to",
        directory,
        "--keep-events",
        "2",
        "--keep-audit-log",
        "2",
        "--remove",
    ]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "Nothing to archive: no month is past its policy.\n");

    fs::write(format!("{archive}/{day}.ndjson.gz"), "").unwrap();
    let (code, stdout, _) = run(&["verify", &archive]);
    assert_eq!(code, Some(1));
    assert!(
        stdout.starts_with("BROKEN") && stdout.contains("its hash"),
        "{stdout}"
    );
}

#[tokio::test]
async fn archived_day_is_not_compared_again() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let archived = "INSERT INTO log_archives (log, month, rows, bytes, manifest, removal_began_at)
                    VALUES ('reconciliation', '2026-01-01', 0, 0, sha256(''), now())";
    connection.execute(archived).await.unwrap();
    let mut run = async |day: &str| {
        let path = format!("/admin/v1/reconciliation/{day}/run");
        operator.call_json(Method::POST, &path, "").await
    };
    let refused = run("2026-01-31").await;
    expect_error(&refused, 422, "VALIDATION_FAILED");
    assert!(text_of(&refused).contains("archived"), "{}", text_of(&refused));
    expect_success(&run("2026-02-01").await, 202);
    let requested = "SELECT count(*) FROM reconciled_days WHERE requested_until IS NOT NULL";
    let requested: i64 = sqlx::query_scalar(requested)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(requested <= 1, "the refused request is not queued: {requested}");
}
