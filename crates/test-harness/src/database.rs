//! Test databases with the service's schema, on a private Postgres that stops with this process.

use std::fs::{self, File};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::{Mutex, OnceCell};
use vouchsafe_private_postgres::{Durability, PrivatePostgres};
use vouchsafe_store::schema;

use crate::private_server::PrivateServer;

static SERVER: OnceLock<PrivateServer> = OnceLock::new();
static DURABLE_SERVER: OnceLock<PrivateServer> = OnceLock::new();
/// Database that is migrated once and copied for each test.
const TEMPLATE: &str = "migrated";

const ROLES_SQL: &str = include_str!("../../../deploy/postgres/roles.sql");

/// The role that serves in production.
const SERVICE_ROLE: &str = "vouchsafe_service";
const SERVICE_PASSWORD: &str = "service";

static ROLES: Mutex<()> = Mutex::const_new(());
static MIGRATION: OnceCell<()> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(1);

fn server(durability: Durability) -> &'static PrivateServer {
    let server = match durability {
        Durability::Durable => &DURABLE_SERVER,
        Durability::ForTests => &SERVER,
    };
    server.get_or_init(|| PrivateServer::start(durability))
}

fn next_name() -> String {
    format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed))
}

pub struct Database {
    name: String,
    postgres: &'static PrivatePostgres,
}

impl Database {
    /// Creates a database on a server without durability. Blocks: needs a multi-threaded runtime.
    pub async fn create() -> Self {
        Self::create_on(Durability::ForTests).await
    }

    /// Creates a database on a server with this durability. Blocks: needs a multi-threaded runtime.
    pub async fn create_on(durability: Durability) -> Self {
        if durability == Durability::Durable {
            let database = Self::create_empty(durability);
            database.create_roles().await;
            schema::migrate(&database.options(), || ()).await.unwrap();
            return database;
        }
        let migrate_template = async || {
            let template = Self::named(TEMPLATE.to_owned(), durability, None);
            template.create_roles().await;
            schema::migrate(&template.options(), || ()).await.unwrap();
        };
        MIGRATION.get_or_init(migrate_template).await;
        Self::named(next_name(), durability, Some(TEMPLATE))
    }

    /// Creates a database without a schema. Blocks: needs a multi-threaded runtime.
    pub fn create_empty(durability: Durability) -> Self {
        Self::named(next_name(), durability, None)
    }

    /// Creates a copy of this database, to which nothing may be connected.
    pub fn copy(&self) -> Self {
        let name = next_name();
        tokio::task::block_in_place(|| self.postgres.create_database(&name, Some(&self.name)).unwrap());
        Self {
            name,
            postgres: self.postgres,
        }
    }

    fn named(name: String, durability: Durability, template: Option<&str>) -> Self {
        let postgres = tokio::task::block_in_place(|| {
            let postgres = &server(durability).postgres;
            postgres.create_database(&name, template).unwrap();
            postgres
        });
        Self { name, postgres }
    }

    /// Creates the roles of a production database, as `docs/operations/install.md` describes.
    pub async fn create_roles(&self) {
        // Statements about one role fail when they run at once.
        let _guard = ROLES.lock().await;
        let mut connection = PgConnection::connect_with(&self.superuser_options())
            .await
            .unwrap();
        connection.execute(ROLES_SQL).await.unwrap();
        let password = format!("ALTER ROLE {SERVICE_ROLE} PASSWORD '{SERVICE_PASSWORD}'");
        connection.execute(AssertSqlSafe(password)).await.unwrap();
    }

    /// Connection options of the role that serves in production. Only of a database with a schema.
    pub fn service_options(&self) -> PgConnectOptions {
        let options = self.options().username(SERVICE_ROLE);
        options.password(SERVICE_PASSWORD)
    }

    /// Connection options of the owner.
    pub fn options(&self) -> PgConnectOptions {
        self.postgres.connect_options().database(&self.name)
    }

    /// Connection options of the superuser.
    pub fn superuser_options(&self) -> PgConnectOptions {
        self.postgres.superuser_options().database(&self.name)
    }

    /// Connects as the owner.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options()).await.unwrap()
    }

    /// Content of the server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(&server(Durability::ForTests).log).unwrap()
    }

    /// Truncates the log of the server without durability, which appends to it.
    pub fn truncate_log() {
        if let Some(server) = SERVER.get() {
            File::create(&server.log).unwrap();
        }
    }

    /// Drops the database and disconnects its clients.
    pub async fn remove(self) {
        let mut connection = PgConnection::connect_with(&self.postgres.superuser_options())
            .await
            .unwrap();
        let remove = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(remove)).await.unwrap();
    }
}
