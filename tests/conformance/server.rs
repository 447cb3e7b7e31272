//! Private Postgres server of the suite, with a new database for each case.

use std::fs;
use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;
use tokio::task::block_in_place;
use vouchsafe_private_postgres::{Durability, PrivatePostgres};
use vouchsafe_store::schema;

use vouchsafe_test_harness::PrivateServer;

/// Template database, migrated once and copied for each case.
const TEMPLATE: &str = "migrated";

/// Rows that the service inserts at its first start: environment and data keys.
const INITIAL_ROWS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO data_keys (purpose, wrapped) VALUES ('codes', ''), ('blind_index', '');";

static SERVER: OnceCell<PrivateServer> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(1);

async fn start() -> PrivateServer {
    let server = block_in_place(|| {
        let server = PrivateServer::start(Durability::ForTests);
        server.postgres.create_database(TEMPLATE, None).unwrap();
        server
    });
    let template = server.postgres.connect_options().database(TEMPLATE);
    schema::migrate(&template).await.unwrap();
    let mut connection = PgConnection::connect_with(&template).await.unwrap();
    connection.execute(INITIAL_ROWS).await.unwrap();
    connection.close().await.unwrap();
    server
}

fn started() -> &'static PrivateServer {
    SERVER.get().expect("the server is started before its databases")
}

/// Truncates the server's log, to which the server appends.
pub(crate) fn truncate_log() {
    if let Some(server) = SERVER.get() {
        File::create(&server.log).unwrap();
    }
}

/// A migrated database.
pub(crate) struct Database {
    name: String,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let server = SERVER.get_or_init(start).await;
        let name = format!("case_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let owner = server.postgres.connect_options();
        // Without fsync, a file copy is ten times as fast as WAL logging.
        let create = format!(
            "CREATE DATABASE {name} OWNER {} TEMPLATE {TEMPLATE} STRATEGY file_copy",
            owner.get_username()
        );
        let database = Self { name };
        database.as_superuser(create).await;
        database
    }

    /// Connection options of the service.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.server().connect_options().database(&self.name)
    }

    /// Connection options of the superuser.
    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.server().superuser_options().database(&self.name)
    }

    /// Content of the server's log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&started().log).unwrap()
    }

    /// Drops the database and its connections.
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
        &started().postgres
    }
}
