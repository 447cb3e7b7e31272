//! Timing side channels of authentication: whether the time of a refused request shows how close a guess
//! came.
//!
//! Requests of six kinds are measured, interleaved at random, in process and over loopback against a service
//! of their own. Each of five rounds compares pairs of kinds; the verdict is that of
//! [`vouchsafe_test_harness::timing_verdict`]. Two pairs are controls: one of equal requests, which must show
//! no difference, and one with an added delay, which must be found.
//!
//! Exits with 0 if no difference was found, 1 if there is one, 2 if the machine was too busy to tell.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench may panic, and prints its results"
)]

#[path = "auth_timing/pairs.rs"]
mod pairs;

use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use rustix::process::{Signal, kill_process};
use vouchsafe_api_client::partner::{PartnerClient, unix_seconds};
use vouchsafe_api_client::partner_file::PartnerFile;
use vouchsafe_api_client::signer::{API_KEY, API_SECRET, SIGNATURE};
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::{Limits, RequestClass};
use vouchsafe_security::client_address::ClientAddress;
use vouchsafe_security::credential::{ApiKeyPair, ApiSecret, generate_key_pair};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::registry::{AccessRegistry, PartnerAccess, PartnerStatus};
use vouchsafe_security::signature;
use vouchsafe_test_harness::timing_verdict::{Comparison, Pair, Verdict};

use self::pairs::{
    PAIRS, RELEVANT_IN_PROCESS, RELEVANT_OVER_LOOPBACK, REQUEST_DEFECTS, Relevant, RequestDefect,
};

/// Requests of each kind in a round.
const SAMPLES: usize = 10_000;

const ROUNDS: usize = 5;

/// Uncounted requests of each kind at the beginning of a round.
const WARM_UP: usize = 500;

/// Added to the requests of the control with a leak.
const LEAK_IN_PROCESS: Duration = Duration::from_nanos(300);
const LEAK_OVER_LOOPBACK: Duration = Duration::from_micros(5);

const BODY: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
const PATH: &str = "/api/v1/orders";
const UNKNOWN_KEY: &str = "vs_sandbox_0123456789abcdef0123456789abcdef";

/// Durations of a round in nanoseconds, by kind.
#[derive(Default)]
struct Timings([Vec<f64>; REQUEST_DEFECTS.len()]);

impl Timings {
    /// Whether more requests of a kind are needed.
    fn needs_more(&self, defect: RequestDefect) -> bool {
        self.0[defect as usize].len() < SAMPLES + WARM_UP
    }

    fn is_complete(&self) -> bool {
        !REQUEST_DEFECTS.into_iter().any(|defect| self.needs_more(defect))
    }

    fn add(&mut self, defect: RequestDefect, duration: Duration) {
        self.0[defect as usize].push(duration.as_secs_f64() * 1e9);
    }

    fn of(&self, defect: RequestDefect) -> &[f64] {
        &self.0[defect as usize][WARM_UP..]
    }
}

/// Draws a kind of which more requests are needed.
fn draw(timings: &Timings) -> RequestDefect {
    loop {
        let defect = REQUEST_DEFECTS[getrandom::u32().unwrap() as usize % REQUEST_DEFECTS.len()];
        if timings.needs_more(defect) {
            return defect;
        }
    }
}

/// Keeps the thread busy, as a longer comparison would.
fn spin(duration: Duration) {
    let started = Instant::now();
    while started.elapsed() < duration {
        std::hint::spin_loop();
    }
}

fn judge(rounds: &[Timings], heading: &str, relevant: &Relevant) -> Verdict {
    println!("{heading}, {ROUNDS} rounds of {SAMPLES} requests of each kind");
    let pairs = PAIRS.map(|(name, expected, first, second)| {
        let rounds = rounds
            .iter()
            .map(|round| Comparison::of(round.of(first), round.of(second)));
        let pair = Pair::of(expected.expectation(relevant), &rounds.collect::<Vec<_>>());
        println!("  {name:38} {pair}");
        pair
    });
    let verdict = Verdict::of(&pairs);
    println!("  verdict: {verdict}");
    verdict
}

/// Replaces the hex digit at an index.
fn with_other_digit(text: &str, at: usize) -> String {
    let second = if &text[at..=at] == "0" { "1" } else { "0" };
    [&text[..at], second, &text[at + 1..]].concat()
}

fn wrong_first_and_last(signature: &str) -> [String; 2] {
    let first = signature.len() - 64;
    [
        with_other_digit(signature, first),
        with_other_digit(signature, signature.len() - 1),
    ]
}

fn in_process() -> Vec<Timings> {
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
        ceilings: Limits::default(),
        cancel_window_s: 86_400,
        approval_rule: None,
        caps: None,
        scope: None,
    });
    let key_pair = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    register.upsert_credential(key_pair.to_credential(partner_id, clock.now()));
    let ApiKeyPair { api_key, api_secret } = key_pair;
    let wrong_secret = with_other_digit(api_secret.expose(), 10);
    let key = api_key.to_string();
    let request = SignedRequest {
        method: "POST",
        path: PATH,
        body: BODY.as_bytes(),
    };
    let timestamp = Timestamp::from_unix_s(clock.now().unix_timestamp()).unwrap();
    let signature = signature::sign(
        &api_secret,
        timestamp,
        &CanonicalRequest::new(timestamp, request).unwrap(),
    );
    let [first, last] = wrong_first_and_last(&signature);
    let address = ClientAddress::Known([127, 0, 0, 1].into());
    let measure = |defect: RequestDefect| {
        let (key, secret, signature) = match defect {
            RequestDefect::UnknownKey | RequestDefect::UnknownKeyAgain | RequestDefect::UnknownKeyDelayed => {
                (UNKNOWN_KEY, api_secret.expose(), &signature)
            }
            RequestDefect::WrongSecret => (key.as_str(), wrong_secret.as_str(), &signature),
            RequestDefect::FirstByte => (key.as_str(), api_secret.expose(), &first),
            RequestDefect::LastByte => (key.as_str(), api_secret.expose(), &last),
        };
        // New copies: the addresses of the texts influence the time.
        let (key, secret, signature) = (key.to_owned(), secret.to_owned(), signature.to_owned());
        let presented = AuthHeaders {
            api_key: UniqueHeader::Single(key.as_bytes()),
            api_secret: UniqueHeader::Single(secret.as_bytes()),
            timestamp: UniqueHeader::Single(timestamp.digits()),
            signature: UniqueHeader::Single(signature.as_bytes()),
            idempotency_key: UniqueHeader::Missing,
        };
        let now = clock.now();
        let started = Instant::now();
        let verified = register
            .authenticate(&presented, address, RequestClass::Orders, now)
            .is_ok_and(|caller| verify(&caller.secret, &presented, request, now));
        if matches!(defect, RequestDefect::UnknownKeyDelayed) {
            spin(LEAK_IN_PROCESS);
        }
        let duration = started.elapsed();
        assert!(!black_box(verified));
        duration
    };
    let round = |_| {
        let mut timings = Timings::default();
        while !timings.is_complete() {
            let defect = draw(&timings);
            timings.add(defect, measure(defect));
        }
        timings
    };
    (0..ROUNDS).map(round).collect()
}

fn verify(
    secret: &ApiSecret,
    presented: &AuthHeaders<'_>,
    request: SignedRequest<'_>,
    now: time::OffsetDateTime,
) -> bool {
    signature::verify(secret, presented, request, now).is_ok()
}

/// A private service; dropping it sends SIGTERM and waits.
struct PrivateService(Child);

impl Drop for PrivateService {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            kill_process(pid, Signal::TERM).unwrap();
        }
        drop(self.0.wait());
    }
}

fn start(data_dir: &Path, http: &str, admin: &str) -> PrivateService {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vouchsafe"));
    command
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--http-addr", http, "--admin-addr", admin]);
    // Rate limits must not reject requests of this bench.
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
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(
        output.lines().any(|line| line.unwrap().contains("is ready")),
        "the service did not start"
    );
    PrivateService(child)
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

async fn over_loopback() -> Vec<Timings> {
    use std::os::unix::fs::PermissionsExt as _;
    // The Postgres user must be able to traverse the directory.
    let mode = std::fs::Permissions::from_mode(0o755);
    let scratch = tempfile::Builder::new().permissions(mode).tempdir().unwrap();
    let (data_dir, http) = (scratch.path().join("data"), free_address());
    let _running = start(&data_dir, &http, &free_address());
    let file = PartnerFile::read(&data_dir.join("sandbox-partner.json")).unwrap();
    let mut client = PartnerClient::new(&format!("http://{http}/api/v1"), file.credentials).unwrap();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut timings = Timings::default();
        while !timings.is_complete() {
            let defect = draw(&timings);
            let headers = headers(&client, defect);
            let started = Instant::now();
            let response = client.send_raw(Method::POST, PATH, headers, BODY).await.unwrap();
            if matches!(defect, RequestDefect::UnknownKeyDelayed) {
                spin(LEAK_OVER_LOOPBACK);
            }
            timings.add(defect, started.elapsed());
            assert_eq!(response.status, 401, "{:?}", response.body);
        }
        rounds.push(timings);
    }
    rounds
}

fn headers(client: &PartnerClient, defect: RequestDefect) -> HeaderMap {
    let mut headers = HeaderMap::new();
    client
        .credentials()
        .sign("POST", PATH, BODY.as_bytes(), unix_seconds())
        .apply_to(&mut headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let text = |name| headers[&name].to_str().unwrap().to_owned();
    let [first, last] = wrong_first_and_last(&text(SIGNATURE));
    let (name, value) = match defect {
        RequestDefect::UnknownKey | RequestDefect::UnknownKeyAgain | RequestDefect::UnknownKeyDelayed => {
            (API_KEY, UNKNOWN_KEY.to_owned())
        }
        RequestDefect::WrongSecret => (API_SECRET, with_other_digit(&text(API_SECRET), 10)),
        RequestDefect::FirstByte => (SIGNATURE, first),
        RequestDefect::LastByte => (SIGNATURE, last),
    };
    headers.insert(name, HeaderValue::from_str(&value).unwrap());
    headers
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let verdicts = [
        judge(&in_process(), "in process", &RELEVANT_IN_PROCESS),
        judge(
            &runtime.block_on(over_loopback()),
            "over loopback",
            &RELEVANT_OVER_LOOPBACK,
        ),
    ];
    Verdict::worst(verdicts).into()
}
