//! `vouchsafe vendor-simulator`: runs the vendor simulator.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_procurement::simulator::faults::{self, FaultPlan};
use vouchsafe_procurement::simulator::{SimulatorSettings, serve};

use vouchsafe_cli::{ExitStatus, examples};

#[derive(Debug, Clone, Args)]
#[command(after_help = after_help())]
pub struct SimulatorArgs {
    /// Listen address on loopback; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:9400", value_name = "ADDRESS", value_parser = loopback)]
    listen: SocketAddr,

    /// Faults of every purchase, or of the first N; see the list below. A product whose id is `sim-FAULT` has
    /// that fault as well
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

/// Runs until the process is terminated.
#[must_use]
#[allow(clippy::print_stderr)] // nothing logs here
pub fn run(args: SimulatorArgs) -> ExitCode {
    let settings = SimulatorSettings {
        listen: args.listen,
        faults: args.faults,
        slow: Duration::from_millis(args.slow_ms),
        credential: args.credential,
    };
    match actix_web::rt::System::new().block_on(serve(settings)) {
        Ok(()) => ExitStatus::Success.into(),
        Err(error) => {
            eprintln!("vouchsafe: {}", describe_chain(&*error));
            ExitStatus::Failure.into()
        }
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "expected ADDRESS:PORT".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("expected a loopback address such as 127.0.0.1:9400".to_owned())
    }
}
