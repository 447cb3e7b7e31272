//! Audit export of the running service: signed, in order and without gaps, over failures, restarts and two nodes; files that `verify` checks.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use hyper::Method;
use serde_json::Value;
use sqlx::ConnectOptions as _;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, checkpoint_hash};
use vouchsafe_private_postgres::Durability;
use vouchsafe_test_harness::{
    Behavior, Database, Instance, Operator, ReceivedEvent, Receiver, WAIT_TIMEOUT, eventually,
    expect_success, wait_until,
};

use crate::metrics::scrape;
use crate::production::{MASTER_KEY, add_certified_partner, start_production_with};

/// 32 bytes.
const SECRET: &str = "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// Writes a checkpoint over all entries and returns its number.
async fn write_checkpoint(operator: &mut Operator) -> i64 {
    let response = operator
        .call_json(Method::POST, "/admin/v1/audit/checkpoints", "")
        .await;
    let checkpoint = expect_success(&response, 200);
    checkpoint["number"].as_i64().unwrap()
}

fn lines_of(text: &str) -> Vec<ExportLine> {
    let lines = text.lines();
    lines
        .map(|line| ExportLine::parse(line.as_bytes()).unwrap())
        .collect()
}

fn last_number(text: &str) -> Option<i64> {
    let last = text.lines().last()?;
    Some(ExportLine::parse(last.as_bytes()).ok()?.checkpoint()?.number)
}

/// Waits until the endpoint has this checkpoint, and returns the requests from `first`.
fn wait_for_checkpoint(receiver: &Receiver, first: usize, number: i64) -> Vec<ReceivedEvent> {
    wait_until("the export of the checkpoint", WAIT_TIMEOUT, || {
        let received = receiver.received().split_off(first);
        let last = last_number(&received.last()?.body_text);
        (last == Some(number)).then_some(received)
    })
}

/// Checks that checkpoints follow `previous` without a gap and cover their entries. Returns the last one.
fn check_chain(
    requests: &[ReceivedEvent],
    mut previous: Option<CheckpointRecord>,
) -> Option<CheckpointRecord> {
    for request in requests {
        let [standard, own] = request.expected_signatures(&[SECRET]);
        assert_eq!(request.signatures(), [standard, own]);
        assert_eq!(request.headers["content-type"], "application/x-ndjson");
        let mut entries = Vec::new();
        for line in lines_of(&request.body_text) {
            match line {
                ExportLine::AuditEntry(entry) => entries.push(entry),
                ExportLine::AuditCheckpoint(checkpoint) => {
                    let number = previous.as_ref().map_or(0, |previous| previous.number) + 1;
                    assert_eq!(checkpoint.number, number);
                    assert_eq!(checkpoint_hash(previous.as_ref(), &entries), checkpoint.hash);
                    entries.clear();
                    previous = Some(checkpoint);
                }
            }
        }
        assert!(entries.is_empty(), "a request ends with a checkpoint");
        let hash = &previous.as_ref().unwrap().hash;
        assert_eq!(request.headers["webhook-id"], format!("audit_{}", &hash[..32]));
    }
    previous
}

async fn wait_for_metric(service: &Instance, target: &str, is_expected: impl Fn(u64) -> bool) {
    let series = format!("vouchsafe_audit_export_behind_seconds{{target=\"{target}\"}} ");
    eventually(&series, WAIT_TIMEOUT, async || {
        let text = scrape(service).await;
        let value = text.lines().find_map(|line| line.strip_prefix(&series)).unwrap();
        is_expected(value.parse().unwrap()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_is_posted_signed_in_order_over_failures_and_restarts() {
    let database = Database::create_on(Durability::Durable).await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::Status(503));
    let url = receiver.url().replace("/hooks", "/hooks?token=s3cret");
    let settings = [
        ("VOUCHSAFE_AUDIT_EXPORT_URL", url.as_str()),
        ("VOUCHSAFE_AUDIT_EXPORT_SECRET", SECRET),
    ];
    let mut nodes = [(); 2].map(|()| start_production_with(&database, &settings));
    let mut operator = Operator::of(&nodes[0]);
    let partner = add_certified_partner(&nodes[0], &mut operator).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    receiver.wait_for_events(1);
    for node in &nodes {
        wait_for_metric(node, "url", |seconds| seconds > 0).await;
    }
    let refused = receiver.received();
    receiver.set_behavior(Behavior::Status(204));
    let number = write_checkpoint(&mut operator).await;
    let posted = wait_for_checkpoint(&receiver, refused.len(), number);
    let last = check_chain(&posted, None).unwrap();
    assert_eq!(last.number, number);
    for node in &nodes {
        wait_for_metric(node, "url", |seconds| seconds == 0).await;
        wait_for_metric(node, "file", |seconds| seconds == 0).await;
    }
    // Neither node sends anything twice, and a restarted one continues.
    let first = refused.len() + posted.len();
    for node in &mut nodes {
        assert_eq!(node.stop(), Some(0));
        node.restart();
    }
    operator.top_up(&partner.partner_id, "USD", "1").await;
    let number = write_checkpoint(&mut operator).await;
    let posted = wait_for_checkpoint(&receiver, first, number);
    check_chain(&posted, Some(last));

    let logs = nodes.each_ref().map(Instance::log).concat();
    assert!(
        logs.contains("did not accept checkpoint") && logs.contains("status 503"),
        "{logs}"
    );
    assert!(!logs.contains("s3cret") && !logs.contains(&SECRET[6..]), "{logs}");
    let mut connection = database.connect().await;
    let stored: String = sqlx::query_scalar("SELECT endpoint FROM audit_exports")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(stored.len(), 64, "a hash: {stored}");
    drop((connection, nodes));
    database.remove().await;
}

/// Runs the program of the documentation with the file, and returns its output and whether it succeeded.
fn run_documented_check(file: &Path) -> (String, bool) {
    let page = include_str!("../../docs/operations/audit-export.md");
    let (_, program) = page.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let output = Command::new("python3")
        .args(["-c", program])
        .stdin(File::open(file).unwrap())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

/// Invariants of exported files, and whether each holds.
fn verify(database: &Database, option: &str, file: &Path) -> Vec<(String, bool)> {
    let output = Command::new(vouchsafe_test_harness::program())
        .args(["verify", "--json", option])
        .arg(file)
        .env("DATABASE_URL", database.service_options().to_url_lossy().as_str())
        .env("VOUCHSAFE_MASTER_KEY", MASTER_KEY)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let invariants = report["invariants"].as_array().unwrap().iter();
    let exported = invariants.filter_map(|invariant| {
        let name = invariant["name"].as_str().unwrap().to_owned();
        name.ends_with(".exported")
            .then(|| (name, invariant["holds"].as_bool().unwrap()))
    });
    exported.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_file_continues_and_verify_finds_what_was_changed_in_it() {
    let database = Database::create_on(Durability::Durable).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.ndjson");
    let settings = [("VOUCHSAFE_AUDIT_EXPORT_FILE", file.to_str().unwrap())];
    let mut service = start_production_with(&database, &settings);
    let mut operator = Operator::of(&service);
    let partner = add_certified_partner(&service, &mut operator).await;
    let wait_for = |number| {
        wait_until("the export of the checkpoint", WAIT_TIMEOUT, || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            (last_number(&text) == Some(number)).then_some(text)
        })
    };
    let number = write_checkpoint(&mut operator).await;
    wait_for(number);
    // A crash in the middle of a batch.
    service.kill();
    let complete = std::fs::read_to_string(&file).unwrap();
    let torn = complete.lines().next().unwrap();
    std::fs::write(&file, format!("{complete}{torn}\n{}", &torn[..40])).unwrap();
    service.restart();
    operator.top_up(&partner.partner_id, "USD", "1").await;
    let number = write_checkpoint(&mut operator).await;
    let text = wait_for(number);
    assert!(text.starts_with(&complete) && text.contains("wallet.top_up"));
    assert_eq!(service.stop(), Some(0));

    let names = ["audit.checkpoints.exported", "audit.entries.exported"];
    let expected = |holds: [bool; 2]| -> Vec<_> { names.map(str::to_owned).into_iter().zip(holds).collect() };
    assert_eq!(verify(&database, "--audit-export", &file), expected([true, true]));
    assert_eq!(
        verify(&database, "--checkpoints", &file),
        expected([true, true])[..1]
    );
    let (output, is_success) = run_documented_check(&file);
    assert!(
        is_success && output.contains(&format!("up to checkpoint {number}")),
        "{output}"
    );
    let forged = text.replacen("wallet.top_up", "wallet.adjust", 1);
    std::fs::write(&file, &forged).unwrap();
    assert_eq!(
        verify(&database, "--audit-export", &file),
        expected([true, false])
    );
    let (output, is_success) = run_documented_check(&file);
    assert!(!is_success && output.contains("differ"), "{output}");
    // With the hash of the forged entries the chain of the file differs from the database's.
    let mut lines = lines_of(&forged);
    let mut entries = Vec::new();
    let mut previous = None;
    for line in &mut lines {
        match line {
            ExportLine::AuditEntry(entry) => entries.push(entry.clone()),
            ExportLine::AuditCheckpoint(checkpoint) => {
                checkpoint.hash = checkpoint_hash(previous.as_ref(), &entries);
                entries.clear();
                previous = Some(checkpoint.clone());
            }
        }
    }
    std::fs::write(&file, vouchsafe_domain::audit_export::to_ndjson(&lines).unwrap()).unwrap();
    assert_eq!(
        verify(&database, "--audit-export", &file),
        expected([false, true])
    );
    drop(service);
    database.remove().await;
}
