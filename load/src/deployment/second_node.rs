//! Second node of a test deployment: a process with a separate data directory, on the database and with the master
//! key of the first node.

use std::path::Path;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use super::service_process::ServiceProcess;
use super::{DeploymentError, create_directory, file_error};

/// A running second node. It must stop before the deployment, whose database it uses. Dropping it stops the process.
pub struct SecondNode {
    // Dropped before the directory is removed.
    program: ServiceProcess,
    _directory: TempDir,
}

impl SecondNode {
    pub(super) async fn start(
        program: &Path,
        data_dir: &Path,
        database: &PgConnectOptions,
    ) -> Result<Self, DeploymentError> {
        let directory = create_directory()?;
        let key = data_dir.join("master-key");
        let master_key = std::fs::read_to_string(&key).map_err(file_error("read", &key))?;
        let settings = vec![
            ("DATABASE_URL", database.to_url_lossy().to_string()),
            ("VOUCHSAFE_MASTER_KEY", master_key.trim().to_owned()),
        ];
        let mut program = ServiceProcess::start(program, directory.path(), settings)?;
        program.wait_until_ready().await?;
        Ok(Self {
            program,
            _directory: directory,
        })
    }

    /// Base URL of the partner API.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/api/v1", self.program.http_url())
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Sends SIGTERM; returns when the process has ended. Blocks.
    ///
    /// # Errors
    /// [`DeploymentError::NotEnded`] if it had to be killed or exited with a code other than 0.
    pub fn stop(mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }
}
