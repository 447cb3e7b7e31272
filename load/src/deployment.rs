//! Where is there a service to be loaded? One of our own: a program started on an empty directory, with a private
//! Postgres and limits above any load, furnished as its operator would do it, and ended again.
//!
//! Rule: a stand leaves nothing behind, and sends a signal to nobody but what it started.

pub mod seed;
mod second_node;
pub mod operator;
pub mod postgres;
mod service_process;

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::origin::UrlError;
use crate::resource_monitor::MonitorTarget;

pub use self::second_node::SecondNode;
use self::operator::{Operator, OperatorError};
use self::postgres::{DeploymentPostgres, SERVICE_DATABASE};
use self::service_process::ServiceProcess;

/// The name of the service's program.
const PROGRAM_NAME: &str = "vouchsafe";

/// Why there is no stand.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The program cannot be run.
    #[error("cannot start `{program}`: build it with `cargo build --release --workspace`")]
    Start {
        /// What was to be started.
        program: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The service ended before it was ready, or took too long.
    #[error("the service {what}; its log ends:\n{log}")]
    NotReady {
        what: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// Told to end, it did not end well.
    #[error("told to end, the service {what}; its log ends:\n{log}")]
    NotEnded {
        what: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// No free port was found.
    #[error("none of the ports {first} to {last} is free")]
    NoPort {
        /// The first that was tried.
        first: u16,
        /// The last that was tried.
        last: u16,
    },
    /// A directory or a file of the stand cannot be used.
    #[error("cannot {action} `{path}`")]
    File {
        /// What was to be done.
        action: &'static str,
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// An address that is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// What the operator wanted was refused.
    #[error(transparent)]
    Operator(#[from] OperatorError),
}

/// A running service that is nobody else's. Dropped, it ends too; [`Stand::stop`] also says whether it ended well.
pub struct TestDeployment {
    // Ended before the directory is removed.
    program: ServiceProcess,
    operator: Operator,
    directory: TempDir,
}

impl TestDeployment {
    /// Starts this program on an empty directory below the temporary one (`TMPDIR`), and returns when it can place an
    /// order. The sandbox is what it starts; its ports are free ones of the loopback.
    ///
    /// # Errors
    /// [`StandError`], with the end of the service's log where it has one.
    pub async fn start(program: &Path) -> Result<Self, DeploymentError> {
        let directory = create_directory()?;
        let mut program = ServiceProcess::start(program, directory.path(), Vec::new())?;
        program.wait_until_ready().await?;
        let token = program.operator_token()?;
        let mut operator = Operator::new(&program.admin_url(), &token)?;
        // Whoever took the port a moment before us would be ready too, and knows another token.
        let ours = operator.get("/admin/v1/stock?limit=1").await;
        ours.map_err(|error| program.not_ready(format!("at its address is not ours: {error}")))?;
        Ok(Self {
            program,
            operator,
            directory,
        })
    }

    /// Another node on the database of this one: it knows what was made here before it started.
    ///
    /// # Errors
    /// As [`Stand::start`], and as [`Stand::postgres`].
    pub async fn start_second_node(&self) -> Result<SecondNode, DeploymentError> {
        SecondNode::start(self.program(), &self.data_dir(), &self.postgres()?.service_options()).await
    }

    /// The program beside this one, where a build puts both.
    ///
    /// # Errors
    /// What the system says when asked where this program lies.
    pub fn default_program() -> io::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name(PROGRAM_NAME))
    }

    /// Where partners are served, with the prefix.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/api/v1", self.program.http_url())
    }

    /// Where operators are served, without a prefix.
    #[must_use]
    pub fn admin_url(&self) -> String {
        self.program.admin_url()
    }

    /// The operator of this service, who may do everything, on a new connection: to be asked for anew on each runtime.
    pub fn operator(&mut self) -> &mut Operator {
        self.operator.reconnect();
        &mut self.operator
    }

    /// The private Postgres of this service: how it is reached, and where its socket is.
    ///
    /// # Errors
    /// [`StandError::File`] if the server has not left its traces where they are expected.
    pub fn postgres(&self) -> Result<DeploymentPostgres, DeploymentError> {
        DeploymentPostgres::locate(&self.data_dir())
    }

    /// The service's data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        service_process::data_dir(self.directory.path())
    }

    /// The program that runs, for its commands: `verify` asks the database about every invariant.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.program.path()
    }

    /// The pid of the service.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// What is watched of it while a run is measured.
    ///
    /// # Errors
    /// As [`Stand::postgres`].
    pub fn monitor_target(&self) -> Result<MonitorTarget, DeploymentError> {
        Ok(MonitorTarget {
            pids: vec![self.pid()],
            server: Some(self.postgres()?.monitored(SERVICE_DATABASE)),
            admin_url: Some(self.admin_url()),
        })
    }

    /// SIGKILL, as a machine that dies: nothing is said, nothing is finished. Its Postgres ends by itself, or is taken over by
    /// the next start. Blocks.
    ///
    /// # Errors
    /// [`StandError::File`] if the process could not be waited for.
    pub fn kill(&mut self) -> Result<(), DeploymentError> {
        self.program.kill()
    }

    /// SIGTERM, to be started again later. Blocks until the service and its Postgres have ended.
    ///
    /// # Errors
    /// [`StandError::NotEnded`] as [`Stand::stop`].
    pub fn shut_down(&mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }

    /// Starts the service again on what is there, at the same addresses, and does not wait for it.
    ///
    /// # Errors
    /// [`StandError::Start`].
    pub fn restart(&mut self) -> Result<(), DeploymentError> {
        self.program.restart(self.directory.path())
    }

    /// Waits until the service says that an order could be placed.
    ///
    /// # Errors
    /// [`StandError::NotReady`].
    pub async fn wait_until_ready(&mut self) -> Result<(), DeploymentError> {
        self.program.wait_until_ready().await
    }

    /// The error for a service that did not become what was wanted, with the end of its log.
    pub(crate) fn not_ready_error(&self, what: String) -> DeploymentError {
        self.program.not_ready(what)
    }

    /// SIGTERM; returns when the service and its Postgres have ended. Blocks.
    ///
    /// # Errors
    /// [`StandError::NotEnded`] if it had to be killed, or ended with another code than 0.
    pub fn stop(mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }
}

/// A directory below which everybody may pass through, as the user of Postgres must.
fn create_directory() -> Result<TempDir, DeploymentError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    let made = tempfile::Builder::new()
        .prefix("vouchsafe-stand-")
        .permissions(mode)
        .tempdir();
    made.map_err(file_error("make a directory below", &std::env::temp_dir()))
}

/// Says which file it was.
fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DeploymentError {
    let path = path.to_owned();
    move |source| DeploymentError::File { action, path, source }
}
