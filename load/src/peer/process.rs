//! Child process of a peer, so that its CPU time is measured apart from the generator's. It exits when the
//! pipe to it closes, however the owner ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;
use vouchsafe_api_client::signer::Credentials;

use super::PeerMode;

/// Environment variables with the database URL and the partner's credentials: command lines are visible to
/// other users.
pub const DATABASE_VARIABLE: &str = "LOAD_PEER_DATABASE_URL";
pub const API_KEY_VARIABLE: &str = "LOAD_PEER_API_KEY";
pub const API_SECRET_VARIABLE: &str = "LOAD_PEER_API_SECRET";

/// Output of the peer before its address.
pub(super) const GREETING: &str = "listening on ";

/// Options of a peer process.
#[derive(Clone, Debug)]
pub struct PeerOptions<'a> {
    pub program: &'a Path,
    pub mode: PeerMode,
    pub pool: u32,
    pub database: &'a PgConnectOptions,
    pub partner: &'a PeerCredentials,
    /// Product id, at denomination 25.
    pub product: &'a str,
    /// Vouchers inserted into an empty database.
    pub stock: u64,
}

/// API key and secret of the peer's partner.
#[derive(Clone)]
pub struct PeerCredentials {
    pub api_key: String,
    pub api_secret: String,
}

impl std::fmt::Debug for PeerCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerCredentials(…)")
    }
}

impl PeerCredentials {
    /// Generates values as long as those of the service, so that hashing them costs the same.
    #[must_use]
    pub fn generate() -> Self {
        Self {
            api_key: format!("vs_sandbox_{}", Uuid::new_v4().simple()),
            api_secret: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
        }
    }

    pub(super) fn signer(&self) -> anyhow::Result<Credentials> {
        Ok(Credentials::new(&self.api_key, &self.api_secret)?)
    }
}

/// A running peer; dropping it stops the process.
pub struct PeerProcess {
    child: Child,
    url: String,
    credentials: Credentials,
}

impl PeerProcess {
    /// Starts a peer on a free port; returns when it listens. Blocks.
    ///
    /// # Errors
    /// If the peer does not start.
    pub fn start(options: &PeerOptions<'_>) -> anyhow::Result<Self> {
        let credentials = options.partner.signer()?;
        let mut child = Command::new(options.program)
            .args(["peer", "--mode", &options.mode.name()])
            .args(["--pool", &options.pool.to_string()])
            .args(["--stock", &options.stock.to_string()])
            .args(["--product", options.product])
            .env(DATABASE_VARIABLE, options.database.to_url_lossy().as_str())
            .env(API_KEY_VARIABLE, &options.partner.api_key)
            .env(API_SECRET_VARIABLE, &options.partner.api_secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the peer")?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let Some(url) = line.trim().strip_prefix(GREETING) else {
            // The process has exited, or exits when the pipe closes.
            drop(child.stdin.take());
            child.wait()?;
            bail!("the peer exited before it listened; see its error output");
        };
        Ok(Self {
            url: url.to_owned(),
            credentials,
            child,
        })
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
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
