//! The service's entry point.

use std::env;
use std::process::ExitCode;

use vouchsafe::postgres::{GUARD_SUBCOMMAND, run_guard};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == GUARD_SUBCOMMAND) {
        return run_guard(arguments);
    }
    ExitCode::SUCCESS
}
