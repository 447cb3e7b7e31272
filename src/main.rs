//! Entry point: runs the service or a client command.

use std::ffi::OsString;
use std::process::ExitCode;

use vouchsafe::program::{Cli, Command, SettingsError};
use vouchsafe::{memory_protection, startup, vendor_simulator};
use vouchsafe_cli::{self as cli, ExitStatus, LocalService};
use vouchsafe_private_postgres::{GUARD_SUBCOMMAND, run_guard};

/// Saves a fifth of an order's CPU time compared with the system allocator (docs/decisions/0007-mimalloc.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == GUARD_SUBCOMMAND) {
        return run_guard(arguments.into_iter().skip(2));
    }
    // Before any secret is read. The private Postgres inherits the limit.
    if let Err(error) = memory_protection::forbid_dumps() {
        print_warnings(&[format!("cannot forbid core dumps of this process: {error}")]);
    }
    let settings = match Cli::read(&arguments) {
        Ok(settings) => settings,
        Err(SettingsError::Arguments(error)) => error.exit(),
        Err(error) => return exit_with_error(&error, ExitStatus::Usage),
    };
    print_warnings(&settings.warnings);
    let serve = settings.serve_settings();
    let local_service = LocalService::of(
        &settings.data_dir,
        serve.partner_listener(),
        serve.operator_listener(),
        serve.console_url(),
        serve.environment,
    );
    match settings.command {
        Some(Command::Client(command)) => cli::run(command, settings.json, &local_service, Cli::commands),
        Some(Command::VendorSimulator(args)) => vendor_simulator::run(args),
        Some(Command::Serve(_)) | None => match vouchsafe_telemetry::start(serve.telemetry()) {
            Ok(telemetry) => {
                let ended = startup::serve(serve, &settings.data_dir, &telemetry);
                telemetry.finish();
                ended
            }
            Err(error) => exit_with_error(&error, ExitStatus::Usage),
        },
    }
}

#[allow(clippy::print_stderr)] // commands do not log
fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        eprintln!("vouchsafe: warning: {warning}");
    }
}

#[allow(clippy::print_stderr)] // logging is not set up yet
fn exit_with_error(error: &dyn std::error::Error, exit: ExitStatus) -> ExitCode {
    eprintln!("vouchsafe: {error}");
    exit.into()
}
