//! Test databases with the service's schema, on a private Postgres that stops with this process.

#[path = "private_server.rs"]
mod private_server;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_private_postgres::{Durability, PrivatePostgres};
use vouchsafe_store::schema;

use self::private_server::PrivateServer;

static SERVER: OnceLock<PrivateServer> = OnceLock::new();
static DURABLE_SERVER: OnceLock<PrivateServer> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(1);

fn server(durability: Durability) -> &'static PrivateServer {
    let server = match durability {
        Durability::Durable => &DURABLE_SERVER,
        Durability::ForTests => &SERVER,
    };
    server.get_or_init(|| PrivateServer::start(durability))
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
            let postgres = &server(durability).postgres;
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
