//! Connection data of a deployment's private Postgres: unix socket, and password of the service and superuser
//! roles. A peer uses the same server with a separate database.

use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;

use super::read_file;
use crate::resources::server::MonitoredServer;

const SUPERUSER: &str = "vouchsafe_admin";

/// Role and database of the service.
pub const SERVICE_DATABASE: &str = "vouchsafe";

/// Part of the socket's file name.
const PORT: u16 = 5432;

/// Line of `postmaster.pid` with the socket directory, counted from 0.
const SOCKET_LINE: usize = 4;

pub struct DeploymentPostgres {
    socket_directory: PathBuf,
    password: String,
}

impl DeploymentPostgres {
    /// Reads the connection data of the server in `data_dir`.
    pub(super) fn locate(data_dir: &Path) -> anyhow::Result<Self> {
        let text = read_file(&pid_file(data_dir))?;
        let socket = text.lines().nth(SOCKET_LINE).unwrap_or_default();
        Ok(Self {
            socket_directory: socket.trim().into(),
            password: read_file(&data_dir.join("postgres-password"))?,
        })
    }

    /// Connection options of the service role for its database.
    #[must_use]
    pub fn service_options(&self) -> PgConnectOptions {
        self.options(SERVICE_DATABASE, SERVICE_DATABASE)
    }

    /// Connection options of the superuser for the database `postgres`.
    #[must_use]
    pub fn superuser_options(&self) -> PgConnectOptions {
        self.options(SUPERUSER, "postgres")
    }

    /// Server to monitor during a run on `database`.
    #[must_use]
    pub fn monitored(&self, database: &str) -> MonitoredServer {
        MonitoredServer {
            superuser: self.superuser_options(),
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

/// The server's `postmaster.pid`.
pub(super) fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres/data/postmaster.pid")
}
