//! Harness of the private Postgres tests: data directories, a service process to kill, polling.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;
use vouchsafe_private_postgres::{DataDir, Durability, PrivatePostgres};
use vouchsafe_test_harness::{WAIT_TIMEOUT, program};

/// Environment variable with the data directory for a [`Holder`].
pub(crate) const HOLDER_VARIABLE: &str = "VOUCHSAFE_TEST_HOLD";

/// A data directory that is removed with its test.
pub(crate) struct TestDataDir {
    temp: TempDir,
    subdirectory: &'static str,
}

impl TestDataDir {
    /// Below a directory that every user can traverse.
    pub(crate) fn new() -> Self {
        Self::with_mode("data", 0o755)
    }

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

    /// Starts or adopts a server without fsync.
    pub(crate) fn start(&self) -> PrivatePostgres {
        start(&self.open(), Durability::ForTests)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path().join("postgres.log")).unwrap_or_default()
    }
}

pub(crate) fn start(data_dir: &DataDir, durability: Durability) -> PrivatePostgres {
    PrivatePostgres::start(data_dir, program(), durability).unwrap_or_else(|error| {
        let log = fs::read_to_string(data_dir.path().join("postgres.log")).unwrap_or_default();
        panic!("{error}\n{log}")
    })
}

pub(crate) fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    vouchsafe_test_harness::wait_until(description, WAIT_TIMEOUT, || condition().then_some(()));
}

/// Guard, server and backends.
pub(crate) fn processes_of(data_dir: &TestDataDir) -> Vec<String> {
    vouchsafe_test_harness::processes_of(&data_dir.path())
}

/// Runs a query as the service's role and returns one text.
pub(crate) fn query_text(options: &PgConnectOptions, sql: &'static str) -> Result<String, sqlx::Error> {
    block_on(async {
        let mut connection = PgConnection::connect_with(options).await?;
        let response = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(response)
    })
}

pub(crate) fn execute(options: &PgConnectOptions, sql: &'static str) -> Result<(), sqlx::Error> {
    block_on(async {
        let mut connection = PgConnection::connect_with(options).await?;
        connection.execute(sql).await?;
        connection.close().await
    })
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

pub(crate) fn is_answering(postgres: &PrivatePostgres) -> bool {
    query_text(&postgres.connect_options(), "SELECT 'yes'").is_ok_and(|response| response == "yes")
}

/// A service process that only holds its data directory: this binary, running the test `holder`.
pub(crate) struct Holder(pub(crate) Child);

impl Holder {
    pub(crate) fn start(data_dir: &TestDataDir) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "private_postgres::holder", "--nocapture"])
            .env(HOLDER_VARIABLE, data_dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let holder = Self(child);
        let ready = data_dir.path().join("held");
        wait_until("the holder to be ready", || ready.exists());
        fs::remove_file(ready).unwrap();
        holder
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
