//! Does a code, a secret or a key come out anywhere but where it is meant to?
//!
//! Canaries are planted wherever a secret goes in, at the most talkative setting; then every answer, every line and every
//! file is searched for them. What may be found where is said in [`Canary::may_be_in`], and nowhere else.

mod harness;

use std::path::Path;
use std::process::Command;

use self::harness::{ACCOUNT, CanaryHarness, CODE, UNKNOWN_FIELD, KEY_PREFIX, METADATA, UNKNOWN_PRODUCT, STRAY_CODE, RecordedResponse, VENDOR_CREDENTIAL};

/// Something that must not come out.
struct Canary {
    name: &'static str,
    text: String,
    /// Parts of the names of files and answers that may have it, and do.
    allowed_in: &'static [&'static str],
}

fn fixed_canaries() -> Vec<Canary> {
    let canary = |what, text: &str, may_be_in| Canary {
        name: what,
        text: text.to_owned(),
        allowed_in: may_be_in,
    };
    vec![
        canary("a code", CODE, &["/vouchers"]),
        canary("a code in a wrong place", STRAY_CODE, &[]),
        canary("an idempotency key", KEY_PREFIX, &[]),
        canary("a vendor's credential", VENDOR_CREDENTIAL, &[]),
        canary("where a payout goes", ACCOUNT, &["GET /admin/v1/payouts/po_"]),
        // Who orders what does not exist, or sends an unknown field, is told which.
        canary("the name of a product", UNKNOWN_PRODUCT, &["POST /api/v1/orders"]),
        canary("the name of a field", UNKNOWN_FIELD, &["POST /", "PUT /", "PATCH /"]),
        // The partner's own words, which its orders show.
        canary("metadata", METADATA, &["/orders", "data/postgres/"]),
    ]
}

/// Where a text is: files below the directory, as it is and as hexadecimal digits, and answers.
fn find_occurrences(scratch: &Path, seen: &[RecordedResponse], text: &str) -> Vec<String> {
    let in_hex = hex::encode(text);
    let found = Command::new("grep")
        .args(["-raFil", "-e", text, "-e", &in_hex])
        .arg(scratch)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.code().is_some_and(|code| code < 2), "{complaint}");
    let files = String::from_utf8(found.stdout).unwrap();
    let answers = seen
        .iter()
        .filter(|seen| seen.text.contains(text) || seen.text.contains(&in_hex));
    let answers = answers.map(|seen| seen.request.clone());
    files.lines().map(str::to_owned).chain(answers).collect()
}

#[tokio::test]
async fn no_secret_is_found_where_it_is_not_meant_to_be() {
    let mut aviary = CanaryHarness::start().await;
    let order_id = aviary.send_valid_requests().await;
    aviary.send_invalid_requests().await;
    let mut canaries = fixed_canaries();
    canaries.extend(aviary.issue_secrets().await);
    canaries.extend(aviary.secrets_in_files());
    aviary.call_every_route(&order_id).await;
    aviary.inject_database_failures().await;
    // A clean end writes everything that Postgres still has in memory.
    assert_eq!(aviary.service.stop(), Some(0));
    assert!(aviary.service.log().contains("TRACE"), "it was not talkative");

    let scratch = aviary.service.data_dir().parent().unwrap();
    for Canary {
        name,
        text,
        allowed_in,
    } in &canaries
    {
        assert!(text.len() >= 7, "{name}");
        let (meant, found): (Vec<_>, Vec<_>) = find_occurrences(scratch, &aviary.responses, text)
            .into_iter()
            .partition(|place| allowed_in.iter().any(|part| place.contains(part)));
        assert!(found.is_empty(), "{name} is in {found:#?}");
        for part in *allowed_in {
            assert!(meant.iter().any(|place| place.contains(part)), "{name}: {part}");
        }
    }
    let complaints = find_occurrences(scratch, &[], "violates check constraint");
    let complained = |log: &str| complaints.iter().any(|place| place.ends_with(log));
    assert!(
        complained("data/postgres.log") && complained("data.log"),
        "{complaints:?}"
    );
    assert_search_works(scratch);
}

/// The search would find a canary in a file, in an answer, and in bytes that were logged.
fn assert_search_works(scratch: &Path) {
    let code = format!("{STRAY_CODE}-9");
    assert!(find_occurrences(scratch, &[], &code).is_empty());
    std::fs::write(scratch.join("data/planted"), format!("\0\u{1}{code}")).unwrap();
    std::fs::write(scratch.join("planted.log"), hex::encode(&code)).unwrap();
    let answer = RecordedResponse {
        request: "GET /metrics".to_owned(),
        text: format!("vouchsafe_{code} 1"),
    };
    assert_eq!(find_occurrences(scratch, &[answer], &code).len(), 3);
}
