//! How is the service's program started and ended?
//!
//! Its ports lie below those that the system gives to outgoing connections: who knocks at a closed port of that range can
//! be connected to itself, and then the service finds its address taken.

use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use rustix::process::{Pid, Signal, kill_process};

use super::{DeploymentError, file_error};
use crate::client::Client;
use crate::origin::Origin;

/// How long a start may take: `initdb` alone took a minute on two cores that did ten other things.
const START_WITHIN: Duration = Duration::from_secs(180);

/// How long a service may take to end after SIGTERM (30 s by the contract), and its Postgres after it.
const STOP_WITHIN: Duration = Duration::from_secs(50);

/// How long the server of a killed service may take to end: its guard looks each five seconds.
const SERVER_GONE_WITHIN: Duration = Duration::from_secs(15);

/// Pause between two looks at what starts or ends.
const POLL: Duration = Duration::from_millis(20);

/// The ports that are tried.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Lines of the log that an error shows.
const LOG_LINES: usize = 30;

/// What is above any load: a million requests in a second, for each class.
const NO_LIMIT: &str = "1000000/1";

/// The classes of limits, as settings.
const LIMITS: [&str; 4] = [
    "VOUCHSAFE_LIMIT_ORDERS",
    "VOUCHSAFE_LIMIT_GENERAL",
    "VOUCHSAFE_LIMIT_AUTH",
    "VOUCHSAFE_LIMIT_VOUCHERS",
];

/// Settings of the caller's own service, which must not reach the stand's.
const NOT_INHERITED: [&str; 3] = ["DATABASE_URL", "VOUCHSAFE_MASTER_KEY", "VOUCHSAFE_OPERATOR_TOKEN"];

/// The data directory of a stand in this directory.
pub(super) fn data_dir(directory: &Path) -> PathBuf {
    directory.join("data")
}

/// A running service.
pub(super) struct ServiceProcess {
    path: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    /// Settings beside those that every stand has.
    settings: Vec<(&'static str, String)>,
    pid: u32,
    /// `None` once it has ended.
    running: Option<(Child, Watchdog)>,
}

impl ServiceProcess {
    /// Starts the process with these settings beside those of every stand, and does not wait for it.
    pub(super) fn start(
        path: &Path,
        directory: &Path,
        settings: Vec<(&'static str, String)>,
    ) -> Result<Self, DeploymentError> {
        let (http, admin) = free_addresses()?;
        let mut program = Self {
            path: path.to_owned(),
            data_dir: data_dir(directory),
            log: directory.join("log"),
            http,
            admin,
            settings,
            pid: 0,
            running: None,
        };
        program.restart(directory)?;
        Ok(program)
    }

    /// Starts a process on what an earlier one has left, at the same addresses, and does not wait for it.
    pub(super) fn restart(&mut self, directory: &Path) -> Result<(), DeploymentError> {
        let log = File::options().create(true).append(true).open(&self.log);
        let out = log.map_err(file_error("open", &self.log))?;
        let err = out.try_clone().map_err(file_error("open", &self.log))?;
        let mut command = Command::new(&self.path);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        let child = command
            .arg("--data-dir")
            .arg(&self.data_dir)
            .envs(LIMITS.map(|class| (class, NO_LIMIT)))
            .env("VOUCHSAFE_ENVIRONMENT", "sandbox")
            .env("VOUCHSAFE_HTTP_ADDR", self.http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", self.admin.to_string())
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|source| DeploymentError::Start {
                program: self.path.clone(),
                source,
            })?;
        self.pid = child.id();
        let watchdog = Watchdog::over(self.pid, directory);
        let watchdog = watchdog.map_err(file_error("start sh, which watches over", &self.path))?;
        self.running = Some((child, watchdog));
        Ok(())
    }

    /// SIGKILL; returns when the process is gone. What is left of it is its server, which has a guard.
    pub(super) fn kill(&mut self) -> Result<(), DeploymentError> {
        let Some((mut child, watchdog)) = self.running.take() else {
            return Ok(());
        };
        let killed = child.kill().and_then(|()| child.wait());
        watchdog.dismiss();
        killed.map(drop).map_err(file_error("kill", &self.path))
    }

    /// Waits until it says that an order could be placed.
    pub(super) async fn wait_until_ready(&mut self) -> Result<(), DeploymentError> {
        let mut client = Client::new(Origin::parse(&self.admin_url())?).with_timeout(Duration::from_secs(5));
        let deadline = Instant::now() + START_WITHIN;
        loop {
            let answer = client
                .call(Method::GET, "/readyz", HeaderMap::new(), Bytes::new())
                .await;
            if answer.is_ok_and(|answer| answer.status.is_success()) {
                return Ok(());
            }
            if let Some((child, _)) = &mut self.running
                && let Some(status) = child.try_wait().map_err(file_error("wait for", &self.path))?
            {
                return Err(self.not_ready(format!("ended by itself, {status}")));
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready(format!("was not ready within {START_WITHIN:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The token that the sandbox made for its operator.
    pub(super) fn operator_token(&self) -> Result<String, DeploymentError> {
        let path = self.data_dir.join("operator-token");
        let token = std::fs::read_to_string(&path).map_err(file_error("read", &path))?;
        Ok(token.trim().to_owned())
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

    /// SIGTERM, and SIGKILL for what does not heed it.
    pub(super) fn stop(&mut self) -> Result<(), DeploymentError> {
        let Some((mut child, watchdog)) = self.running.take() else {
            return Ok(());
        };
        // A process that has ended meanwhile is found out below.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let ended = ended_within(&mut child, STOP_WITHIN);
        watchdog.dismiss();
        let what = match ended {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => format!("ended with {status}"),
            Ok(None) => format!("went on for {STOP_WITHIN:?}"),
            Err(error) => format!("could not be waited for: {error}"),
        };
        // Whether it still runs or not: what is left of it is its server, which has a guard.
        let _ = child.kill();
        let _ = child.wait();
        self.wait_for_server();
        Err(DeploymentError::NotEnded {
            what,
            log: self.log_end(),
        })
    }

    /// The guard of a service that was killed ends the server; the directory must not go before.
    fn wait_for_server(&self) {
        let pid_file = super::postgres::pid_file(&self.data_dir);
        let deadline = Instant::now() + SERVER_GONE_WITHIN;
        while pid_file.exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }

    /// The service did not become what was wanted.
    pub(super) fn not_ready(&self, what: String) -> DeploymentError {
        DeploymentError::NotReady {
            what,
            log: self.log_end(),
        }
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has asked before.
        let _ = self.stop();
    }
}

fn ended_within(child: &mut Child, time: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + time;
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || Instant::now() >= deadline {
            return Ok(ended);
        }
        thread::sleep(POLL);
    }
}

/// What is done for a stand that was killed: a shell holds one end of a pipe, and acts when ours closes without a word.
struct Watchdog(Child);

impl Watchdog {
    /// Ends the service, waits until it has ended, and removes the stand's directory.
    fn over(pid: u32, directory: &Path) -> std::io::Result<Self> {
        // What ends the stand's whole group, from the terminal say, must not end the shell before its work.
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
            // A shell that has gone needs no word.
            let _ = writeln!(pipe);
        }
        let _ = self.0.wait();
    }
}

/// Two addresses that nobody listens on. Every process begins somewhere else, and every stand of it goes on from there: two
/// that look at the same time must not find the same.
fn free_addresses() -> Result<(SocketAddr, SocketAddr), DeploymentError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = u32::from(PORTS.end - PORTS.start);
    let mut free = (0..span)
        .map(|_| std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span)
        .filter_map(|offset| u16::try_from(u32::from(PORTS.start) + offset).ok())
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .filter(|address| TcpListener::bind(address).is_ok());
    free.next().zip(free.next()).ok_or(DeploymentError::NoPort {
        first: PORTS.start,
        last: PORTS.end - 1,
    })
}
