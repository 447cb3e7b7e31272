//! `vouchsafe vendor-simulator`: a server that implements the vendor protocol, with faults on demand.
//!
//! It is not part of the service. It sells fake vouchers to clients that present its credential, never twice
//! under a key, and keeps its records in memory until it ends. The product id (`sim-FAULT`) or the settings
//! select the faults ([`faults`]).

pub mod faults;
mod ledger;
mod routes;
mod voucher;

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::{App, HttpServer, web};
use anyhow::Context as _;
use parking_lot::{Mutex, MutexGuard};
use secrecy::SecretString;
use vouchsafe_domain::clock::SystemClock;

use self::faults::FaultPlan;
use self::ledger::Ledger;

/// Delayed responses are abandoned at shutdown.
const SHUTDOWN_TIMEOUT_S: u64 = 1;

/// Settings of a simulator.
pub struct SimulatorSettings {
    /// Listen address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Faults of every purchase, or of the first N.
    pub faults: Vec<FaultPlan>,
    /// Delay of a slow response.
    pub slow: Duration,
    /// Credential that clients must present.
    pub credential: SecretString,
}

struct Simulator {
    ledger: Mutex<Ledger>,
    credential: SecretString,
    slow: Duration,
    clock: SystemClock,
}

impl Simulator {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }
}

/// Serves until the process is terminated.
///
/// # Errors
/// If the address cannot be bound or the server fails.
pub async fn serve(settings: SimulatorSettings) -> anyhow::Result<()> {
    let simulator = web::Data::new(Simulator {
        ledger: Mutex::new(Ledger::new(settings.faults)),
        credential: settings.credential,
        slow: settings.slow,
        clock: SystemClock::new(),
    });
    let app = move || App::new().app_data(simulator.clone()).configure(routes::routes);
    let server = HttpServer::new(app)
        .workers(1)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S);
    let server = server
        .bind(settings.listen)
        .with_context(|| format!("listen on {}", settings.listen))?;
    for address in server.addrs() {
        // Stdout may be closed: the server runs all the same.
        drop(writeln!(
            std::io::stdout(),
            "The vendor simulator listens on http://{address}"
        ));
    }
    server.run().await.context("serve")
}
