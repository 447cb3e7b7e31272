//! `lab consoles`: orders per second with and without open consoles, with many live actors.

use clap::Args;
use vouchsafe_lab::compare::turn::LoadSettings;
use vouchsafe_lab::consoles::{ConsolesPlan, measure_consoles};
use vouchsafe_load::report::publish;
use vouchsafe_load::traffic::pace::Pace;

use super::{TurnArgs, create_runtime, print_progress};

/// Connections of the load: close to capacity, so that the cost of consoles shows in the rate.
const CONNECTIONS: usize = 64;

#[derive(Args)]
pub(crate) struct ConsolesArgs {
    #[command(flatten)]
    turns: TurnArgs,
    /// Live actors before the first turn
    #[arg(long, default_value_t = 100_000)]
    actors: usize,
    /// Open consoles
    #[arg(long, default_value_t = 10)]
    consoles: usize,
}

/// Runs the measurement; returns whether every figure counts.
pub(crate) fn command(args: ConsolesArgs) -> anyhow::Result<bool> {
    let turns = &args.turns;
    let plan = ConsolesPlan {
        service: &turns.program()?,
        actors: args.actors,
        consoles: args.consoles,
        load: LoadSettings {
            pace: Pace::Closed {
                connections: CONNECTIONS,
            },
            warm_up_s: turns.warmup,
            seconds: turns.seconds,
        },
        rounds: turns.rounds,
        stock: turns.stock,
    };
    let report = create_runtime()?.block_on(measure_consoles(&plan, &mut print_progress))?;
    publish(&report, turns.json.as_deref())?;
    Ok(report.has_passed())
}
