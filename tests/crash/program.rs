//! The real program as a process: started, killed and restarted on the same addresses.
//!
//! Its ports are below the ephemeral range: a client that connects to a closed ephemeral port can connect to itself, and the
//! next start then finds its address in use.

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
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

use crate::processes::{self, wait_until};

/// Covers `initdb` and the recovery of a killed server on a busy machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The service stops within 30 s of SIGTERM (contract §11); its Postgres stops afterwards.
const STOP_TIMEOUT: Duration = Duration::from_secs(50);

/// Environment variable that keeps data directories for debugging.
const KEEP_VARIABLE: &str = "VOUCHSAFE_CRASH_KEEP";

const NO_LIMITS: [(&str, &str); 4] = [
    ("VOUCHSAFE_LIMIT_ORDERS", "1000000/1"),
    ("VOUCHSAFE_LIMIT_GENERAL", "1000000/1"),
    ("VOUCHSAFE_LIMIT_AUTH", "1000000/1"),
    ("VOUCHSAFE_LIMIT_VOUCHERS", "1000000/1"),
];

const PORTS: std::ops::Range<u16> = 20_000..32_000;

const BINARY_NAME: &str = "vouchsafe";

/// Creates a directory that the Postgres user can traverse, with a copy of the program: a concurrent build must not replace
/// the binary between restarts.
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
        println!("data directory kept: {}", directory.path().display());
    }
    std::fs::copy(
        env!("CARGO_BIN_EXE_vouchsafe"),
        directory.path().join(BINARY_NAME),
    )
    .unwrap();
    directory
}

pub(crate) struct Program {
    data_dir: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    settings: Vec<(&'static str, String)>,
    running: Option<(Child, Watchdog)>,
}

impl Program {
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

    /// Starts the process without waiting for readiness.
    pub(crate) fn spawn(&mut self) {
        assert!(self.running.is_none(), "the program is running");
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

    /// Starts the process and returns the time until it was ready.
    pub(crate) async fn start(&mut self) -> Duration {
        let began = Instant::now();
        self.spawn();
        self.wait_until_ready().await;
        began.elapsed()
    }

    pub(crate) async fn wait_until_ready(&mut self) {
        let mut client =
            Client::new(Origin::parse(&self.admin_url()).unwrap()).with_timeout(Duration::from_secs(5));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let response = client
                .call(Method::GET, "/readyz", HeaderMap::new(), Bytes::new())
                .await;
            if response.is_ok_and(|response| response.status.is_success()) {
                return;
            }
            if let Some((child, _)) = &mut self.running {
                let status = child.try_wait().unwrap();
                assert!(
                    status.is_none(),
                    "the service exited: {status:?}\n{}",
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

    pub(crate) fn kill(&mut self) {
        let (mut child, watchdog) = self.running.take().expect("the program is running");
        child.kill().unwrap();
        child.wait().unwrap();
        watchdog.dismiss();
    }

    /// Sends SIGTERM; returns whether the exit status was success.
    pub(crate) fn stop(&mut self) -> bool {
        let (mut child, watchdog) = self.running.take().expect("the program is running");
        processes::send_signal(child.id(), Signal::TERM);
        let mut status = None;
        wait_until("the service ends", STOP_TIMEOUT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        watchdog.dismiss();
        status.is_some_and(|status| status.success())
    }

    /// Runs `vouchsafe verify` on the data directory and panics with its output on failure.
    pub(crate) fn verify(&self) {
        let mut command = Command::new(self.binary());
        command
            .arg("verify")
            .arg("--data-dir")
            .arg(&self.data_dir)
            .env_remove("DATABASE_URL");
        let output = command.output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "verify: {}\n{out}{err}", output.status);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("the program is running").0.id()
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    pub(crate) fn binary(&self) -> PathBuf {
        self.data_dir.with_file_name(BINARY_NAME)
    }

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

/// Kills the service when the test dies: a shell reads a pipe from the test and acts when it closes without a line.
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

/// Returns a free address.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests that start together have adjacent process ids, and each needs several ports.
    let spread = std::process::id().wrapping_mul(16);
    let begin = u16::try_from(spread % u32::from(PORTS.end - PORTS.start)).unwrap();
    loop {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (begin + offset) % (PORTS.end - PORTS.start);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
