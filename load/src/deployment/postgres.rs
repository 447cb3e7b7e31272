//! How is the private Postgres of a stand reached? Through its unix socket, with the password that the service keeps, as
//! the service or as the superuser: a peer measures on the same server, in a database of its own.

use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;

use super::{DeploymentError, file_error};
use crate::costs::server::MonitoredServer;

/// The role that owns the server.
const SUPERUSER: &str = "vouchsafe_admin";

/// The service's role, and the name of its database.
pub const SERVICE_DATABASE: &str = "vouchsafe";

/// The port, which only names the socket's file.
const PORT: u16 = 5432;

/// Which line of `postmaster.pid` names the socket's directory, counted from 0 (Postgres' documentation of the file).
const SOCKET_LINE: usize = 4;

/// The server of a running stand.
pub struct DeploymentPostgres {
    pid_file: PathBuf,
    socket_directory: PathBuf,
    password: String,
}

impl DeploymentPostgres {
    /// The server of this data directory.
    pub(super) fn locate(data_dir: &Path) -> Result<Self, DeploymentError> {
        let pid_file = pid_file(data_dir);
        let text = std::fs::read_to_string(&pid_file).map_err(file_error("read", &pid_file))?;
        let socket = text.lines().nth(SOCKET_LINE).unwrap_or_default();
        let secret = data_dir.join("postgres-password");
        let password = std::fs::read_to_string(&secret).map_err(file_error("read", &secret))?;
        Ok(Self {
            pid_file,
            socket_directory: socket.trim().into(),
            password: password.trim().to_owned(),
        })
    }

    /// The directory of its unix socket: what clients take as the host.
    #[must_use]
    pub fn socket_directory(&self) -> &Path {
        &self.socket_directory
    }

    /// As the service, to its database.
    #[must_use]
    pub fn service_options(&self) -> PgConnectOptions {
        self.options(SERVICE_DATABASE, SERVICE_DATABASE)
    }

    /// As the superuser, to the database that is always there; it may make others.
    #[must_use]
    pub fn superuser_options(&self) -> PgConnectOptions {
        self.options(SUPERUSER, "postgres")
    }

    /// What is read of this server while a run on one of its databases is measured.
    #[must_use]
    pub fn monitored(&self, database: &str) -> MonitoredServer {
        MonitoredServer {
            superuser: self.superuser_options(),
            pid_file: self.pid_file.clone(),
            database: database.to_owned(),
        }
    }

    fn options(&self, role: &str, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket_directory)
            .port(PORT)
            .username(role)
            .password(&self.password)
            .database(database)
    }
}

/// The file by which a server says that it is there.
pub(super) fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres/data/postmaster.pid")
}
