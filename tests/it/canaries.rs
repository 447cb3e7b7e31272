//! Secret leak detection with canaries.
//!
//! The tests put a canary wherever a secret enters the service, at the most verbose log level, and then
//! search every response, log line and file. [`Canary::allowed_in`] lists the only permitted places.

mod harness;

use std::path::Path;
use std::process::Command;

use self::harness::{
    ACCOUNT, CODE, CanaryHarness, KEY_PREFIX, METADATA, RecordedResponse, STRAY_CODE, UNKNOWN_FIELD,
    UNKNOWN_PRODUCT, VENDOR_CREDENTIAL,
};

struct Canary {
    name: &'static str,
    text: String,
    /// Parts of the file names and requests where the canary must appear.
    allowed_in: &'static [&'static str],
}

fn fixed_canaries() -> Vec<Canary> {
    let canary = |name, text: &str, allowed_in| Canary {
        name,
        text: text.to_owned(),
        allowed_in,
    };
    vec![
        canary("a code", CODE, &["/vouchers"]),
        canary("a code in the wrong field", STRAY_CODE, &[]),
        canary("an idempotency key", KEY_PREFIX, &[]),
        canary("a vendor's credential", VENDOR_CREDENTIAL, &[]),
        canary("a payout destination", ACCOUNT, &["GET /admin/v1/payouts/po_"]),
        // Errors name unknown products and fields.
        canary("an unknown product", UNKNOWN_PRODUCT, &["POST /api/v1/orders"]),
        canary("an unknown field", UNKNOWN_FIELD, &["POST /", "PUT /", "PATCH /"]),
        // Orders and their events show the partner's metadata.
        canary("metadata", METADATA, &["/orders", "/events", "data/postgres/"]),
    ]
}

/// Returns the files and responses that contain a text, plain or as hexadecimal digits.
fn find_occurrences(scratch: &Path, recorded: &[RecordedResponse], text: &str) -> Vec<String> {
    let in_hex = hex::encode(text);
    let found = Command::new("grep")
        .args(["-raFil", "-e", text, "-e", &in_hex])
        .arg(scratch)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.code().is_some_and(|code| code < 2), "{stderr}");
    let files = String::from_utf8(found.stdout).unwrap();
    let responses = recorded
        .iter()
        .filter(|response| response.text.contains(text) || response.text.contains(&in_hex));
    let responses = responses.map(|response| response.request.clone());
    files.lines().map(str::to_owned).chain(responses).collect()
}

#[tokio::test]
async fn secrets_appear_only_in_allowed_places() {
    let mut harness = CanaryHarness::start().await;
    let order_id = harness.send_valid_requests().await;
    harness.send_invalid_requests().await;
    let mut canaries = fixed_canaries();
    canaries.extend(harness.issue_secrets().await);
    canaries.extend(harness.secrets_in_files());
    harness.call_every_route(&order_id).await;
    harness.inject_database_failures().await;
    // A clean shutdown flushes everything that Postgres has in memory.
    assert_eq!(harness.service.stop(), Some(0));
    assert!(
        harness.service.log().contains("TRACE"),
        "trace logging must be on"
    );

    let scratch = harness.service.data_dir().parent().unwrap();
    for Canary {
        name,
        text,
        allowed_in,
    } in &canaries
    {
        assert!(text.len() >= 7, "{name}");
        let (allowed, found): (Vec<_>, Vec<_>) = find_occurrences(scratch, &harness.responses, text)
            .into_iter()
            .partition(|location| allowed_in.iter().any(|part| location.contains(part)));
        assert!(found.is_empty(), "{name} is in {found:#?}");
        for part in *allowed_in {
            assert!(
                allowed.iter().any(|location| location.contains(part)),
                "{name}: {part}"
            );
        }
    }
    let failures = find_occurrences(scratch, &[], "violates check constraint");
    let has_failed = |log: &str| failures.iter().any(|file| file.ends_with(log));
    assert!(
        has_failed("data/postgres.log") && has_failed("data.log"),
        "{failures:?}"
    );
    assert_search_works(scratch);
}

/// Asserts that the search finds a canary in a file, in a response and in logged bytes.
fn assert_search_works(scratch: &Path) {
    let code = format!("{STRAY_CODE}-9");
    assert!(find_occurrences(scratch, &[], &code).is_empty());
    std::fs::write(scratch.join("data/planted"), format!("\0\u{1}{code}")).unwrap();
    std::fs::write(scratch.join("planted.log"), hex::encode(&code)).unwrap();
    let response = RecordedResponse {
        request: "GET /metrics".to_owned(),
        text: format!("vouchsafe_{code} 1"),
    };
    assert_eq!(find_occurrences(scratch, &[response], &code).len(), 3);
}

/// The service's memory has keys and codes: the unit test of `memory_protection` shows that ptrace is off,
/// too.
#[test]
fn service_leaves_no_core_dump() {
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", vouchsafe_test_harness::shared().pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size"));
    let words: Vec<_> = core.unwrap().split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{limits}");
}
