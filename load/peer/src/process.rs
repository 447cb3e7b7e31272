//! Child process of a peer. The peer exits when the pipe to it closes, however the owner ends.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_api_client::partner_file::{PartnerFile, PartnerFileError};
use vouchsafe_api_client::signer::Credentials;

use super::{PeerMode, TransactionShape};

/// Environment variable with the database URL: command lines are visible to other users.
pub const DATABASE_VARIABLE: &str = "PEER_DATABASE_URL";

/// Output of the peer before its address.
pub(super) const GREETING: &str = "listening on ";

/// Reason for a failed start.
#[derive(Debug, thiserror::Error)]
pub enum PeerProcessError {
    /// The program cannot be started.
    #[error("cannot start `{program}`: build it with `cargo build --profile dist --workspace`")]
    Start {
        program: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The process exited before it listened; standard error has the reason.
    #[error("the peer exited before it listened; see its error output")]
    Ended,
    /// The credentials file cannot be read.
    #[error(transparent)]
    Credentials(#[from] PartnerFileError),
}

/// Options of a peer process.
#[derive(Clone, Debug)]
pub struct PeerOptions<'a> {
    pub program: &'a Path,
    /// Processing of orders.
    pub mode: PeerMode,
    pub shape: TransactionShape,
    /// Database connections.
    pub pool: u32,
    /// Database of the peer.
    pub database: &'a PgConnectOptions,
    /// Credentials file, created if missing.
    pub credentials: &'a Path,
    /// Product id, at denomination 25.
    pub product: &'a str,
    /// Vouchers inserted into an empty database.
    pub stock: u64,
}

/// A running peer; dropping it stops the process.
pub struct PeerProcess {
    child: Child,
    url: String,
    credentials: Credentials,
}

impl PeerProcess {
    /// The peer's program in the directory of the current program, where `cargo build` puts both.
    ///
    /// # Errors
    /// If the path of the current program is unknown.
    pub fn default_program() -> io::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name("peer"))
    }

    /// Starts a peer on a free port; returns when it listens. Blocks.
    ///
    /// # Errors
    /// [`PeerProcessError`] if the peer does not start or its credentials cannot be read.
    pub fn start(options: &PeerOptions<'_>) -> Result<Self, PeerProcessError> {
        let not_started = |source| PeerProcessError::Start {
            program: options.program.to_owned(),
            source,
        };
        let mut child = Command::new(options.program)
            .args(["--listen", "127.0.0.1:0", "--until-stdin-closes"])
            .args(["--mode", options.mode.name(), "--shape", options.shape.name()])
            .args(["--pool", &options.pool.to_string()])
            .args([
                "--product",
                options.product,
                "--stock",
                &options.stock.to_string(),
            ])
            .arg("--credentials")
            .arg(options.credentials)
            .env(DATABASE_VARIABLE, options.database.to_url_lossy().as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(not_started)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(not_started)?;
        }
        let Some(url) = line.trim().strip_prefix(GREETING) else {
            // The process has exited, or exits when the pipe closes.
            drop(child.stdin.take());
            child.wait().map_err(not_started)?;
            return Err(PeerProcessError::Ended);
        };
        Ok(Self {
            url: url.to_owned(),
            credentials: PartnerFile::read(options.credentials)?.credentials,
            child,
        })
    }

    /// Base URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Credentials of its partner.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // All acknowledged orders are committed, so the exit status does not matter.
        let _ = self.child.wait();
    }
}
