//! How is a peer served? Workers with a pool of their own each, so that no answer waits for another thread's socket; the
//! address is said once everything is ready.

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
use super::http::{PeerState, OrderHandler, routes};
use super::process::GREETING;
use super::request::PeerSku;
use super::schema::{self, PeerPartner, PeerStock, PeerData};
use super::{PeerMode, TransactionShape};

/// How long an order may wait for a connection.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);
/// How long connections are kept after the last answer. Seconds.
const LINGER_S: u64 = 1;

/// Settings of each connection: plans that stay index probes whatever the tables' sizes were when they were made, every
/// commit on disk, and no wait without an end.
const SESSION: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
    ("synchronous_commit", "on"),
    ("lock_timeout", "5s"),
];

/// What a peer is started with.
#[derive(Clone)]
pub struct PeerSettings {
    /// What it does with an order.
    pub mode: PeerMode,
    /// How it puts a transaction to the database.
    pub shape: TransactionShape,
    /// Connections to the database, shared evenly by the workers.
    pub pool: u32,
    pub workers: u32,
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// Its database; none is needed where nothing is written.
    pub database: Option<PgConnectOptions>,
    pub partner: PeerPartner,
    /// What is put on sale in an empty database.
    pub stock: Vec<PeerStock>,
    /// Whether it ends when its standard input does.
    pub until_stdin_closes: bool,
}

impl PeerSettings {
    fn database(&self) -> anyhow::Result<PgConnectOptions> {
        let given = self.database.clone();
        given.ok_or_else(|| anyhow::anyhow!("this mode writes: it needs --database"))
    }

    /// How many connections each worker has.
    fn share(&self) -> u32 {
        (self.pool / self.workers).max(1)
    }
}

/// Serves until SIGTERM or SIGINT. Blocks.
///
/// # Errors
/// When the database or the address cannot be had.
pub fn serve(settings: &PeerSettings) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        match settings.mode {
            PeerMode::RowLocks => row_locks(settings).await,
            PeerMode::Floor => floor(settings).await,
            PeerMode::SignatureOnly => {
                let peer = PeerState::new(&known_without_database(settings).1, OrderHandler::SignatureOnly);
                listen(settings, move || peer.clone()).await
            }
        }
    })
}

async fn row_locks(settings: &PeerSettings) -> anyhow::Result<()> {
    let options = settings.database()?;
    let new = schema::create_tables(&options, PeerMode::RowLocks).await?;
    let mut connection = PgConnection::connect_with(&options).await?;
    if new {
        schema::insert_partner(&mut connection, &settings.partner).await?;
        for for_sale in &settings.stock {
            schema::insert_vouchers(&mut connection, for_sale).await?;
        }
    }
    let known = schema::load_peer_data(&mut connection).await?;
    connection.close().await?;
    let (options, share, shape) = (options.options(SESSION), settings.share(), settings.shape);
    let seller = move || OrderHandler::RowLocks {
        pool: pool(&options, share),
        shape,
    };
    listen(settings, move || PeerState::new(&known, seller())).await
}

fn pool(options: &PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_WITHIN)
        // A round trip per order that says nothing: a connection that broke is found out by its next use.
        .test_before_acquire(false)
        .connect_lazy_with(options.clone())
}

async fn floor(settings: &PeerSettings) -> anyhow::Result<()> {
    let options = settings.database()?;
    schema::create_tables(&options, PeerMode::Floor).await?;
    let (partner_id, known) = known_without_database(settings);
    let batcher = FloorBatcher::start(&options.options(SESSION), partner_id).await?;
    let peer = PeerState::new(&known, OrderHandler::Floor(batcher));
    listen(settings, move || peer.clone()).await
}

/// What is known where no table says it.
fn known_without_database(settings: &PeerSettings) -> (Uuid, PeerData) {
    let (partner_id, mut known) = (Uuid::now_v7(), PeerData::default());
    let PeerPartner {
        api_key, api_secret, ..
    } = &settings.partner;
    known.credentials.insert(
        Sha256::digest(api_key).into(),
        Sha256::digest(api_secret).into(),
        partner_id,
    );
    for (sku_id, sku) in (1..).zip(&settings.stock) {
        let currency = "USD".to_owned();
        known
            .catalogue
            .insert(sku.product_id.clone(), sku.denomination, PeerSku { sku_id, currency });
    }
    (partner_id, known)
}

async fn listen(settings: &PeerSettings, peer: impl Fn() -> PeerState + Send + Clone + 'static) -> anyhow::Result<()> {
    let app = move || App::new().app_data(web::Data::new(peer())).configure(routes);
    let server = HttpServer::new(app)
        .workers(usize::try_from(settings.workers)?)
        .shutdown_timeout(LINGER_S)
        .bind(settings.listen)?;
    for address in server.addrs() {
        writeln!(std::io::stdout().lock(), "{GREETING}http://{address}/api/v1")?;
    }
    let server = server.run();
    if settings.until_stdin_closes {
        end_with_stdin(server.handle())?;
    }
    Ok(server.await?)
}

/// Ends the server with whoever holds the other end of the pipe.
fn end_with_stdin(server: ServerHandle) -> std::io::Result<()> {
    let waiting = thread::Builder::new().name("stdin".to_owned());
    let watch = move || {
        // An error is an end, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // The server acts on the call; the future only tells when it has done so.
        drop(server.stop(true));
    };
    waiting.spawn(watch).map(drop)
}
