//! Test databases with the service's schema, on a private Postgres that stops with this process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_private_postgres::{DataDir, Durability, PrivatePostgres};
use vouchsafe_store::schema;

/// Waits until this process has exited and the guard has stopped the server, then removes the directory.
const SWEEP: &str = r#"cat >/dev/null
for try in $(seq 100); do
    test -e "$1/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf "$1""#;

struct Server {
    postgres: PrivatePostgres,
    /// Its standard input is a pipe from this process, so that it runs however this process exits.
    _sweeper: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();
static DURABLE_SERVER: OnceLock<Server> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(1);

impl Server {
    fn of(durability: Durability) -> &'static Self {
        match durability {
            Durability::Durable => DURABLE_SERVER.get_or_init(|| Self::start(durability)),
            Durability::ForTests => SERVER.get_or_init(|| Self::start(durability)),
        }
    }

    fn start(durability: Durability) -> Self {
        let directory = directory();
        let cleanup = Command::new("sh")
            .args(["-c", SWEEP, "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .spawn();
        let data_dir = DataDir::open(&directory.join("data")).unwrap();
        let executable = Path::new(env!("CARGO_BIN_EXE_vouchsafe"));
        let postgres = PrivatePostgres::start(&data_dir, executable, durability).unwrap();
        Self {
            postgres,
            _sweeper: cleanup.unwrap(),
        }
    }
}

/// Creates a directory that the Postgres user can traverse.
fn directory() -> PathBuf {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("vs")
        .permissions(mode)
        .tempdir()
        .unwrap()
        .keep()
}

pub(crate) struct Database {
    name: String,
    postgres: &'static PrivatePostgres,
}

impl Database {
    /// Creates a database on a server without durability. Blocks: needs a multi-threaded runtime.
    pub(crate) async fn create() -> Self {
        Self::create_on(Durability::ForTests).await
    }

    /// Creates a database on a server with this durability. Blocks: needs a multi-threaded runtime.
    pub(crate) async fn create_on(durability: Durability) -> Self {
        let database = Self::create_empty(durability).await;
        schema::migrate(&database.options()).await.unwrap();
        database
    }

    /// Creates a database without a schema. Blocks: needs a multi-threaded runtime.
    #[allow(clippy::unused_async, reason = "same signature as the other constructors")]
    pub(crate) async fn create_empty(durability: Durability) -> Self {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let postgres = tokio::task::block_in_place(|| {
            let postgres = &Server::of(durability).postgres;
            postgres.create_database(&name, None).unwrap();
            postgres
        });
        Self { name, postgres }
    }

    /// Connection options of the service's role.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.postgres.connect_options().database(&self.name)
    }

    /// Connection options of the superuser.
    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.postgres.superuser_options().database(&self.name)
    }

    /// Connects as the service's role.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options()).await.unwrap()
    }

    /// Drops the database and disconnects its clients.
    pub(crate) async fn remove(self) {
        let mut connection = PgConnection::connect_with(&self.postgres.superuser_options())
            .await
            .unwrap();
        let remove = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(remove)).await.unwrap();
    }
}
