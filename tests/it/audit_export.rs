//! Audit export of the running service: signed, in order and without gaps, over failures, restarts and two
//! nodes; files that `verify` checks.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use hyper::Method;
use serde_json::Value;
use sqlx::{ConnectOptions as _, Executor as _};
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, checkpoint_hash, to_ndjson};
use vouchsafe_private_postgres::Durability;
use vouchsafe_test_harness::{
    Behavior, Database, Instance, Operator, ReceivedEvent, Receiver, WAIT_TIMEOUT, eventually,
    expect_success, wait_until,
};

use crate::metrics::scrape;
use crate::production::{MASTER_KEY, add_certified_partner, start_production_with};

/// Between two looks at a complete export.
const USUAL_SECONDS: u64 = 12;

const AUTHORIZATION: &str = "Bearer t0ken";

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

/// Waits until the endpoint has accepted this checkpoint, and returns the accepted requests from `first`.
fn wait_for_checkpoint(receiver: &Receiver, first: usize, number: i64) -> Vec<ReceivedEvent> {
    wait_until("the export of the checkpoint", WAIT_TIMEOUT, || {
        let mut received = receiver.received();
        received.retain(|request| request.response_status == Some(204));
        let accepted = received.split_off(first.min(received.len()));
        let last = last_number(&accepted.last()?.body_text)?;
        (last >= number).then_some(accepted)
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
        let last = previous.as_ref().unwrap();
        let end = format!("_{}_{}", last.number, &last.hash[..32]);
        assert!(request.headers["webhook-id"].ends_with(&end));
        assert_eq!(request.headers["authorization"], AUTHORIZATION);
    }
    previous
}

async fn wait_for_metric(service: &Instance, is_expected: impl Fn(u64) -> bool) {
    let series = "vouchsafe_audit_export_behind_seconds{target=\"url\"} ";
    eventually(series, WAIT_TIMEOUT, async || {
        let text = scrape(service).await;
        let value = text.lines().find_map(|line| line.strip_prefix(series)).unwrap();
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
        ("VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION", AUTHORIZATION),
    ];
    let mut nodes = [(); 2].map(|()| start_production_with(&database, &settings));
    let mut operator = Operator::of(&nodes[0]);
    let partner = add_certified_partner(&nodes[0], &mut operator).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    receiver.wait_for_events(1);
    // An endpoint that does not respond is late, too.
    receiver.set_behavior(Behavior::HoldUntilChanged);
    for node in &nodes {
        wait_for_metric(node, |seconds| seconds > USUAL_SECONDS).await;
    }
    receiver.set_behavior(Behavior::Status(204));
    let number = write_checkpoint(&mut operator).await;
    let posted = wait_for_checkpoint(&receiver, 0, number);
    let last = check_chain(&posted, None).unwrap();
    for node in &nodes {
        wait_for_metric(node, |seconds| seconds <= USUAL_SECONDS).await;
    }
    // Neither node sends anything twice, and a restarted one continues.
    for node in &mut nodes {
        assert_eq!(node.stop(), Some(0));
        node.restart();
    }
    operator.top_up(&partner.partner_id, "USD", "1").await;
    let number = write_checkpoint(&mut operator).await;
    let continued = wait_for_checkpoint(&receiver, posted.len(), number);
    check_chain(&continued, Some(last));

    // An attacker with the service's role cannot silence the export.
    let mut connection = database.connect().await;
    connection
        .execute("UPDATE audit_exports SET position = 1000000")
        .await
        .unwrap();
    wait_until("the error", WAIT_TIMEOUT, || {
        let logs = nodes.each_ref().map(Instance::log);
        let is_logged = |log: &String| log.contains("has accepted checkpoint 1000000");
        logs.iter().all(is_logged).then_some(())
    });

    let logs = nodes.each_ref().map(Instance::log).concat();
    assert!(
        logs.contains("did not accept checkpoint") && logs.contains("status 503"),
        "{logs}"
    );
    for secret in ["s3cret", &SECRET[6..], &AUTHORIZATION[7..]] {
        assert!(!logs.contains(secret), "{secret}: {logs}");
    }
    let stored: String = sqlx::query_scalar("SELECT endpoint FROM audit_exports")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(stored.len(), 64, "a hash: {stored}");
    drop((connection, nodes));
    database.remove().await;
}

/// The first code block of the documentation in this language that contains `part`.
fn documented(language: &str, part: &str) -> &'static str {
    let page = include_str!("../../docs/operations/audit-export.md");
    let blocks = page.split("```").skip(1).step_by(2);
    let mut blocks = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks.find(|block| block.contains(part)).unwrap()
}

/// Runs the program of the documentation with the file, and returns its output and whether it succeeded.
fn run_documented_check(file: &Path) -> (String, bool) {
    let output = Command::new("python3")
        .args(["-c", documented("python", "sys.stdin")])
        .stdin(File::open(file).unwrap())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

/// Runs `vouchsafe verify` with a file. Returns the invariants, and whether each holds.
pub(crate) fn run_verify(database: &Database, option: &str, file: &Path) -> Vec<(String, bool)> {
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
    let holding = invariants.map(|invariant| {
        let name = invariant["name"].as_str().unwrap().to_owned();
        (name, invariant["holds"].as_bool().unwrap())
    });
    holding.collect()
}

/// The invariants of exported files.
fn verify(database: &Database, option: &str, file: &Path) -> Vec<(String, bool)> {
    let mut invariants = run_verify(database, option, file);
    invariants.retain(|(name, _)| name.contains(".exported"));
    invariants
}

/// The invariants of an audit export: equal to the database, entries covered, HMACs.
fn holding(equal: bool, covered: bool, signed: bool) -> Vec<(String, bool)> {
    let name = |name: &str, holds| (name.to_owned(), holds);
    vec![
        name("audit.checkpoints.exported", equal),
        name("audit.entries.exported", covered),
        name("audit.checkpoints.exported.mac", signed),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_file_continues_and_verify_finds_changed_lines() {
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
            (last_number(&text)? >= number).then_some(text)
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
    assert_eq!(
        verify(&database, "--audit-export", &file),
        holding(true, true, true)
    );
    let (output, is_success) = run_documented_check(&file);
    assert!(
        is_success && output.contains("all hashes match up to checkpoint"),
        "{output}"
    );

    // The next file of a series, also after a crash.
    service.kill();
    let mut ended = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    let checkpoint = text.lines().last().unwrap();
    ended
        .write_all(format!("{torn}\n{}\0\0", &checkpoint[..60]).as_bytes())
        .unwrap();
    let rotation = Command::new("sh")
        .args(["-ec", documented("sh", "flock")])
        .current_dir(directory.path())
        .status()
        .unwrap();
    assert!(rotation.success());
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    service.restart();
    operator.top_up(&partner.partner_id, "USD", "1").await;
    let number = write_checkpoint(&mut operator).await;
    let next = wait_for(number);
    let ended = std::fs::read_to_string(directory.path().join("audit-2026-11.ndjson")).unwrap();
    assert_eq!(next.lines().next(), text.lines().last());
    assert!(ended.starts_with(&text) && next.len() < text.len());
    assert_eq!(
        verify(&database, "--audit-export", &file),
        holding(true, true, true)
    );
    assert!(run_documented_check(&file).1);
    assert_eq!(service.stop(), Some(0));

    let forged = next.replacen("wallet.top_up", "wallet.adjust", 1);
    std::fs::write(&file, &forged).unwrap();
    assert_eq!(
        verify(&database, "--audit-export", &file),
        holding(true, false, true)
    );
    let (output, is_success) = run_documented_check(&file);
    assert!(!is_success && output.contains("differ"), "{output}");
    // With the hashes of the forged entries.
    let mut lines = lines_of(&forged);
    let mut entries = Vec::new();
    let mut previous: Option<CheckpointRecord> = None;
    for line in &mut lines {
        match line {
            ExportLine::AuditEntry(entry) => entries.push(entry.clone()),
            ExportLine::AuditCheckpoint(checkpoint) => {
                if !entries.is_empty() {
                    checkpoint.hash = checkpoint_hash(previous.as_ref(), &entries);
                }
                entries.clear();
                previous = Some(checkpoint.clone());
            }
        }
    }
    std::fs::write(&file, to_ndjson(&lines).unwrap()).unwrap();
    assert_eq!(
        verify(&database, "--audit-export", &file),
        holding(false, true, false)
    );
    let without_entries = [
        holding(false, true, false).remove(0),
        holding(false, true, false).remove(2),
    ];
    assert_eq!(verify(&database, "--checkpoints", &file), without_entries);
    service.restart();
    wait_until("the error", WAIT_TIMEOUT, || {
        let is_logged = service.log().contains("is not that of the database");
        is_logged.then_some(())
    });
    drop(service);
    database.remove().await;
}
