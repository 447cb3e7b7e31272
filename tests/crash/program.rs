//! How is the real program started, killed and started again on the same addresses?
//!
//! Its ports lie below those that the system gives to outgoing connections: a client that knocks at a closed port of that
//! range can be connected to itself, and then the next start finds its address taken.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use rustix::process::Signal;
use tempfile::TempDir;
use vouchsafe_load::client::Client;
use vouchsafe_load::origin::Origin;

use crate::processes::{self, wait_until};

/// How long a start may take: `initdb`, or the recovery of a killed server, on a machine that does other things too.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a service may take to end after SIGTERM (contract §11: 30 s), and its Postgres after it.
const STOP_TIMEOUT: Duration = Duration::from_secs(50);

/// Where data directories are kept for a look after a failure.
const KEEP_VARIABLE: &str = "VOUCHSAFE_CRASH_KEEP";

/// Each client orders, reads and fails as fast as it can.
const NO_LIMITS: [(&str, &str); 4] = [
    ("VOUCHSAFE_LIMIT_ORDERS", "1000000/1"),
    ("VOUCHSAFE_LIMIT_GENERAL", "1000000/1"),
    ("VOUCHSAFE_LIMIT_AUTH", "1000000/1"),
    ("VOUCHSAFE_LIMIT_VOUCHERS", "1000000/1"),
];

/// The ports that are tried.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The name of the program's copy.
const BINARY_NAME: &str = "vouchsafe";

/// A directory below which everybody may pass through, as the user of Postgres must. It holds a copy of the program: a
/// build that runs beside the test must not replace what is started again.
pub(crate) fn test_directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    let mut builder = tempfile::Builder::new();
    builder
        .prefix("vs-crash-")
        .permissions(mode)
        .disable_cleanup(std::env::var_os(KEEP_VARIABLE).is_some());
    let directory = builder.tempdir().unwrap();
    if std::env::var_os(KEEP_VARIABLE).is_some() {
        println!("kept: {}", directory.path().display());
    }
    std::fs::copy(env!("CARGO_BIN_EXE_vouchsafe"), directory.path().join(BINARY_NAME)).unwrap();
    directory
}

/// The program on one data directory, running or not.
pub(crate) struct Program {
    data_dir: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    settings: Vec<(&'static str, String)>,
    running: Option<(Child, Watchdog)>,
}

impl Program {
    /// Not started yet.
    pub(crate) fn new(data_dir: &Path, settings: &[(&'static str, &str)]) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            http: free_address(),
            admin: free_address(),
            settings: settings
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            running: None,
        }
    }

    /// Starts the process and does not wait for it.
    pub(crate) fn spawn(&mut self) {
        assert!(self.running.is_none(), "it runs");
        let log = self.open_log();
        let child = Command::new(self.binary())
            .arg("--data-dir")
            .arg(&self.data_dir)
            .env_remove("DATABASE_URL")
            .envs(NO_LIMITS)
            .env("VOUCHSAFE_HTTP_ADDR", self.http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", self.admin.to_string())
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let watchdog = Watchdog::start(child.id());
        self.running = Some((child, watchdog));
    }

    /// Starts it, and says how long it took until it could place an order.
    pub(crate) async fn start(&mut self) -> Duration {
        let began = Instant::now();
        self.spawn();
        self.wait_until_ready().await;
        began.elapsed()
    }

    /// Waits until it says that an order could be placed.
    pub(crate) async fn wait_until_ready(&mut self) {
        let mut client =
            Client::new(Origin::parse(&self.admin_url()).unwrap()).with_timeout(Duration::from_secs(5));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let answer = client
                .call(Method::GET, "/readyz", HeaderMap::new(), Bytes::new())
                .await;
            if answer.is_ok_and(|answer| answer.status.is_success()) {
                return;
            }
            if let Some((child, _)) = &mut self.running {
                let ended = child.try_wait().unwrap();
                assert!(
                    ended.is_none(),
                    "the service ended by itself: {ended:?}\n{}",
                    self.log_tail()
                );
            }
            assert!(
                Instant::now() < deadline,
                "not ready within {START_TIMEOUT:?}\n{}",
                self.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let (mut child, watchdog) = self.running.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        watchdog.dismiss();
    }

    /// SIGTERM; says whether it ended as it should.
    pub(crate) fn stop(&mut self) -> bool {
        let (mut child, watchdog) = self.running.take().expect("it runs");
        processes::send_signal(child.id(), Signal::TERM);
        let mut ended = None;
        wait_until("the service ends", STOP_TIMEOUT, || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        watchdog.dismiss();
        ended.is_some_and(|status| status.success())
    }

    /// `vouchsafe verify` on its data directory, whether it runs or not. Panics with what it says, unless all is well.
    pub(crate) fn verify(&self) {
        let mut command = Command::new(self.binary());
        command
            .arg("verify")
            .arg("--data-dir")
            .arg(&self.data_dir)
            .env_remove("DATABASE_URL");
        let said = command.output().unwrap();
        let [out, err] = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(said.status.success(), "verify: {}\n{out}{err}", said.status);
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").0.id()
    }

    /// Where partners are served, with the prefix.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    /// Where operators are served.
    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// The copy of the program that is started.
    pub(crate) fn binary(&self) -> PathBuf {
        self.data_dir.with_file_name(BINARY_NAME)
    }

    /// Where it keeps what it needs.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    fn open_log(&self) -> File {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.data_dir.with_extension("log"))
            .unwrap()
    }

    /// The last lines that it wrote.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// Ends a service whose test is gone: a shell holds one end of a pipe, and acts when ours closes without a word.
struct Watchdog(Child);

impl Watchdog {
    fn start(pid: u32) -> Self {
        let script = r#"read -r _ || kill -KILL "$0""#;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(script)
            .arg(pid.to_string())
            .stdin(Stdio::piped());
        Self(shell.spawn().unwrap())
    }

    fn dismiss(mut self) {
        writeln!(self.0.stdin.take().unwrap()).unwrap();
        self.0.wait().unwrap();
    }
}

/// An address that nobody listens on. Every process begins somewhere else.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests that begin together have neighbouring process ids, and each needs several ports.
    let apart = std::process::id().wrapping_mul(16);
    let begin = u16::try_from(apart % u32::from(PORTS.end - PORTS.start)).unwrap();
    loop {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (begin + offset) % (PORTS.end - PORTS.start);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
