//! Private test deployment: starts the service on an empty data directory with a private Postgres and rate limits
//! above any load, seeds it over the admin API, and stops it.
//!
//! Rule: a deployment leaves nothing behind and signals only processes that it started.

pub mod operator;
pub mod postgres;
pub mod seed;
mod service_process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use self::operator::Operator;
use self::postgres::{DeploymentPostgres, SERVICE_DATABASE};
use self::service_process::ServiceProcess;
use crate::resources::MonitorTarget;
use crate::resources::service_metrics::{MetricsReader, parse_build_info};
use crate::runtime::new_runtime;

const PROGRAM_NAME: &str = "vouchsafe";

/// A running private service. Dropping it stops the service; [`TestDeployment::stop`] also reports whether it stopped
/// cleanly.
pub struct TestDeployment {
    // Dropped before the directory is removed.
    program: ServiceProcess,
    operator: Operator,
    directory: TempDir,
}

impl TestDeployment {
    /// Starts the program in sandbox mode on an empty directory below `TMPDIR`, with free loopback ports. Returns
    /// when the service is ready.
    ///
    /// # Errors
    /// With the end of the service's log if there is one.
    pub async fn start(program: &Path) -> anyhow::Result<Self> {
        let directory = create_directory()?;
        let mut program = ServiceProcess::start(program, directory.path())?;
        program.wait_until_ready().await?;
        let token = program.operator_token()?;
        let mut operator = Operator::new(&program.admin_url(), &token)?;
        // Another process may have taken the port and be ready, but it does not accept this token.
        operator
            .get("/admin/v1/stock?limit=1")
            .await
            .context("another process listens at the address of the service")?;
        Ok(Self {
            program,
            operator,
            directory,
        })
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
        format!("{}/api/v1", self.program.http_url())
    }

    /// URL of the admin listener, without a path.
    #[must_use]
    pub fn admin_url(&self) -> String {
        self.program.admin_url()
    }

    /// The token of an operator with all permissions.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn operator_token(&self) -> anyhow::Result<String> {
        self.program.operator_token()
    }

    /// An operator with all permissions on a new connection. Call it again on each runtime.
    pub fn operator(&mut self) -> &mut Operator {
        self.operator.reconnect();
        &mut self.operator
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
        service_process::data_dir(self.directory.path())
    }

    /// Path of the running program, for its other commands such as `verify`.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.program.path()
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Processes and server for the resource monitor of a run.
    ///
    /// # Errors
    /// As [`TestDeployment::postgres`].
    pub fn monitor_target(&self) -> anyhow::Result<MonitorTarget> {
        Ok(MonitorTarget {
            pids: vec![self.pid()],
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
        self.program.kill()
    }

    /// Sends SIGTERM, for a later [`TestDeployment::restart`]. Blocks until service and Postgres have ended.
    pub(crate) fn shut_down(&mut self) -> anyhow::Result<()> {
        self.program.stop()
    }

    /// Starts the service on the existing data with the same addresses. Does not wait until it is ready.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.program.restart(self.directory.path())
    }

    /// Starts the service as [`TestDeployment::restart`] does, with a command before the program and more environment variables.
    pub(crate) fn restart_under(
        &mut self,
        launcher: &[OsString],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        let directory = self.directory.path();
        self.program.restart_under(directory, launcher, environment)
    }

    /// Waits until the service is ready for orders.
    pub(crate) async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        self.program.wait_until_ready().await
    }

    /// Error for a service that did not become ready, with the end of its log.
    pub(crate) fn not_ready_error(&self, reason: &str) -> anyhow::Error {
        self.program.error(reason)
    }

    /// Sends SIGTERM; returns when service and Postgres have ended. Blocks.
    ///
    /// # Errors
    /// If the service had to be killed or exited with a code other than 0.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.program.stop()
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
