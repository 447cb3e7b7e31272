//! The program: reads its settings, then serves, or speaks to a service that runs.

use std::ffi::OsString;
use std::process::ExitCode;

use vouchsafe::cli::{Exit, Nearby};
use vouchsafe::postgres::{GUARD_SUBCOMMAND, run_guard};
use vouchsafe::settings::{Cli, Command, SettingsError};
use vouchsafe::vendor::simulator;
use vouchsafe::{cli, startup, telemetry};

/// A fifth less work for an order on its way from the socket to the lane than with the system's (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == GUARD_SUBCOMMAND) {
        return run_guard(arguments.into_iter().skip(2));
    }
    let settings = match Cli::read(&arguments) {
        Ok(settings) => settings,
        Err(SettingsError::Arguments(error)) => error.exit(),
        Err(error) => return complain(&error, Exit::Misused),
    };
    let nearby = Nearby::of(&settings.data_dir, settings.serve_settings());
    match settings.command {
        Some(Command::Client(command)) => cli::run(command, &nearby),
        Some(Command::VendorSimulator(args)) => simulator::run(args),
        Some(Command::Serve(_)) | None => {
            let serve = settings.serve_settings();
            match telemetry::start(serve) {
                Ok(telemetry) => {
                    let ended = startup::serve(serve, &settings.data_dir, &telemetry);
                    telemetry.finish();
                    ended
                }
                Err(error) => complain(&error, Exit::Misused),
            }
        }
    }
}

#[allow(clippy::print_stderr)] // nothing logs yet
fn complain(error: &dyn std::error::Error, exit: Exit) -> ExitCode {
    eprintln!("vouchsafe: {error}");
    exit.into()
}
