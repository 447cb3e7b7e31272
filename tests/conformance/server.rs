//! The real Postgres under the suite: one private server for all cases, and a fresh database for each.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use vouchsafe::postgres::{DataDir, Durability, PrivatePostgres};
use vouchsafe::store::schema;

/// Migrated once, and copied for each case.
const TEMPLATE: &str = "migrated";

/// What a database has from its first start on: its environment, and the keys of its codes.
const FIRST_ROWS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO data_keys (purpose, wrapped) VALUES ('codes', ''), ('blind_index', '');";

/// Waits until the tests are over and the server has been stopped by its guard, then removes what they leave.
const SWEEP: &str = r#"cat >/dev/null
for try in $(seq 100); do
    test -e "$1/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf "$1""#;

struct Server {
    postgres: PrivatePostgres,
    log: PathBuf,
    /// Ends when this process does, however it ends: its standard input is a pipe from here.
    _sweeper: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(1);

impl Server {
    fn start() -> Self {
        let place = tempfile::Builder::new()
            .prefix("vs")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()
            .unwrap()
            .keep();
        let sweeper = sweep(&place).unwrap();
        let data_dir = DataDir::open(&place.join("data")).unwrap();
        let executable = Path::new(env!("CARGO_BIN_EXE_vouchsafe"));
        let postgres = PrivatePostgres::start(&data_dir, executable, Durability::ForTests).unwrap();
        postgres.create_database(TEMPLATE, None).unwrap();
        migrate(&postgres.connect_options().database(TEMPLATE));
        Self {
            postgres,
            log: place.join("data/postgres.log"),
            _sweeper: sweeper,
        }
    }
}

fn sweep(place: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", SWEEP, "sh"])
        .arg(place)
        .stdin(Stdio::piped())
        .spawn()
}

/// On a thread of its own, since the caller may be inside a runtime.
fn migrate(template: &PgConnectOptions) {
    let migrated = std::thread::scope(|scope| {
        let migrate = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                schema::bring_up_to_date(template).await?;
                let mut connection = PgConnection::connect_with(template).await?;
                connection.execute(FIRST_ROWS).await?;
                connection.close().await
            })
        };
        scope.spawn(migrate).join()
    });
    migrated.unwrap().unwrap();
}

/// Takes everything out of the server's log. The server appends.
pub(crate) fn empty_log() {
    if let Some(server) = SERVER.get() {
        File::create(&server.log).unwrap();
    }
}

/// A database of its own, as the service's migrations leave it.
pub(crate) struct Database {
    name: String,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let server = tokio::task::block_in_place(|| SERVER.get_or_init(Server::start));
        let name = format!("case_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let owner = server.postgres.connect_options();
        // Files are copied ten times as fast as they are logged, where nothing waits for the disk.
        let create = format!(
            "CREATE DATABASE {name} OWNER {} TEMPLATE {TEMPLATE} STRATEGY file_copy",
            owner.get_username()
        );
        let database = Self { name };
        database.as_superuser(create).await;
        database
    }

    /// How the service reaches it.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.server().connect_options().database(&self.name)
    }

    /// How the superuser reaches it.
    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.server().superuser_options().database(&self.name)
    }

    /// What the server has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&SERVER.get().expect("a database has a server").log).unwrap()
    }

    /// Removes it with all who are connected.
    pub(crate) async fn remove(self) {
        self.as_superuser(format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await;
    }

    async fn as_superuser(&self, statement: String) {
        let options = self.server().superuser_options();
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        connection.execute(AssertSqlSafe(statement)).await.unwrap();
        connection.close().await.unwrap();
    }

    fn server(&self) -> &'static PrivatePostgres {
        &SERVER.get().expect("a database has a server").postgres
    }
}
