//! `load search`: search for the best peer on this machine.

use clap::Args;
use vouchsafe_load::compare::search::{PeerSearch, search};
use vouchsafe_peer::TransactionShape;
use vouchsafe_peer::postgres::{Durability, TemporaryPostgres};
use vouchsafe_peer::process::PeerProcess;

use super::turns::{TurnArgs, create_runtime, print_progress, publish};

pub(super) const POOLS: [u32; 5] = [4, 8, 16, 32, 64];

pub(super) const SHAPES: [TransactionShape; 2] = [TransactionShape::Statements, TransactionShape::Function];

#[derive(Args)]
pub(crate) struct SearchArgs {
    /// Pool sizes of the peer
    #[arg(long, value_delimiter = ',', default_values_t = POOLS)]
    pools: Vec<u32>,
    /// Transaction shapes of the peer
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = SHAPES)]
    shapes: Vec<TransactionShape>,
    #[command(flatten)]
    turns: TurnArgs,
}

/// Runs the search on a temporary Postgres; returns whether any figure counts.
pub(crate) fn command(args: &SearchArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let server = TemporaryPostgres::start(Durability::Durable).await?;
        let plan = PeerSearch {
            program: &PeerProcess::default_program()?,
            directory: directory.path(),
            shapes: &args.shapes,
            pools: &args.pools,
            loads: &args.turns.loads(),
            rounds: args.turns.rounds,
            stock: args.turns.stock,
        };
        let report = search(&server, &plan, &mut print_progress).await?;
        publish(&report, args.turns.json.as_deref())?;
        Ok(report.best.is_some())
    })
}
