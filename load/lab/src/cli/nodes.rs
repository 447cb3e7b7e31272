//! `lab nodes`: throughput of two nodes on one database, with a model.

use clap::Args;
use vouchsafe_lab::nodes::{NodesPlan, measure_nodes};
use vouchsafe_load::report::publish;

use super::{TurnArgs, create_runtime, print_progress};

/// Connections of the turn with small batches, and of the turns with large ones.
const FEW: usize = 64;
const MANY: usize = 256;

#[derive(Args)]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    turns: TurnArgs,
}

/// Runs the measurement; returns whether every figure counts.
pub(crate) fn command(args: NodesArgs) -> anyhow::Result<bool> {
    let turns = &args.turns;
    let plan = NodesPlan {
        service: &turns.program()?,
        few: FEW,
        many: MANY,
        warm_up_s: turns.warmup,
        seconds: turns.seconds,
        rounds: turns.rounds,
        stock: turns.stock,
    };
    let report = create_runtime()?.block_on(measure_nodes(&plan, &mut print_progress))?;
    publish(&report, turns.json.as_deref())?;
    Ok(report.has_passed())
}
