//! Where does a peer measure? On a Postgres of its own: a server made in a temporary directory, with the settings that the
//! service gives to its private one, and gone with whoever started it.
//!
//! Rule: it is durable unless it is asked not to be, and it answers on a unix socket alone.

use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Where distributions put the server's programs, when they are not on the PATH.
const HIDING_PLACE: &str = "/usr/lib/postgresql";
/// Whom the server runs as when root starts it, which it refuses itself.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
/// The role that owns it.
const ROLE: &str = "peer";
/// How long it may take to answer.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(20);

/// What the service's private server has, too; but more connections, for the widest pool of a search.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "max_connections=128",
    "shared_buffers=256MB",
    "max_wal_size=2GB",
    "wal_compression=on",
    "jit=off",
    "log_min_messages=fatal",
];

/// Runs the server until the pipe to this shell closes, however its owner ends; then removes what it leaves.
const KEEPER: &str = r#"trap '' INT
home=$1; shift
"$@" </dev/null >"$home/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT "$server"
wait "$server"
exec rm -rf "$home""#;

/// Whether a commit survives a crash of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As a service needs it, and every figure.
    Durable,
    /// For tests of something else.
    ForTests,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum TemporaryPostgresError {
    /// No `initdb` and `postgres` were found.
    #[error("PostgreSQL's server programs were found neither on the PATH nor below {HIDING_PLACE}")]
    NoPrograms,
    /// Root found nobody to run it as.
    #[error("root cannot run Postgres, and there is no user to run it as")]
    NoAccount,
    #[error("initdb: {0}")]
    Initdb(String),
    /// It did not answer in time.
    #[error("the server was not ready; its log:\n{0}")]
    NotReady(String),
    #[error("starting a server")]
    Io(#[from] io::Error),
}

/// A running server; it ends when dropped.
pub struct TemporaryPostgres {
    home: PathBuf,
    keeper: Child,
}

impl TemporaryPostgres {
    /// Makes and starts one. Takes a second.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn start(durability: Durability) -> Result<Self, TemporaryPostgresError> {
        let account = account()?;
        let programs = programs().ok_or(TemporaryPostgresError::NoPrograms)?;
        let home = home(account)?;
        initdb(&programs, &home, account)?;
        let keeper = keep(&programs, &home, account, durability)?;
        let server = Self { home, keeper };
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match PgConnection::connect_with(&server.options()).await {
                Ok(connection) => {
                    // It answered: what happens to this connection now does not matter.
                    let _ = connection.close().await;
                    return Ok(server);
                }
                Err(_) if Instant::now() < deadline => tokio::time::sleep(POLL).await,
                Err(_) => return Err(TemporaryPostgresError::NotReady(server.log())),
            }
        }
    }

    /// Its owner, in the database that is always there.
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
        // The keeper acts on the pipe's end, and there is nobody to tell of what it could not remove.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Uid and gid to run as, where this process may not do it itself.
type Account = Option<(u32, u32)>;

fn account() -> Result<Account, TemporaryPostgresError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let id = |flag: &str, name: &str| {
        let output = Command::new("id").args([flag, name]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    let found = ACCOUNTS
        .iter()
        .find_map(|name| Some((id("-u", name)?, id("-g", name)?)));
    found.map(Some).ok_or(TemporaryPostgresError::NoAccount)
}

/// The directory of `initdb` and `postgres`, the newest version first.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut hidden: Vec<PathBuf> = std::fs::read_dir(HIDING_PLACE)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    hidden.sort_unstable_by(|left, right| right.cmp(left));
    std::env::split_paths(&path)
        .chain(hidden)
        .find(|directory| directory.join("initdb").is_file() && directory.join("postgres").is_file())
}

/// A directory that belongs to whoever runs the server. The keeper removes it.
fn home(account: Account) -> io::Result<PathBuf> {
    let mode = std::fs::Permissions::from_mode(0o700);
    let made = tempfile::Builder::new()
        .prefix("vs-peer-")
        .permissions(mode)
        .tempdir()?;
    if let Some((uid, gid)) = account {
        lchown(made.path(), Some(uid), Some(gid))?;
    }
    Ok(made.keep())
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
        // Nobody but its user can pass through the directory of its socket.
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

fn keep(programs: &Path, home: &Path, account: Account, durability: Durability) -> io::Result<Child> {
    let mut keeper = command("sh", home, account);
    keeper
        .args(["-c", KEEPER, "sh"])
        .arg(home)
        .arg(programs.join("postgres"))
        .arg("-D")
        .arg(home.join("data"))
        .arg("-k")
        .arg(home);
    for setting in SETTINGS {
        keeper.args(["-c", setting]);
    }
    let on_or_off = match durability {
        Durability::Durable => "on",
        Durability::ForTests => "off",
    };
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        keeper.arg("-c").arg(format!("{name}={on_or_off}"));
    }
    keeper.stdin(Stdio::piped()).spawn()
}
