//! What the tests of the private Postgres stand on: a place to keep one, a service to kill, and patience.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;
use vouchsafe::postgres::{DataDir, Durability, PrivatePostgres};

pub(crate) const EXECUTABLE: &str = env!("CARGO_BIN_EXE_vouchsafe");

/// Tells this binary, started again, which data directory to hold.
pub(crate) const HOLDER_VARIABLE: &str = "VOUCHSAFE_TEST_HOLD";

/// What the design promises for a service that was killed.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// For everything that must happen and has no promise of its own.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A data directory that goes with its test.
pub(crate) struct TestDataDir {
    temp: TempDir,
    subdirectory: &'static str,
}

impl TestDataDir {
    /// Below a directory that everybody may pass through.
    pub(crate) fn new() -> Self {
        Self::with_mode("data", 0o755)
    }

    /// Below a directory with this mode.
    pub(crate) fn with_mode(subdirectory: &'static str, mode: u32) -> Self {
        let mode = Permissions::from_mode(mode);
        Self {
            temp: tempfile::Builder::new()
                .prefix("vs")
                .permissions(mode)
                .tempdir()
                .unwrap(),
            subdirectory,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.temp.path().join(self.subdirectory)
    }

    pub(crate) fn open(&self) -> DataDir {
        DataDir::open(&self.path()).unwrap()
    }

    /// Starts, or takes over, without waiting for the disk.
    pub(crate) fn start(&self) -> PrivatePostgres {
        start(&self.open(), Durability::ForTests)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path().join("postgres.log")).unwrap_or_default()
    }
}

pub(crate) fn start(data_dir: &DataDir, durability: Durability) -> PrivatePostgres {
    PrivatePostgres::start(data_dir, Path::new(EXECUTABLE), durability).unwrap_or_else(|error| {
        let log = fs::read_to_string(data_dir.path().join("postgres.log")).unwrap_or_default();
        panic!("{error}\n{log}")
    })
}

pub(crate) fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
    begin.elapsed()
}

pub(crate) fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Every process whose command line names the directory: guard, server, and whatever the server calls itself.
pub(crate) fn processes_of(place: &TestDataDir) -> Vec<String> {
    let output = Command::new("ps")
        .args(["-A", "-ww", "-o", "pid=", "-o", "command="])
        .output()
        .unwrap();
    let name = place.path().display().to_string();
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    listing
        .lines()
        .filter(|line| line.contains(&name))
        .map(str::to_owned)
        .collect()
}

/// One answer as text, as the service's role in the service's database.
pub(crate) fn query_text(options: &PgConnectOptions, sql: &'static str) -> Result<String, sqlx::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect_with(options).await?;
        let answer = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(answer)
    })
}

/// A statement without an answer.
pub(crate) fn execute(options: &PgConnectOptions, sql: &'static str) -> Result<(), sqlx::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect_with(options).await?;
        connection.execute(sql).await?;
        connection.close().await
    })
}

pub(crate) fn is_answering(postgres: &PrivatePostgres) -> bool {
    query_text(&postgres.connect_options(), "SELECT 'yes'").is_ok_and(|answer| answer == "yes")
}

/// A service that does nothing but live: this binary, running the test `holder`.
pub(crate) struct Holder(pub(crate) Child);

impl Holder {
    pub(crate) fn start(place: &TestDataDir) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder", "--nocapture"])
            .env(HOLDER_VARIABLE, place.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let holder = Self(child);
        let ready = place.path().join("held");
        wait_until("the holder is ready", WAIT_TIMEOUT, || ready.exists());
        fs::remove_file(ready).unwrap();
        holder
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
