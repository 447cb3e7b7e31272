//! `vouchsafe vendor-simulator`: a server that implements the vendor protocol, with faults on demand.
//!
//! It is not part of the service. It sells fake vouchers to clients that present its credential, never twice under a
//! key, and keeps its records in memory until it ends. The product id (`sim-FAULT`) or the settings select the faults
//! ([`faults`]).

pub mod faults;
mod ledger;
mod routes;
mod voucher;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::{App, HttpServer, web};
use anyhow::Context as _;
use clap::Args;
use secrecy::SecretString;
use vouchsafe_domain::clock::SystemClock;

use self::faults::FaultPlan;
use self::ledger::Ledger;
use crate::cli::ExitStatus;
use crate::cli::examples::examples;

/// Delayed responses are abandoned at shutdown.
const SHUTDOWN_TIMEOUT_S: u64 = 1;

#[derive(Debug, Clone, Args)]
#[command(after_help = after_help())]
pub struct SimulatorArgs {
    /// Listen address on loopback; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:9400", value_name = "ADDRESS", value_parser = loopback)]
    listen: SocketAddr,

    /// Faults of every purchase, or of the first N; see the list below. A product whose id is `sim-FAULT` has that
    /// fault as well
    #[arg(long, value_delimiter = ',', value_name = "FAULT[=N],…")]
    faults: Vec<FaultPlan>,

    /// Delay of a slow response in milliseconds
    #[arg(long, default_value_t = 2_000, value_name = "MS")]
    slow_ms: u64,

    /// Credential that clients must present
    #[arg(long, default_value = "simulator", value_name = "TEXT")]
    credential: SecretString,
}

fn after_help() -> String {
    const EXAMPLES: &str = examples![
        "vouchsafe vendor-simulator --listen 127.0.0.1:9400",
        "vouchsafe vendor-simulator --faults slow,out-of-stock=3 --slow-ms 5000",
    ];
    format!("{EXAMPLES}\n\n{}", faults::help_table())
}

struct Simulator {
    ledger: Mutex<Ledger>,
    credential: SecretString,
    slow: Duration,
    clock: SystemClock,
}

impl Simulator {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until the process is terminated.
#[must_use]
#[allow(clippy::print_stderr)] // nothing logs here
pub fn run(args: SimulatorArgs) -> ExitCode {
    match actix_web::rt::System::new().block_on(serve(args)) {
        Ok(()) => ExitStatus::Success.into(),
        Err(error) => {
            eprintln!("vouchsafe: {error:#}");
            ExitStatus::Failure.into()
        }
    }
}

async fn serve(args: SimulatorArgs) -> anyhow::Result<()> {
    let simulator = web::Data::new(Simulator {
        ledger: Mutex::new(Ledger::new(args.faults)),
        credential: args.credential,
        slow: Duration::from_millis(args.slow_ms),
        clock: SystemClock::new(),
    });
    let app = move || App::new().app_data(simulator.clone()).configure(routes::routes);
    let server = HttpServer::new(app)
        .workers(1)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S);
    let server = server
        .bind(args.listen)
        .with_context(|| format!("listen on {}", args.listen))?;
    for address in server.addrs() {
        // Stdout may be closed: the server runs all the same.
        drop(writeln!(
            std::io::stdout(),
            "The vendor simulator listens on http://{address}"
        ));
    }
    server.run().await.context("serve")
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "expected ADDRESS:PORT".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("expected a loopback address such as 127.0.0.1:9400".to_owned())
    }
}
