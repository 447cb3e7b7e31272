//! `load compare`: how does the service stand beside a peer and a floor?

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::compare::rounds::{Comparison, compare};
use vouchsafe_load::compare::search::Variant;
use vouchsafe_load::peer::Shape;
use vouchsafe_load::peer::process::Process;
use vouchsafe_load::stand::Stand;

use super::turns::{FloorSizes, TurnArgs, publish, runtime, say};

/// Arguments of `load compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The service's program; without it, the one beside this program.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How the peer puts a transaction to the database: what `load search` found.
    #[arg(long, value_enum, default_value = "function")]
    shape: Shape,
    /// Connections of the peer. The service's server takes 64 in all, its own among them.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=40))]
    pool: u32,
    /// Leave out the open loop at half of the peer's best.
    #[arg(long)]
    closed_alone: bool,
    #[command(flatten)]
    turns: TurnArgs,
    #[command(flatten)]
    floor: FloorSizes,
}

/// Compares and reports; says whether every figure counts.
pub(crate) fn command(args: CompareArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let service = match args.program {
            Some(given) => given,
            None => Stand::program_beside()?,
        };
        let loads = args.turns.loads();
        let comparison = Comparison {
            service: &service,
            peer: &Process::program_beside()?,
            directory: directory.path(),
            variant: Variant {
                shape: args.shape,
                pool: args.pool,
            },
            open: loads.first().copied().filter(|_| !args.closed_alone),
            loads,
            rounds: args.turns.rounds,
            stock: args.turns.stock,
            floor: args.floor.search(1),
        };
        let report = compare(&comparison, &mut say).await?;
        publish(&report, args.turns.json.as_deref())?;
        Ok(report.passed())
    })
}
