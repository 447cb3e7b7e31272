//! `load search`: which peer is the best one on this machine?

use clap::Args;
use vouchsafe_load::compare::search::{Search, search};
use vouchsafe_load::peer::Shape;
use vouchsafe_load::peer::postgres::{Durability, Server};
use vouchsafe_load::peer::process::Process;

use super::turns::{TurnArgs, publish, runtime, say};

/// Sizes of the peer's pool.
pub(super) const POOLS: [u32; 5] = [4, 8, 16, 32, 64];

/// How a transaction is put to the database.
pub(super) const SHAPES: [Shape; 2] = [Shape::Statements, Shape::Function];

/// Arguments of `load search`.
#[derive(Args)]
pub(crate) struct SearchArgs {
    /// Sizes of the peer's pool, each in turn.
    #[arg(long, value_delimiter = ',', default_values_t = POOLS)]
    pools: Vec<u32>,
    /// How a transaction is put to the database, each in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = SHAPES)]
    shapes: Vec<Shape>,
    #[command(flatten)]
    turns: TurnArgs,
}

/// Searches on a Postgres of its own and reports; says whether anything counts.
pub(crate) fn command(args: &SearchArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let server = Server::start(Durability::Durable).await?;
        let what = Search {
            program: &Process::program_beside()?,
            directory: directory.path(),
            shapes: &args.shapes,
            pools: &args.pools,
            loads: &args.turns.loads(),
            rounds: args.turns.rounds,
            stock: args.turns.stock,
        };
        let report = search(&server, &what, &mut say).await?;
        publish(&report, args.turns.json.as_deref())?;
        Ok(report.best.is_some())
    })
}
