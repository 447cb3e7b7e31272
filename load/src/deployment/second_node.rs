//! A second node of a stand: a process with a name and a data directory of its own, on the first one's database and with its
//! master key.

use std::path::Path;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use super::service_process::ServiceProcess;
use super::{DeploymentError, create_directory, file_error};

/// A running node beside a [`super::Stand`]. Dropped, it ends; it must end before the stand does, whose database it uses.
pub struct SecondNode {
    // Ended before the directory is removed.
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

    /// Where partners are served, with the prefix.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/api/v1", self.program.http_url())
    }

    /// The pid of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// SIGTERM; returns when it has ended. Blocks.
    ///
    /// # Errors
    /// [`StandError::NotEnded`] if it had to be killed, or ended with another code than 0.
    pub fn stop(mut self) -> Result<(), DeploymentError> {
        self.program.stop()
    }
}
