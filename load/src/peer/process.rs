//! How is a peer started beside this process, and ended with it? As the program that lies beside this one; it ends when the
//! pipe to it closes, however its owner ends.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::{PeerMode, TransactionShape};
use crate::partner_file::{PartnerFile, PartnerFileError};
use crate::signer::Credentials;

/// The variable by which a peer learns its database: a command line can be read by everybody.
pub const DATABASE_VARIABLE: &str = "PEER_DATABASE_URL";

/// What a peer says before its address.
pub(super) const GREETING: &str = "listening on ";

/// Why no peer runs.
#[derive(Debug, thiserror::Error)]
pub enum PeerProcessError {
    /// The program cannot be run.
    #[error("cannot start `{program}`: build it with `cargo build --release --workspace`")]
    Start {
        /// What was to be started.
        program: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It ended before it listened; why is on standard error.
    #[error("the peer ended before it listened")]
    Ended,
    /// Its credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] PartnerFileError),
}

/// A peer to be started.
#[derive(Clone, Debug)]
pub struct PeerOptions<'a> {
    pub program: &'a Path,
    /// What it does with an order.
    pub mode: PeerMode,
    /// How it puts a transaction to the database.
    pub shape: TransactionShape,
    /// Connections to the database.
    pub pool: u32,
    /// Where it reads and writes.
    pub database: &'a PgConnectOptions,
    /// Its credentials, made if the file is not there.
    pub credentials: &'a Path,
    /// What it sells, at 25.
    pub product: &'a str,
    /// Vouchers put into an empty database.
    pub stock: u64,
}

/// A running peer; it ends when dropped.
pub struct PeerProcess {
    child: Child,
    url: String,
    credentials: Credentials,
}

impl PeerProcess {
    /// The program of the peer beside this one, where a build puts both.
    ///
    /// # Errors
    /// What the system says when asked where this program lies.
    pub fn default_program() -> io::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name("peer"))
    }

    /// Starts it on any free port and returns when it serves. Blocks.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(start: &PeerOptions<'_>) -> Result<Self, PeerProcessError> {
        let not_started = |source| PeerProcessError::Start {
            program: start.program.to_owned(),
            source,
        };
        let mut child = Command::new(start.program)
            .args(["--listen", "127.0.0.1:0", "--until-stdin-closes"])
            .args(["--mode", start.mode.name(), "--shape", start.shape.name()])
            .args(["--pool", &start.pool.to_string()])
            .args(["--product", start.product, "--stock", &start.stock.to_string()])
            .arg("--credentials")
            .arg(start.credentials)
            .env(DATABASE_VARIABLE, start.database.to_url_lossy().as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(not_started)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(not_started)?;
        }
        let Some(url) = line.trim().strip_prefix(GREETING) else {
            // It has ended, or will with the pipe.
            drop(child.stdin.take());
            child.wait().map_err(not_started)?;
            return Err(PeerProcessError::Ended);
        };
        Ok(Self {
            url: url.to_owned(),
            credentials: PartnerFile::read(start.credentials)?.credentials,
            child,
        })
    }

    /// Where it serves, with the prefix.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The pid of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Who may call it.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // There is nobody to tell: what it acknowledged was committed before.
        let _ = self.child.wait();
    }
}
