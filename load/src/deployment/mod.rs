//! Private test deployment: starts the service on an empty data directory with a private Postgres and rate
//! limits above any load, seeds it over the admin API, and stops it.
//!
//! Rule: a deployment leaves nothing behind and signals only processes that it started.

pub mod operator;
pub mod postgres;
mod process;
pub mod seed;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use hyper::{HeaderMap, Method};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

use self::operator::Operator;
use self::postgres::{DeploymentPostgres, SERVICE_DATABASE};
use self::process::{POLL, Watchdog, free_addresses, wait_for_exit};
use crate::resources::MonitorTarget;
use crate::resources::environment::NOT_INHERITED;
use crate::resources::service_metrics::{MetricsReader, parse_build_info};
use crate::runtime::new_runtime;

const PROGRAM_NAME: &str = "vouchsafe";

/// Deadline for a start: `initdb` alone took a minute on two busy cores.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Deadline after SIGTERM: 30 s for the service (contract) and more for its Postgres.
const STOP_TIMEOUT: Duration = Duration::from_secs(50);

/// Deadline for the Postgres of a killed service: its guard polls every five seconds.
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Log lines in error messages.
const LOG_LINES: usize = 30;

/// Rate limits of a million requests per second per class, and more requests in flight per API key than a
/// load has connections.
const LIMITS: [(&str, &str); 5] = [
    ("VOUCHSAFE_LIMIT_ORDERS", "1000000/1"),
    ("VOUCHSAFE_LIMIT_GENERAL", "1000000/1"),
    ("VOUCHSAFE_LIMIT_AUTH", "1000000/1"),
    ("VOUCHSAFE_LIMIT_VOUCHERS", "1000000/1"),
    ("VOUCHSAFE_MAX_IN_FLIGHT", "65535"),
];

/// A private service. Dropping it stops the service; [`TestDeployment::stop`] also reports whether it stopped
/// cleanly.
pub struct TestDeployment {
    program: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    /// Command before the program, for example of a profiler.
    launcher: Vec<OsString>,
    /// Environment variables besides those of all deployments.
    environment: Vec<(String, String)>,
    pid: u32,
    /// `None` after the process ended.
    running: Option<(Child, Watchdog)>,
    /// `None` until the service is ready for the first time.
    operator: Option<Operator>,
    // Removed after the drop handler has stopped the service.
    directory: TempDir,
}

impl TestDeployment {
    /// Starts the program in sandbox mode on an empty directory below `TMPDIR`, with free loopback ports.
    /// Returns when the service is ready.
    ///
    /// # Errors
    /// The service did not start; the error has the end of its log if there is one.
    pub async fn start(program: &Path) -> anyhow::Result<Self> {
        let (http, admin) = free_addresses()?;
        let mut deployment = Self {
            program: program.to_owned(),
            http,
            admin,
            launcher: Vec::new(),
            environment: Vec::new(),
            pid: 0,
            running: None,
            operator: None,
            directory: create_directory()?,
        };
        deployment.restart()?;
        deployment.wait_until_ready().await?;
        let mut operator = Operator::new(&deployment.admin_url(), &deployment.operator_token()?)?;
        // Another process may have taken the port and be ready, but it does not accept this token.
        operator
            .get("/admin/v1/stock?limit=1")
            .await
            .context("another process listens at the address of the service")?;
        deployment.operator = Some(operator);
        Ok(deployment)
    }

    /// The service's program in the directory of the current program, where `cargo build` puts both.
    ///
    /// # Errors
    /// If the path of the current program is unknown.
    pub fn default_program() -> io::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name(PROGRAM_NAME))
    }

    /// Base URL of the partner API.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    /// URL of the admin listener, without a path.
    #[must_use]
    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// The token of an operator with all permissions.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn operator_token(&self) -> anyhow::Result<String> {
        read_file(&self.data_dir().join("operator-token"))
    }

    /// An operator with all permissions on a new connection. Call it again on each runtime.
    ///
    /// # Panics
    /// Never: a deployment has an operator once it has started.
    pub fn operator(&mut self) -> &mut Operator {
        let Some(operator) = &mut self.operator else {
            unreachable!("a deployment has an operator once it has started")
        };
        operator.reconnect();
        operator
    }

    /// Connection data of the private Postgres.
    ///
    /// # Errors
    /// If the server's files are not at the expected paths.
    pub fn postgres(&self) -> anyhow::Result<DeploymentPostgres> {
        DeploymentPostgres::locate(&self.data_dir())
    }

    /// Directory of everything that the deployment writes.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.directory().join("data")
    }

    /// Path of the running program, for its other commands such as `verify`.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Processes and server for the resource monitor of a run.
    ///
    /// # Errors
    /// As [`TestDeployment::postgres`].
    pub fn monitor_target(&self) -> anyhow::Result<MonitorTarget> {
        Ok(MonitorTarget {
            pids: vec![self.pid],
            server: Some(self.postgres()?.monitored(SERVICE_DATABASE)),
            admin_url: Some(self.admin_url()),
        })
    }

    /// What the service reports about its build, such as its profile.
    ///
    /// # Errors
    /// If its metrics cannot be read.
    pub async fn build_info(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let metrics = MetricsReader::new(&self.admin_url())?.read().await?;
        Ok(parse_build_info(&metrics))
    }

    /// Sends SIGKILL. The private Postgres ends by its guard or is taken over by the next start. Blocks.
    ///
    /// # Errors
    /// If waiting for the process failed.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        let Some((mut child, watchdog)) = self.running.take() else {
            return Ok(());
        };
        let killed = child.kill().and_then(|()| child.wait());
        watchdog.dismiss();
        killed.map(drop).context("cannot kill the service")
    }

    /// Starts the service as [`TestDeployment::restart`] does, with a command before the program and more
    /// environment variables.
    pub(crate) fn restart_under(
        &mut self,
        launcher: Vec<OsString>,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        self.launcher = launcher;
        let environment = environment.iter().copied();
        self.environment = environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        self.restart()
    }

    /// Starts the service on the existing data with the same addresses. Does not wait until it is ready.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.context("cannot open the log of the service")?;
        let errors = log.try_clone().context("cannot open the log of the service")?;
        let program = self.program.as_os_str();
        let mut words = self.launcher.iter().map(OsString::as_os_str).chain([program]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        let child = command
            .arg("--data-dir")
            .arg(self.data_dir())
            .envs(LIMITS)
            .env("VOUCHSAFE_ENVIRONMENT", "sandbox")
            .env("VOUCHSAFE_HTTP_ADDR", self.http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", self.admin.to_string())
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| {
                let program = self.program.display();
                format!("cannot start `{program}`: build it with `cargo build --profile dist --workspace`")
            })?;
        self.pid = child.id();
        let watchdog = Watchdog::start(self.pid, self.directory.path());
        let watchdog = watchdog.context("cannot start the watchdog shell of the service")?;
        self.running = Some((child, watchdog));
        Ok(())
    }

    /// Waits until the service is ready for orders.
    pub(crate) async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let mut client = Client::new(Origin::parse(&self.admin_url())?).with_timeout(Duration::from_secs(5));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let request = client.call(Method::GET, "/readyz", HeaderMap::new(), Bytes::new());
            if request.await.is_ok_and(|response| response.status.is_success()) {
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

    /// Sends SIGTERM, then SIGKILL after the deadline; returns when service and Postgres have ended. A later
    /// [`TestDeployment::restart`] continues on its data. Blocks.
    pub(crate) fn shut_down(&mut self) -> anyhow::Result<()> {
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
        // The process may have ended already. Its guard stops the Postgres; the directory must exist until
        // then.
        let _ = child.kill();
        let _ = child.wait();
        let pid_file = postgres::pid_file(&self.data_dir());
        let deadline = Instant::now() + SERVER_STOP_TIMEOUT;
        while pid_file.exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        Err(self.error(&format!("{reason} after SIGTERM")))
    }

    /// Sends SIGTERM; returns when service and Postgres have ended. Blocks.
    ///
    /// # Errors
    /// If the service had to be killed or exited with a code other than 0.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.shut_down()
    }

    fn log(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// Adds the end of the service's log.
    pub(crate) fn error(&self, event: &str) -> anyhow::Error {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        anyhow!("the service {event}; end of its log:\n{tail}")
    }
}

impl Drop for TestDeployment {
    fn drop(&mut self) {
        // Callers that need the result call `stop` before.
        let _ = self.shut_down();
    }
}

/// Runs on a new deployment, which it stops afterwards. Blocks.
///
/// # Errors
/// If the service did not start, the run failed, or the service did not stop cleanly.
pub fn run_in_new_deployment<T>(
    program: &Path,
    run: impl FnOnce(&mut TestDeployment) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut deployment = new_runtime()?.block_on(TestDeployment::start(program))?;
    let result = run(&mut deployment)?;
    deployment.stop()?;
    Ok(result)
}

/// The Postgres user must be able to traverse the directory.
fn create_directory() -> anyhow::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("vouchsafe-load-")
        .permissions(mode)
        .tempdir()
        .context("cannot create a directory for the deployment")
}

/// The trimmed content of a file of the service.
fn read_file(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(text.trim().to_owned())
}
