//! Command line of the peer, the reference implementation that the service is compared with.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_peer::process::DATABASE_VARIABLE;
use vouchsafe_peer::request::parse_minor_units;
use vouchsafe_peer::schema::PeerStock;
use vouchsafe_peer::serve::{PeerSettings, serve};
use vouchsafe_peer::{PeerMode, TransactionShape, credentials};

/// Same allocator as the service, so that neither has an advantage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serve the order API of the service with one transaction per order and row locks, or a reduced variant of it
#[derive(Parser)]
#[command(name = "peer", version)]
struct Cli {
    /// Processing of orders
    #[arg(long, value_enum, default_value = "row-locks")]
    mode: PeerMode,
    /// Form of the database transaction (row-locks only)
    #[arg(long, value_enum, default_value = "function")]
    shape: TransactionShape,
    /// Database connections, shared evenly by the workers (row-locks only; the floor has two)
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pool: u32,
    /// Worker threads
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: u32,
    /// Listen address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Database URL; an empty database is initialized
    #[arg(long, env = DATABASE_VARIABLE, hide_env_values = true, value_name = "URL")]
    database: Option<PgConnectOptions>,
    /// JSON file with partner_id, api_key and api_secret; created if it does not exist
    #[arg(long, default_value = "peer-partner.json")]
    credentials: PathBuf,
    /// Product to sell
    #[arg(long, default_value = "sbx-instant")]
    product: String,
    /// Denomination of the product
    #[arg(long, default_value = "25")]
    denomination: String,
    /// Vouchers inserted into an empty database
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(i64).range(0..))]
    stock: i64,
    /// Exit when standard input closes, for use as a child process
    #[arg(long)]
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The terminal may be gone; there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "peer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let stock = PeerStock {
        product_id: cli.product,
        denomination: parse_minor_units(&cli.denomination)?,
        vouchers: cli.stock,
    };
    serve(&PeerSettings {
        mode: cli.mode,
        shape: cli.shape,
        pool: cli.pool,
        workers: cli.workers,
        listen: cli.listen,
        database: cli.database,
        partner: credentials::read_or_create(&cli.credentials)?,
        stock: vec![stock],
        until_stdin_closes: cli.until_stdin_closes,
    })
}
