//! `vouchsafe vendor-simulator`: a vendor to try the vendor protocol on, with faults on demand.
//!
//! It is a server of its own, not a part of the service. It sells fake vouchers to whoever shows its credential, never
//! twice under a key, and keeps its books in memory until it ends. The product decides what goes wrong, `sim-FAULT`, or
//! the settings do for all products ([`faults`]).

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
use vouchsafe_actors::domain::clock::SystemClock;

use self::faults::FaultPlan;
use self::ledger::Ledger;
use crate::cli::ExitStatus;
use crate::cli::examples::examples;

/// How long connections are kept after the simulator was told to end: answers that are held back are not waited for.
const SHUTDOWN_TIMEOUT_S: u64 = 1;

/// Arguments of `vouchsafe vendor-simulator`.
#[derive(Debug, Clone, Args)]
#[command(after_help = after_help())]
pub struct SimulatorArgs {
    /// Where it listens, on this machine alone. Port 0 is any that is free.
    #[arg(long, default_value = "127.0.0.1:9400", value_name = "ADDRESS", value_parser = loopback)]
    listen: SocketAddr,

    /// What goes wrong with every purchase, or with the first N; the faults are listed below. A product whose id is
    /// `sim-FAULT` has that fault as well.
    #[arg(long, value_delimiter = ',', value_name = "FAULT[=N],…")]
    faults: Vec<FaultPlan>,

    /// How long a slow answer takes. Milliseconds.
    #[arg(long, default_value_t = 2_000, value_name = "MS")]
    slow_ms: u64,

    /// The credential that it sells to.
    #[arg(long, default_value = "simulator", value_name = "TEXT")]
    credential: SecretString,
}

/// The end of the command's help.
fn after_help() -> String {
    const EXAMPLES: &str = examples![
        "vouchsafe vendor-simulator --listen 127.0.0.1:9400",
        "vouchsafe vendor-simulator --faults slow,out-of-stock=3 --slow-ms 5000",
    ];
    format!("{EXAMPLES}\n\n{}", faults::help_table())
}

/// What every route is given.
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

/// Sells until it is told to end.
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
    let server = HttpServer::new(app).workers(1).shutdown_timeout(SHUTDOWN_TIMEOUT_S);
    let server = server
        .bind(args.listen)
        .with_context(|| format!("listen on {}", args.listen))?;
    for address in server.addrs() {
        // Nobody may be reading; it sells all the same.
        drop(writeln!(
            std::io::stdout(),
            "The vendor simulator sells on http://{address}"
        ));
    }
    server.run().await.context("serve")
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "expected ADDRESS:PORT".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("the simulator listens on this machine alone, such as on 127.0.0.1:9400".to_owned())
    }
}
