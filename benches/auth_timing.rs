//! Can a stranger tell by the clock how near a guess came?
//!
//! Four kinds of requests that are refused, interleaved at random, timed in process and over loopback against a service
//! that is started for it. Welch's t of two pairs is printed: an unknown key against a wrong secret of a known one, and a
//! signature that is wrong in its first byte against one that is wrong in its last. A |t| below 4.5 is no difference that
//! 20,000 requests of each kind show. The second figure leaves out what took longer than 95 of 100 requests of the pair,
//! which is the machine doing something else.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench has nobody to tell, and prints its figures"
)]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use rustix::process::{Signal, kill_process};
use vouchsafe::access::allowlist::Allowlist;
use vouchsafe::access::client_address::ClientAddress;
use vouchsafe::access::credential::{ApiSecret, ApiKeyPair, generate_key_pair};
use vouchsafe::access::environment::Environment;
use vouchsafe::access::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe::access::headers::{UniqueHeader, AuthHeaders};
use vouchsafe::access::limits::Limits;
use vouchsafe::access::registry::{PartnerAccess, AccessRegistry, PartnerStatus};
use vouchsafe::access::signature;
use vouchsafe_actors::domain::clock::{Clock as _, SystemClock};
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_load::partner::{PartnerClient, unix_seconds};
use vouchsafe_load::partner_file::PartnerFile;
use vouchsafe_load::signer::{API_KEY, API_SECRET, SIGNATURE};

/// Requests of each kind.
const SAMPLES: usize = 20_000;

/// Requests of each kind before any is counted.
const WARM_UP: usize = 500;

/// What is kept where outliers are left out: so many of 100.
const KEPT: usize = 95;

const BODY: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
const PATH: &str = "/api/v1/orders";
const UNKNOWN_KEY: &str = "vs_sandbox_0123456789abcdef0123456789abcdef";

/// How a request is wrong.
#[derive(Clone, Copy)]
enum Kind {
    UnknownKey,
    WrongSecret,
    FirstByte,
    LastByte,
}

const KINDS: [Kind; 4] = [
    Kind::UnknownKey,
    Kind::WrongSecret,
    Kind::FirstByte,
    Kind::LastByte,
];

/// How long the requests of each kind took.
#[derive(Default)]
struct Timings([Vec<f64>; 4]);

impl Timings {
    /// Whether a kind still lacks requests.
    fn lacks(&self, kind: Kind) -> bool {
        self.0[kind as usize].len() < SAMPLES + WARM_UP
    }

    fn complete(&self) -> bool {
        !KINDS.into_iter().any(|kind| self.lacks(kind))
    }

    fn add(&mut self, kind: Kind, took: Duration) {
        self.0[kind as usize].push(took.as_secs_f64() * 1e9);
    }

    fn of(&self, kind: Kind) -> &[f64] {
        &self.0[kind as usize][WARM_UP..]
    }

    fn print(&self, heading: &str) {
        println!("{heading}, {SAMPLES} requests of each kind");
        for (what, one, other) in [
            ("unknown key / wrong secret", Kind::UnknownKey, Kind::WrongSecret),
            ("first byte / last byte", Kind::FirstByte, Kind::LastByte),
        ] {
            let (one, other) = (self.of(one), self.of(other));
            let bound = percentile(&[one, other].concat(), KEPT);
            let kept = |all: &[f64]| {
                all.iter()
                    .copied()
                    .filter(|took| *took <= bound)
                    .collect::<Vec<_>>()
            };
            println!(
                "  {what:28} median {:9.0} / {:9.0} ns   t {:6.2}   without outliers {:6.2}",
                percentile(one, 50),
                percentile(other, 50),
                welch_t(one, other),
                welch_t(&kept(one), &kept(other)),
            );
        }
    }
}

fn percentile(all: &[f64], percent: usize) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Welch's t of two samples.
fn welch_t(one: &[f64], other: &[f64]) -> f64 {
    let ((mean, error), (other_mean, other_error)) = (mean_and_error(one), mean_and_error(other));
    (mean - other_mean) / (error + other_error).sqrt()
}

/// The mean, and its variance.
#[allow(clippy::cast_precision_loss)] // some ten thousand
fn mean_and_error(all: &[f64]) -> (f64, f64) {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let variance = all.iter().map(|took| (took - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance / count)
}

/// The next kind by chance, of those that are still lacking.
fn draw(timings: &Timings) -> Kind {
    loop {
        let kind = KINDS[(getrandom::u32().unwrap() % 4) as usize];
        if timings.lacks(kind) {
            return kind;
        }
    }
}

/// The same text with another hex digit at this place.
fn spoiled(text: &str, at: usize) -> String {
    let other = if &text[at..=at] == "0" { "1" } else { "0" };
    [&text[..at], other, &text[at + 1..]].concat()
}

fn wrong_first_and_last(signature: &str) -> [String; 2] {
    let first = signature.len() - 64;
    [spoiled(signature, first), spoiled(signature, signature.len() - 1)]
}

fn in_process() -> Timings {
    let (clock, register, partner_id) = (
        SystemClock::new(),
        AccessRegistry::new(Environment::Sandbox),
        PartnerId::generate(),
    );
    register.upsert_partner(PartnerAccess {
        partner_id,
        name: String::new(),
        allowlist: Allowlist::parse(&["127.0.0.1"]).unwrap(),
        status: PartnerStatus::Active,
        limits: Limits::default(),
        cancel_window_s: 86_400,
        approval_rule: None,
        scope: None,
    });
    let minted = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    register.upsert_credential(minted.to_credential(partner_id, clock.now()));
    let ApiKeyPair { api_key, api_secret } = minted;
    let wrong_secret = spoiled(api_secret.expose(), 10);
    let key = api_key.to_string();
    let request = SignedRequest {
        method: "POST",
        path: PATH,
        body: BODY.as_bytes(),
    };
    let timestamp = Timestamp::from_unix_s(clock.now().unix_timestamp()).unwrap();
    let signature = signature::sign(&api_secret, timestamp, &CanonicalRequest::new(timestamp, request).unwrap());
    let [first, last] = wrong_first_and_last(&signature);
    let address = ClientAddress::Known([127, 0, 0, 1].into());
    let mut timings = Timings::default();
    while !timings.complete() {
        let kind = draw(&timings);
        let (key, secret, signature) = match kind {
            Kind::UnknownKey => (UNKNOWN_KEY, api_secret.expose(), &signature),
            Kind::WrongSecret => (key.as_str(), wrong_secret.as_str(), &signature),
            Kind::FirstByte => (key.as_str(), api_secret.expose(), &first),
            Kind::LastByte => (key.as_str(), api_secret.expose(), &last),
        };
        let presented = AuthHeaders {
            api_key: UniqueHeader::Single(key.as_bytes()),
            api_secret: UniqueHeader::Single(secret.as_bytes()),
            timestamp: UniqueHeader::Single(timestamp.digits()),
            signature: UniqueHeader::Single(signature.as_bytes()),
            idempotency_key: UniqueHeader::Missing,
        };
        let now = clock.now();
        let begun = Instant::now();
        let verified = register
            .authenticate(&presented, address, now)
            .is_ok_and(|caller| verify(&caller.secret, &presented, request, now));
        timings.add(kind, begun.elapsed());
        assert!(!black_box(verified));
    }
    timings
}

fn verify(
    secret: &ApiSecret,
    presented: &AuthHeaders<'_>,
    request: SignedRequest<'_>,
    now: time::OffsetDateTime,
) -> bool {
    signature::verify(secret, presented, request, now).is_ok()
}

/// A service of its own, ended with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            kill_process(pid, Signal::TERM).unwrap();
        }
        drop(self.0.wait());
    }
}

fn start(data_dir: &Path, http: &str, admin: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vouchsafe"));
    command
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--http-addr", http, "--admin-addr", admin]);
    // No request of this bench is refused for being one of many.
    command.args([
        "--limit-auth",
        "1000000000/1",
        "--limit-orders",
        "1000000000/1",
        "--log",
        "error",
    ]);
    command
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    assert!(
        said.lines().any(|line| line.unwrap().contains("is ready")),
        "the service did not start"
    );
    Running(child)
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

async fn over_loopback() -> Timings {
    use std::os::unix::fs::PermissionsExt as _;
    // The user of Postgres passes through it.
    let mode = std::fs::Permissions::from_mode(0o755);
    let scratch = tempfile::Builder::new().permissions(mode).tempdir().unwrap();
    let (data_dir, http) = (scratch.path().join("data"), free_address());
    let _running = start(&data_dir, &http, &free_address());
    let file = PartnerFile::read(&data_dir.join("sandbox-partner.json")).unwrap();
    let mut client = PartnerClient::new(&format!("http://{http}/api/v1"), file.credentials).unwrap();
    let mut timings = Timings::default();
    while !timings.complete() {
        let kind = draw(&timings);
        let headers = headers(&client, kind);
        let begun = Instant::now();
        let answer = client.send_raw(Method::POST, PATH, headers, BODY).await.unwrap();
        timings.add(kind, begun.elapsed());
        assert_eq!(answer.status, 401, "{:?}", answer.body);
    }
    timings
}

fn headers(client: &PartnerClient, kind: Kind) -> HeaderMap {
    let mut headers = HeaderMap::new();
    client
        .credentials()
        .sign("POST", PATH, BODY.as_bytes(), unix_seconds())
        .apply_to(&mut headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let text = |name| headers[&name].to_str().unwrap().to_owned();
    let [first, last] = wrong_first_and_last(&text(SIGNATURE));
    let (name, value) = match kind {
        Kind::UnknownKey => (API_KEY, UNKNOWN_KEY.to_owned()),
        Kind::WrongSecret => (API_SECRET, spoiled(&text(API_SECRET), 10)),
        Kind::FirstByte => (SIGNATURE, first),
        Kind::LastByte => (SIGNATURE, last),
    };
    headers.insert(name, HeaderValue::from_str(&value).unwrap());
    headers
}

fn main() {
    in_process().print("in process");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(over_loopback()).print("over loopback");
}
