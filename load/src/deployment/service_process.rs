//! Process of the service: start, readiness, SIGTERM, SIGKILL.
//!
//! The ports lie below the ephemeral range: a client that connects to a closed port of that range can be connected to
//! itself, and the service would then find its address in use.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use hyper::{HeaderMap, Method};
use rustix::process::{Pid, Signal, kill_process};
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

use super::read_file;
use crate::resources::environment::NOT_INHERITED;

/// Deadline for a start: `initdb` alone took a minute on two busy cores.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Deadline after SIGTERM: 30 s for the service (contract) and more for its Postgres.
const STOP_TIMEOUT: Duration = Duration::from_secs(50);

/// Deadline for the Postgres of a killed service: its guard polls every five seconds.
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Polling interval.
const POLL: Duration = Duration::from_millis(20);

const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Log lines in error messages.
const LOG_LINES: usize = 30;

/// A million requests per second per class: above any load.
const NO_LIMIT: &str = "1000000/1";

/// More requests in flight per API key than a load has connections.
const NO_IN_FLIGHT_LIMIT: &str = "65535";

/// Environment variables of the rate limits.
const RATE_LIMIT_VARIABLES: [&str; 4] = [
    "VOUCHSAFE_LIMIT_ORDERS",
    "VOUCHSAFE_LIMIT_GENERAL",
    "VOUCHSAFE_LIMIT_AUTH",
    "VOUCHSAFE_LIMIT_VOUCHERS",
];

/// Data directory of a deployment.
pub(super) fn data_dir(directory: &Path) -> PathBuf {
    directory.join("data")
}

pub(super) struct ServiceProcess {
    path: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    /// Command before the program, for example of a profiler.
    launcher: Vec<OsString>,
    /// Environment variables besides those of all deployments.
    environment: Vec<(String, String)>,
    pid: u32,
    /// `None` after the process ended.
    running: Option<(Child, Watchdog)>,
}

impl ServiceProcess {
    /// Starts the process. Does not wait until it is ready.
    pub(super) fn start(path: &Path, directory: &Path) -> anyhow::Result<Self> {
        let (http, admin) = free_addresses()?;
        let mut program = Self {
            path: path.to_owned(),
            data_dir: data_dir(directory),
            log: directory.join("log"),
            http,
            admin,
            launcher: Vec::new(),
            environment: Vec::new(),
            pid: 0,
            running: None,
        };
        program.restart(directory)?;
        Ok(program)
    }

    /// Starts the process as [`Self::restart`] does, with a command before the program and more environment variables.
    pub(super) fn restart_under(
        &mut self,
        directory: &Path,
        launcher: &[OsString],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        self.launcher = launcher.to_vec();
        let environment = environment.iter().copied();
        self.environment = environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        self.restart(directory)
    }

    /// Starts the process on existing data with the same addresses. Does not wait until it is ready.
    pub(super) fn restart(&mut self, directory: &Path) -> anyhow::Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .context("cannot open the log of the service")?;
        let errors = log.try_clone().context("cannot open the log of the service")?;
        let mut words = self
            .launcher
            .iter()
            .map(OsString::as_os_str)
            .chain([self.path.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        let child = command
            .arg("--data-dir")
            .arg(&self.data_dir)
            .envs(RATE_LIMIT_VARIABLES.map(|class| (class, NO_LIMIT)))
            .env("VOUCHSAFE_MAX_IN_FLIGHT", NO_IN_FLIGHT_LIMIT)
            .env("VOUCHSAFE_ENVIRONMENT", "sandbox")
            .env("VOUCHSAFE_HTTP_ADDR", self.http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", self.admin.to_string())
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| {
                let program = self.path.display();
                format!("cannot start `{program}`: build it with `cargo build --profile dist --workspace`")
            })?;
        self.pid = child.id();
        let watchdog = Watchdog::start(self.pid, directory);
        let watchdog = watchdog.context("cannot start the watchdog shell of the service")?;
        self.running = Some((child, watchdog));
        Ok(())
    }

    /// Sends SIGKILL and waits for the process. The guard stops its Postgres.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let Some((mut child, watchdog)) = self.running.take() else {
            return Ok(());
        };
        let killed = child.kill().and_then(|()| child.wait());
        watchdog.dismiss();
        killed.map(drop).context("cannot kill the service")
    }

    /// Polls `/readyz`.
    pub(super) async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let mut client = Client::new(Origin::parse(&self.admin_url())?).with_timeout(Duration::from_secs(5));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let response = client
                .call(Method::GET, "/readyz", HeaderMap::new(), Bytes::new())
                .await;
            if response.is_ok_and(|response| response.status.is_success()) {
                return Ok(());
            }
            if let Some((child, _)) = &mut self.running
                && let Some(status) = child.try_wait().context("cannot wait for the service")?
            {
                return Err(self.error(&format!("ended unexpectedly with {status}")));
            }
            if Instant::now() >= deadline {
                return Err(self.error(&format!("was not ready within {START_TIMEOUT:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Reads the operator token of the sandbox.
    pub(super) fn operator_token(&self) -> anyhow::Result<String> {
        read_file(&self.data_dir.join("operator-token"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn http_url(&self) -> String {
        format!("http://{}", self.http)
    }

    pub(super) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends SIGTERM, then SIGKILL after the deadline.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        let Some((mut child, watchdog)) = self.running.take() else {
            return Ok(());
        };
        // `wait_for_exit` reports a process that has already ended.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let exit_status = wait_for_exit(&mut child, STOP_TIMEOUT);
        watchdog.dismiss();
        let reason = match exit_status {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => format!("ended with {status}"),
            Ok(None) => format!("did not exit within {STOP_TIMEOUT:?}"),
            Err(error) => format!("could not be waited for: {error}"),
        };
        // The process may have ended already. Its guard stops the Postgres.
        let _ = child.kill();
        let _ = child.wait();
        self.wait_for_server();
        Err(self.error(&format!("{reason} after SIGTERM")))
    }

    /// The guard stops the server of a killed service; the directory must exist until then.
    fn wait_for_server(&self) {
        let pid_file = super::postgres::pid_file(&self.data_dir);
        let deadline = Instant::now() + SERVER_STOP_TIMEOUT;
        while pid_file.exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }

    /// With the end of the service's log.
    pub(super) fn error(&self, event: &str) -> anyhow::Error {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        anyhow!("the service {event}; end of its log:\n{tail}")
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Callers that need the result call `stop` before.
        let _ = self.stop();
    }
}

fn wait_for_exit(child: &mut Child, time: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + time;
    loop {
        let exit_status = child.try_wait()?;
        if exit_status.is_some() || Instant::now() >= deadline {
            return Ok(exit_status);
        }
        thread::sleep(POLL);
    }
}

/// Cleans up if this process is killed: a shell holds the read end of a pipe and acts when the pipe closes without a
/// line.
struct Watchdog(Child);

impl Watchdog {
    /// Stops the service, waits for it, and removes the directory.
    fn start(pid: u32, directory: &Path) -> std::io::Result<Self> {
        // The shell must survive a signal to the process group, for example from the terminal.
        let script = r#"
            trap '' INT TERM HUP
            read -r _ && exit
            kill -TERM "$0"
            while kill -0 "$0" 2>/dev/null; do sleep 0.2; done
            rm -rf -- "$1"
        "#;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(script)
            .arg(pid.to_string())
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        shell.spawn().map(Self)
    }

    fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // The shell may have ended.
            let _ = writeln!(pipe);
        }
        let _ = self.0.wait();
    }
}

/// Finds two free addresses. The search starts at a port derived from the process id and continues over all
/// deployments of the process, so that concurrent searches find different ports.
fn free_addresses() -> anyhow::Result<(SocketAddr, SocketAddr)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = u32::from(PORTS.end - PORTS.start);
    let mut free = (0..span)
        .map(|_| std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span)
        .filter_map(|offset| u16::try_from(u32::from(PORTS.start) + offset).ok())
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .filter(|address| TcpListener::bind(address).is_ok());
    let addresses = free.next().zip(free.next());
    addresses.with_context(|| format!("no free port in {PORTS:?}"))
}
