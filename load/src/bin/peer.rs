//! The command line of the peer: what the service is compared with, served on an address of its own.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_load::peer::process::DATABASE_VARIABLE;
use vouchsafe_load::peer::request::parse_minor_units;
use vouchsafe_load::peer::schema::PeerStock;
use vouchsafe_load::peer::serve::{PeerSettings, serve};
use vouchsafe_load::peer::{PeerMode, TransactionShape, credentials};

/// As the service: neither has an advantage by it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sells vouchers over the same wire as the service, with one transaction per order and row locks; or does less.
#[derive(Parser)]
#[command(name = "peer", version)]
struct Cli {
    /// What becomes of an order.
    #[arg(long, value_enum, default_value = "row-locks")]
    mode: PeerMode,
    /// How a transaction is put to the database (row-locks alone).
    #[arg(long, value_enum, default_value = "function")]
    shape: TransactionShape,
    /// Connections to the database, shared evenly by the workers (row-locks alone; the floor has two).
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pool: u32,
    /// Threads that serve.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: u32,
    /// Where it listens; port 0 is any free one.
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Its database; an empty one is furnished.
    #[arg(long, env = DATABASE_VARIABLE, hide_env_values = true, value_name = "URL")]
    database: Option<PgConnectOptions>,
    /// JSON file with partner_id, api_key and api_secret; written with new ones where there is none.
    #[arg(long, default_value = "peer-partner.json")]
    credentials: PathBuf,
    /// Product to sell.
    #[arg(long, default_value = "sbx-instant")]
    product: String,
    /// Its denomination.
    #[arg(long, default_value = "25")]
    denomination: String,
    /// Vouchers to put into an empty database.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(i64).range(0..))]
    stock: i64,
    /// End when standard input does, as a program that is started by another.
    #[arg(long)]
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if the terminal is gone.
            let _ = writeln!(std::io::stderr(), "peer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let for_sale = PeerStock {
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
        stock: vec![for_sale],
        until_stdin_closes: cli.until_stdin_closes,
    })
}
