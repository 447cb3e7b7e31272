//! An empty database of our own, as the service's migrations leave it, on a private Postgres that ends with this process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe::postgres::{DataDir, Durability, PrivatePostgres};
use vouchsafe::store::schema;

/// Waits until this process has ended and the guard has stopped the server, then removes what they leave.
const SWEEP: &str = r#"cat >/dev/null
for try in $(seq 100); do
    test -e "$1/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf "$1""#;

struct Server {
    postgres: PrivatePostgres,
    /// Ends when this process does, however it ends: its standard input is a pipe from here.
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
        let place = place();
        let sweeper = Command::new("sh")
            .args(["-c", SWEEP, "sh"])
            .arg(&place)
            .stdin(Stdio::piped())
            .spawn();
        let data_dir = DataDir::open(&place.join("data")).unwrap();
        let executable = Path::new(env!("CARGO_BIN_EXE_vouchsafe"));
        let postgres = PrivatePostgres::start(&data_dir, executable, durability).unwrap();
        Self {
            postgres,
            _sweeper: sweeper.unwrap(),
        }
    }
}

/// A directory that the user of Postgres may pass through, too.
fn place() -> PathBuf {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("vs")
        .permissions(mode)
        .tempdir()
        .unwrap()
        .keep()
}

/// The database.
pub(crate) struct Database {
    name: String,
    postgres: &'static PrivatePostgres,
}

impl Database {
    /// On a server that may lose what it acknowledged. Needs a runtime of several threads: it blocks.
    pub(crate) async fn create() -> Self {
        Self::create_on(Durability::ForTests).await
    }

    /// On a server of this kind. Needs a runtime of several threads: it blocks.
    pub(crate) async fn create_on(durability: Durability) -> Self {
        let database = Self::create_empty(durability).await;
        schema::migrate(&database.options()).await.unwrap();
        database
    }

    /// Without a schema. Needs a runtime of several threads: it blocks.
    #[allow(clippy::unused_async, reason = "said like the others")]
    pub(crate) async fn create_empty(durability: Durability) -> Self {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let postgres = tokio::task::block_in_place(|| {
            let postgres = &Server::of(durability).postgres;
            postgres.create_database(&name, None).unwrap();
            postgres
        });
        Self { name, postgres }
    }

    /// How the service reaches it.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.postgres.connect_options().database(&self.name)
    }

    /// How the superuser reaches it.
    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.postgres.superuser_options().database(&self.name)
    }

    /// As the service.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options()).await.unwrap()
    }

    /// Removes it with all who are connected.
    pub(crate) async fn remove(self) {
        let mut connection = PgConnection::connect_with(&self.postgres.superuser_options())
            .await
            .unwrap();
        let remove = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(remove)).await.unwrap();
    }
}
