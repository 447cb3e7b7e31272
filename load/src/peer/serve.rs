//! HTTP server of the peer. Each worker has a separate connection pool, so that no response waits for a
//! socket of another thread. Prints the address when ready, and exits when standard input closes.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::PeerMode;
use super::authentication::Partner;
use super::batcher::FloorBatcher;
use super::http::{OrderHandler, PeerState, routes};
use super::outbox::Outbox;
use super::process::{GREETING, PeerCredentials};
use super::schema;

/// The service has as many on the machine of the published figures.
const WORKERS: u8 = 2;
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
pub struct PeerSettings {
    pub mode: PeerMode,
    /// Database connections, shared evenly by the workers.
    pub pool: u32,
    pub database: PgConnectOptions,
    pub partner: PeerCredentials,
    pub product_id: String,
    /// Vouchers inserted into an empty database.
    pub stock: i64,
}

/// Serves until standard input closes. Blocks.
///
/// # Errors
/// If the database cannot be reached or no port is free.
pub fn serve(settings: &PeerSettings) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        let options = settings.database.clone().options(SESSION_SETTINGS);
        let is_new = schema::create_tables(&settings.database, settings.mode).await?;
        match settings.mode {
            PeerMode::RowLocks => {
                let mut connection = PgConnection::connect_with(&settings.database).await?;
                if is_new {
                    schema::insert_partner(&mut connection).await?;
                    schema::insert_vouchers(&mut connection, settings.stock).await?;
                }
                let state = worker_state(settings, schema::read_partner_id(&mut connection).await?)?;
                connection.close().await?;
                let connections = (settings.pool / u32::from(WORKERS)).max(1);
                listen(move || state(OrderHandler::RowLocks(create_pool(&options, connections)))).await
            }
            PeerMode::Floor => {
                let partner_id = Uuid::now_v7();
                let state = worker_state(settings, partner_id)?;
                let batcher = FloorBatcher::start(&options, partner_id).await?;
                listen(move || state(OrderHandler::Floor(batcher.clone()))).await
            }
        }
    })
}

fn worker_state(
    settings: &PeerSettings,
    partner_id: Uuid,
) -> anyhow::Result<impl Fn(OrderHandler) -> PeerState + Clone + Send + use<>> {
    let partner = Partner::new(partner_id, settings.partner.clone())?;
    let product_id: Arc<str> = settings.product_id.as_str().into();
    let outbox = Outbox::new(
        settings.database.clone().options(SESSION_SETTINGS),
        settings.partner.signer()?,
    );
    Ok(move |order_handler| PeerState {
        partner: partner.clone(),
        outbox: Arc::clone(&outbox),
        product_id: Arc::clone(&product_id),
        order_handler,
    })
}

fn create_pool(options: &PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A ping costs a round trip per order; the next use detects a broken connection anyway.
        .test_before_acquire(false)
        .connect_lazy_with(options.clone())
}

async fn listen(state: impl Fn() -> PeerState + Send + Clone + 'static) -> anyhow::Result<()> {
    let app = move || App::new().app_data(web::Data::new(state())).configure(routes);
    let server = HttpServer::new(app)
        .workers(usize::from(WORKERS))
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S)
        .bind((Ipv4Addr::LOCALHOST, 0))?;
    for address in server.addrs() {
        writeln!(std::io::stdout().lock(), "{GREETING}http://{address}/api/v1")?;
    }
    let server = server.run();
    stop_with_stdin(server.handle())?;
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
