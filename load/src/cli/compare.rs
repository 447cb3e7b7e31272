//! `load compare`: the service, the peer and the Postgres floor in turns.

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::compare::LoadSettings;
use vouchsafe_load::compare::rounds::{ComparisonPlan, compare};
use vouchsafe_load::report::{Verdict, check_output_file, publish};
use vouchsafe_load::traffic::pace::Pace;

use super::print_progress;
use super::scenario::service_program;

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Database connections of the peer. The default is the best of 4 to 64 on the machine of the published
    /// figures
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=40))]
    pool: u32,
    /// Connections, each with one order in flight; one series of turns per number
    #[arg(long, value_delimiter = ',', default_values_t = [256, 64], value_parser = clap::value_parser!(u16).range(1..))]
    connections: Vec<u16>,
    /// Compare whole lives of orders: placed, codes and order read once, three webhooks received. Without the
    /// floor and the open loop
    #[arg(long)]
    lives: bool,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measured seconds per turn
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Warm-up seconds per turn
    #[arg(long, default_value_t = 3)]
    warmup: u64,
    /// Initial vouchers per database; must suffice for all its turns
    #[arg(long, default_value_t = 1_500_000)]
    stock: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the comparison. It passes if every turn counts.
pub(crate) fn command(args: &CompareArgs) -> anyhow::Result<Verdict> {
    let service = service_program(args.program.as_ref())?;
    if let Some(json) = &args.json {
        check_output_file(json, &[])?;
    }
    let load = |connections: &u16| LoadSettings {
        pace: Pace::Closed {
            connections: usize::from(*connections),
        },
        warm_up_s: args.warmup,
        seconds: args.seconds,
        lives: args.lives,
    };
    let comparison = ComparisonPlan {
        service: &service,
        load: &std::env::current_exe()?,
        pool: args.pool,
        loads: &args.connections.iter().map(load).collect::<Vec<_>>(),
        rounds: args.rounds,
        stock: args.stock,
    };
    let report = compare(&comparison, &mut print_progress)?;
    publish(&report, args.json.as_deref())?;
    Ok(if report.has_passed() {
        Verdict::Passed
    } else {
        Verdict::AuditFailed
    })
}
