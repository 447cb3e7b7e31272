//! Private test deployment: starts the service on an empty data directory with a private Postgres and rate limits
//! above any load, seeds it over the admin API, and stops it.
//!
//! Rule: a deployment leaves nothing behind and signals only processes that it started.

pub mod operator;
pub mod postgres;
mod second_node;
pub mod seed;
mod service_process;

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vouchsafe_api_client::origin::UrlError;

use self::operator::{Operator, OperatorError};
use self::postgres::{DeploymentPostgres, SERVICE_DATABASE};
pub use self::second_node::SecondNode;
use self::service_process::ServiceProcess;
use crate::resources::MonitorTarget;

const PROGRAM_NAME: &str = "vouchsafe";

/// Reason for a failed deployment.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The program cannot be started.
    #[error("cannot start `{program}`: build it with `cargo build --profile dist --workspace`")]
    Start {
        program: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The service ended before it was ready, or the deadline passed.
    #[error("the service {reason}; end of its log:\n{log}")]
    NotReady { reason: String, log: String },
    /// The service did not stop cleanly.
    #[error("after SIGTERM the service {reason}; end of its log:\n{log}")]
    NotEnded { reason: String, log: String },
    #[error("no free port from {first} to {last}")]
    NoPort { first: u16, last: u16 },
    /// A directory or file of the deployment cannot be used.
    #[error("cannot {action} `{path}`")]
    File {
        action: &'static str,
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Operator(#[from] OperatorError),
}

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
    /// [`DeploymentError`], with the end of the service's log if there is one.
    pub async fn start(program: &Path) -> Result<Self, DeploymentError> {
        let directory = create_directory()?;
        let mut program = ServiceProcess::start(program, directory.path(), Vec::new())?;
        program.wait_until_ready().await?;
        let token = program.operator_token()?;
        let mut operator = Operator::new(&program.admin_url(), &token)?;
        // Another process may have taken the port and be ready, but it does not accept this token.
        let reachable = operator.get("/admin/v1/stock?limit=1").await;
        reachable
            .map_err(|error| program.not_ready(format!("at its address is another process: {error}")))?;
        Ok(Self {
            program,
            operator,
            directory,
        })
    }

    /// Starts a second node on the database of this one. It reads partners and products at its start.
    ///
    /// # Errors
    /// As [`TestDeployment::start`] and [`TestDeployment::postgres`].
    pub async fn start_second_node(&self) -> Result<SecondNode, DeploymentError> {
        SecondNode::start(
            self.program(),
            &self.data_dir(),
            &self.postgres()?.service_options(),
        )
        .await
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

    /// An operator with all permissions on a new connection. Call it again on each runtime.
    pub fn operator(&mut self) -> &mut Operator {
        self.operator.reconnect();
        &mut self.operator
    }

    /// Connection data of the private Postgres.
    ///
    /// # Errors
    /// [`DeploymentError::File`] if the server's files are not at the expected paths.
    pub fn postgres(&self) -> Result<DeploymentPostgres, DeploymentError> {
        DeploymentPostgres::locate(&self.data_dir())
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
    pub fn monitor_target(&self) -> Result<MonitorTarget, DeploymentError> {
        Ok(MonitorTarget {
            pids: vec![self.pid()],
            server: Some(self.postgres()?.monitored(SERVICE_DATABASE)),
            admin_url: Some(self.admin_url()),
        })
    }

    /// Sends SIGKILL. The private Postgres ends by its guard or is taken over by the next start. Blocks.
    ///
    /// # Errors
    /// [`DeploymentError::File`] if waiting for the process failed.
    pub fn kill(&mut self) -> Result<(), DeploymentError> {
        self.program.kill()
    }

    /// Sends SIGTERM, for a later [`TestDeployment::restart`]. Blocks until service and Postgres have ended.
    pub(crate) fn shut_down(&mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }

    /// Starts the service on the existing data with the same addresses. Does not wait until it is ready.
    ///
    /// # Errors
    /// [`DeploymentError::Start`] if the program cannot be started.
    pub fn restart(&mut self) -> Result<(), DeploymentError> {
        self.program.restart(self.directory.path())
    }

    /// Waits until the service is ready for orders.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<(), DeploymentError> {
        self.program.wait_until_ready().await
    }

    /// Error for a service that did not become ready, with the end of its log.
    pub(crate) fn not_ready_error(&self, reason: String) -> DeploymentError {
        self.program.not_ready(reason)
    }

    /// Sends SIGTERM; returns when service and Postgres have ended. Blocks.
    ///
    /// # Errors
    /// [`DeploymentError::NotEnded`] if the service had to be killed or exited with a code other than 0.
    pub fn stop(mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }
}

/// The Postgres user must be able to traverse the directory.
fn create_directory() -> Result<TempDir, DeploymentError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    let created = tempfile::Builder::new()
        .prefix("vouchsafe-load-")
        .permissions(mode)
        .tempdir();
    created.map_err(file_error("create a directory below", &std::env::temp_dir()))
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DeploymentError {
    let path = path.to_owned();
    move |source| DeploymentError::File { action, path, source }
}
