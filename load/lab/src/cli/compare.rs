//! `lab compare`: comparison of service, peer and Postgres floor.

use clap::Args;
use vouchsafe_lab::compare::rounds::{ComparisonPlan, compare};
use vouchsafe_lab::compare::turn::LoadSettings;
use vouchsafe_load::report::publish;
use vouchsafe_load::traffic::pace::Pace;

use super::{TurnArgs, create_runtime, print_progress};

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Database connections of the peer. The default is the best of 4 to 64 on the machine of the published figures
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=40))]
    pool: u32,
    /// Connections, each with one order in flight; one series of turns per number
    #[arg(long, value_delimiter = ',', default_values_t = [256, 64], value_parser = clap::value_parser!(u16).range(1..))]
    connections: Vec<u16>,
    #[command(flatten)]
    turns: TurnArgs,
}

/// Runs the comparison; returns whether every figure counts.
pub(crate) fn command(args: CompareArgs) -> anyhow::Result<bool> {
    let turns = &args.turns;
    let load = |connections: &u16| LoadSettings {
        pace: Pace::Closed {
            connections: usize::from(*connections),
        },
        warm_up_s: turns.warmup,
        seconds: turns.seconds,
    };
    let loads: Vec<_> = args.connections.iter().map(load).collect();
    let comparison = ComparisonPlan {
        service: &turns.program()?,
        lab: &std::env::current_exe()?,
        pool: args.pool,
        loads: &loads,
        rounds: turns.rounds,
        stock: turns.stock,
    };
    let report = create_runtime()?.block_on(compare(&comparison, &mut print_progress))?;
    publish(&report, turns.json.as_deref())?;
    Ok(report.has_passed())
}
