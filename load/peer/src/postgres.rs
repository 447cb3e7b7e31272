//! Temporary Postgres server in a temporary directory, with the settings of the service's private server. It ends
//! with the process that started it.
//!
//! Rule: it is durable unless requested otherwise, and listens on a unix socket only.

use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Directory of the server programs on Debian-based systems, where they are not on the PATH.
const DISTRIBUTION_DIR: &str = "/usr/lib/postgresql";
/// Accounts for the server if this process runs as root, which Postgres refuses.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
/// Superuser role of the server.
const ROLE: &str = "peer";
/// Deadline for the start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Settings of the service's private server, with more connections for the largest pool of a search.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "max_connections=128",
    "shared_buffers=256MB",
    "max_wal_size=2GB",
    "wal_compression=on",
    "jit=off",
    "log_min_messages=fatal",
];

/// Runs the server until the pipe to this shell closes, however the owner ends, then removes the directory.
const SUPERVISOR_SCRIPT: &str = r#"trap '' INT
home=$1; shift
"$@" </dev/null >"$home/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT "$server"
wait "$server"
exec rm -rf "$home""#;

/// Durability of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Commits survive a crash of the machine. Required for every figure.
    Durable,
    /// Commits may be lost in a crash. For tests only.
    ForTests,
}

/// Reason for a failed start.
#[derive(Debug, thiserror::Error)]
pub enum TemporaryPostgresError {
    /// `initdb` and `postgres` were not found.
    #[error(
        "PostgreSQL server programs are neither on the PATH nor below {DISTRIBUTION_DIR}; install PostgreSQL"
    )]
    NoPrograms,
    /// Running as root, without an account for the server.
    #[error("Postgres cannot run as root, and there is neither a user `postgres` nor `nobody`")]
    NoAccount,
    #[error("initdb: {0}")]
    Initdb(String),
    /// The server did not accept connections in time.
    #[error("the server did not become ready; its log:\n{0}")]
    NotReady(String),
    #[error("cannot start a server")]
    Io(#[from] io::Error),
}

/// A running server; dropping it stops the server.
pub struct TemporaryPostgres {
    home: PathBuf,
    supervisor: Child,
}

impl TemporaryPostgres {
    /// Initializes and starts a server. Takes about a second.
    ///
    /// # Errors
    /// [`TemporaryPostgresError`] if the programs are missing or the server does not start.
    pub async fn start(durability: Durability) -> Result<Self, TemporaryPostgresError> {
        let account = find_account()?;
        let programs = find_programs().ok_or(TemporaryPostgresError::NoPrograms)?;
        let home = create_home(account)?;
        initdb(&programs, &home, account)?;
        let supervisor = spawn_supervised(&programs, &home, account, durability)?;
        let server = Self { home, supervisor };
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match PgConnection::connect_with(&server.options()).await {
                Ok(connection) => {
                    // The server accepts connections; errors of closing this one do not matter.
                    let _ = connection.close().await;
                    return Ok(server);
                }
                Err(_) if Instant::now() < deadline => tokio::time::sleep(POLL_INTERVAL).await,
                Err(_) => return Err(TemporaryPostgresError::NotReady(server.log())),
            }
        }
    }

    /// Connection options of the superuser for the database `postgres`.
    #[must_use]
    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.home)
            .username(ROLE)
            .database("postgres")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }
}

impl Drop for TemporaryPostgres {
    fn drop(&mut self) {
        // Closing the pipe stops the shell. A failed cleanup cannot be reported from here.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Uid and gid for the server if this process runs as root.
type Account = Option<(u32, u32)>;

fn find_account() -> Result<Account, TemporaryPostgresError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let id = |flag: &str, name: &str| {
        let output = Command::new("id").args([flag, name]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    let account = ACCOUNTS
        .iter()
        .find_map(|name| Some((id("-u", name)?, id("-g", name)?)));
    account.map(Some).ok_or(TemporaryPostgresError::NoAccount)
}

/// Finds the directory of `initdb` and `postgres`, the newest version first.
fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut distribution_dirs: Vec<PathBuf> = std::fs::read_dir(DISTRIBUTION_DIR)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    distribution_dirs.sort_unstable_by(|left, right| right.cmp(left));
    std::env::split_paths(&path)
        .chain(distribution_dirs)
        .find(|directory| directory.join("initdb").is_file() && directory.join("postgres").is_file())
}

/// Creates a directory owned by the server's account. The shell removes it.
fn create_home(account: Account) -> io::Result<PathBuf> {
    let mode = std::fs::Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new()
        .prefix("vs-peer-")
        .permissions(mode)
        .tempdir()?;
    if let Some((uid, gid)) = account {
        lchown(directory.path(), Some(uid), Some(gid))?;
    }
    Ok(directory.keep())
}

fn command(program: impl AsRef<std::ffi::OsStr>, home: &Path, account: Account) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home).env("LC_ALL", "C").stdin(Stdio::null());
    if let Some((uid, gid)) = account {
        command.uid(uid).gid(gid);
    }
    command
}

fn initdb(programs: &Path, home: &Path, account: Account) -> Result<(), TemporaryPostgresError> {
    let output = command(programs.join("initdb"), home, account)
        .arg("--pgdata")
        .arg(home.join("data"))
        // Only the owner can traverse the directory of the socket.
        .args([
            "--auth=trust",
            "--username",
            ROLE,
            "--encoding=UTF8",
            "--locale=C",
        ])
        .args(["--data-checksums", "--no-sync"])
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(TemporaryPostgresError::Initdb(
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn spawn_supervised(
    programs: &Path,
    home: &Path,
    account: Account,
    durability: Durability,
) -> io::Result<Child> {
    let mut supervisor = command("sh", home, account);
    supervisor
        .args(["-c", SUPERVISOR_SCRIPT, "sh"])
        .arg(home)
        .arg(programs.join("postgres"))
        .arg("-D")
        .arg(home.join("data"))
        .arg("-k")
        .arg(home);
    for setting in SETTINGS {
        supervisor.args(["-c", setting]);
    }
    let on_or_off = match durability {
        Durability::Durable => "on",
        Durability::ForTests => "off",
    };
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        supervisor.arg("-c").arg(format!("{name}={on_or_off}"));
    }
    supervisor.stdin(Stdio::piped()).spawn()
}
