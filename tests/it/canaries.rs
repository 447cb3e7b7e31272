//! Does a code, a secret or a key come out anywhere but where it is meant to?
//!
//! Canaries are planted wherever a secret goes in, at the most talkative setting; then every answer, every line and every
//! file is searched for them. What may be found where is said in [`Canary::may_be_in`], and nowhere else.

mod aviary;

use std::path::Path;
use std::process::Command;

use self::aviary::{ACCOUNT, Aviary, CODE, FIELD, KEY, METADATA, PRODUCT, STRAY_CODE, Seen, VENDOR};

/// Something that must not come out.
struct Canary {
    what: &'static str,
    text: String,
    /// Parts of the names of files and answers that may have it, and do.
    may_be_in: &'static [&'static str],
}

fn planted() -> Vec<Canary> {
    let canary = |what, text: &str, may_be_in| Canary {
        what,
        text: text.to_owned(),
        may_be_in,
    };
    vec![
        canary("a code", CODE, &["/vouchers"]),
        canary("a code in a wrong place", STRAY_CODE, &[]),
        canary("an idempotency key", KEY, &[]),
        canary("a vendor's credential", VENDOR, &[]),
        canary("where a payout goes", ACCOUNT, &["GET /admin/v1/payouts/po_"]),
        // Who orders what does not exist, or sends an unknown field, is told which.
        canary("the name of a product", PRODUCT, &["POST /api/v1/orders"]),
        canary("the name of a field", FIELD, &["POST /", "PUT /", "PATCH /"]),
        // The partner's own words, which its orders show.
        canary("metadata", METADATA, &["/orders", "data/postgres/"]),
    ]
}

/// Where a text is: files below the directory, as it is and as hexadecimal digits, and answers.
fn places(scratch: &Path, seen: &[Seen], text: &str) -> Vec<String> {
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
    let mut aviary = Aviary::open().await;
    let order_id = aviary.an_ordinary_day().await;
    aviary.mistakes().await;
    let mut canaries = planted();
    canaries.extend(aviary.issued().await);
    canaries.extend(aviary.kept());
    aviary.every_route(&order_id).await;
    aviary.a_bad_day().await;
    // A clean end writes everything that Postgres still has in memory.
    assert_eq!(aviary.service.stop(), Some(0));
    assert!(aviary.service.log().contains("TRACE"), "it was not talkative");

    let scratch = aviary.service.data_dir().parent().unwrap();
    for Canary {
        what,
        text,
        may_be_in,
    } in &canaries
    {
        assert!(text.len() >= 7, "{what}");
        let (meant, found): (Vec<_>, Vec<_>) = places(scratch, &aviary.seen, text)
            .into_iter()
            .partition(|place| may_be_in.iter().any(|part| place.contains(part)));
        assert!(found.is_empty(), "{what} is in {found:#?}");
        for part in *may_be_in {
            assert!(meant.iter().any(|place| place.contains(part)), "{what}: {part}");
        }
    }
    let complaints = places(scratch, &[], "violates check constraint");
    let complained = |log: &str| complaints.iter().any(|place| place.ends_with(log));
    assert!(
        complained("data/postgres.log") && complained("data.log"),
        "{complaints:?}"
    );
    assert_finds(scratch);
}

/// The search would find a canary in a file, in an answer, and in bytes that were logged.
fn assert_finds(scratch: &Path) {
    let code = format!("{STRAY_CODE}-9");
    assert!(places(scratch, &[], &code).is_empty());
    std::fs::write(scratch.join("data/planted"), format!("\0\u{1}{code}")).unwrap();
    std::fs::write(scratch.join("planted.log"), hex::encode(&code)).unwrap();
    let answer = Seen {
        request: "GET /metrics".to_owned(),
        text: format!("vouchsafe_{code} 1"),
    };
    assert_eq!(places(scratch, &[answer], &code).len(), 3);
}
