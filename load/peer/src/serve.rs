//! HTTP server of the peer. Each worker has a separate connection pool, so that no response waits for a socket of
//! another thread. Prints the address when ready.

use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::batcher::FloorBatcher;
use super::http::{OrderHandler, PeerState, routes};
use super::process::GREETING;
use super::request::PeerSku;
use super::schema::{self, PeerData, PeerPartner, PeerStock};
use super::{PeerMode, TransactionShape};

/// Timeout for acquiring a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Shutdown timeout, in seconds.
const SHUTDOWN_TIMEOUT_S: u64 = 1;

/// Session settings: index scans independent of the table sizes at planning time, durable commits, and a lock
/// timeout.
const SESSION_SETTINGS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
    ("synchronous_commit", "on"),
    ("lock_timeout", "5s"),
];

/// Settings of a peer.
#[derive(Clone)]
pub struct PeerSettings {
    /// Processing of orders.
    pub mode: PeerMode,
    pub shape: TransactionShape,
    /// Database connections, shared evenly by the workers.
    pub pool: u32,
    pub workers: u32,
    /// Listen address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Not needed for `signature-only`.
    pub database: Option<PgConnectOptions>,
    pub partner: PeerPartner,
    /// Stock inserted into an empty database.
    pub stock: Vec<PeerStock>,
    /// Whether the peer exits when standard input closes.
    pub until_stdin_closes: bool,
}

impl PeerSettings {
    fn database(&self) -> anyhow::Result<PgConnectOptions> {
        let database = self.database.clone();
        database.ok_or_else(|| anyhow::anyhow!("this mode needs --database"))
    }

    fn connections_per_worker(&self) -> u32 {
        (self.pool / self.workers).max(1)
    }
}

/// Serves until SIGTERM or SIGINT. Blocks.
///
/// # Errors
/// If the database cannot be reached or the address is in use.
pub fn serve(settings: &PeerSettings) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        match settings.mode {
            PeerMode::RowLocks => serve_row_locks(settings).await,
            PeerMode::Floor => serve_floor(settings).await,
            PeerMode::SignatureOnly => {
                let peer = PeerState::new(&static_peer_data(settings).1, OrderHandler::SignatureOnly);
                listen(settings, move || peer.clone()).await
            }
        }
    })
}

async fn serve_row_locks(settings: &PeerSettings) -> anyhow::Result<()> {
    let options = settings.database()?;
    let is_new = schema::create_tables(&options, PeerMode::RowLocks).await?;
    let mut connection = PgConnection::connect_with(&options).await?;
    if is_new {
        schema::insert_partner(&mut connection, &settings.partner).await?;
        for product in &settings.stock {
            schema::insert_vouchers(&mut connection, product).await?;
        }
    }
    let data = schema::load_peer_data(&mut connection).await?;
    connection.close().await?;
    let (options, connections_per_worker, shape) = (
        options.options(SESSION_SETTINGS),
        settings.connections_per_worker(),
        settings.shape,
    );
    let order_handler = move || OrderHandler::RowLocks {
        pool: create_pool(&options, connections_per_worker),
        shape,
    };
    listen(settings, move || PeerState::new(&data, order_handler())).await
}

fn create_pool(options: &PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A ping costs a round trip per order; the next use detects a broken connection anyway.
        .test_before_acquire(false)
        .connect_lazy_with(options.clone())
}

async fn serve_floor(settings: &PeerSettings) -> anyhow::Result<()> {
    let options = settings.database()?;
    schema::create_tables(&options, PeerMode::Floor).await?;
    let (partner_id, data) = static_peer_data(settings);
    let batcher = FloorBatcher::start(&options.options(SESSION_SETTINGS), partner_id).await?;
    let peer = PeerState::new(&data, OrderHandler::Floor(batcher));
    listen(settings, move || peer.clone()).await
}

/// Partner and SKUs for modes without tables.
fn static_peer_data(settings: &PeerSettings) -> (Uuid, PeerData) {
    let (partner_id, mut data) = (Uuid::now_v7(), PeerData::default());
    let PeerPartner {
        api_key, api_secret, ..
    } = &settings.partner;
    data.credentials.insert(
        Sha256::digest(api_key).into(),
        Sha256::digest(api_secret).into(),
        partner_id,
    );
    for (sku_id, sku) in (1..).zip(&settings.stock) {
        let currency = "USD".to_owned();
        data.catalogue.insert(
            sku.product_id.clone(),
            sku.denomination,
            PeerSku { sku_id, currency },
        );
    }
    (partner_id, data)
}

async fn listen(
    settings: &PeerSettings,
    peer: impl Fn() -> PeerState + Send + Clone + 'static,
) -> anyhow::Result<()> {
    let app = move || App::new().app_data(web::Data::new(peer())).configure(routes);
    let server = HttpServer::new(app)
        .workers(usize::try_from(settings.workers)?)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S)
        .bind(settings.listen)?;
    for address in server.addrs() {
        writeln!(std::io::stdout().lock(), "{GREETING}http://{address}/api/v1")?;
    }
    let server = server.run();
    if settings.until_stdin_closes {
        stop_with_stdin(server.handle())?;
    }
    Ok(server.await?)
}

/// Stops the server when standard input closes.
fn stop_with_stdin(server: ServerHandle) -> std::io::Result<()> {
    let thread = thread::Builder::new().name("stdin".to_owned());
    let wait_and_stop = move || {
        // An error also means that the input is closed.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // The call stops the server; the future only reports completion.
        drop(server.stop(true));
    };
    thread.spawn(wait_and_stop).map(drop)
}
