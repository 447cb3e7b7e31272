//! `load compare`: how does the service stand beside a peer and a floor?

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use vouchsafe_load::compare::rounds::{ComparisonPlan, compare};
use vouchsafe_load::compare::search::{PeerSearch, PeerSearchReport, PeerVariant, search};
use vouchsafe_load::compare::turn::LoadSettings;
use vouchsafe_load::peer::TransactionShape;
use vouchsafe_load::peer::postgres::{Durability, TemporaryPostgres};
use vouchsafe_load::peer::process::PeerProcess;
use vouchsafe_load::deployment::TestDeployment;

use super::search::{POOLS, SHAPES};
use super::turns::{FloorSizes, TurnArgs, publish, create_runtime, print_progress};

/// Most connections of a peer on the server of the service's stand.
const MOST_CONNECTIONS: u32 = 40;

/// Vouchers in each database while the best peer is looked for: more than any sells in these few seconds.
const SEARCH_STOCK: u64 = 60_000;

/// Arguments of `load compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The service's program; without it, the one beside this program.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How the peer puts a transaction to the database. Without it and `--pool`, the best peer is looked for first.
    #[arg(long, value_enum, requires = "pool")]
    shape: Option<TransactionShape>,
    /// Connections of the peer. The service's server takes 64 in all, its own among them.
    #[arg(long, requires = "shape", value_parser = clap::value_parser!(u32).range(2..=i64::from(MOST_CONNECTIONS)))]
    pool: Option<u32>,
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
    create_runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let service = match args.program {
            Some(given) => given,
            None => TestDeployment::default_program()?,
        };
        let loads = args.turns.loads();
        let peer = PeerProcess::default_program()?;
        let (variant, search) = match (args.shape, args.pool, loads.first()) {
            (Some(shape), Some(pool), _) => (PeerVariant { shape, pool }, None),
            (_, _, Some(load)) => {
                let found = look_for_the_best(&peer, directory.path(), *load).await?;
                let best = found.best_within(MOST_CONNECTIONS);
                (best.with_context(|| no_peer(&found))?, Some(found))
            }
            (_, _, None) => bail!("nothing is to be measured: give --connections"),
        };
        let comparison = ComparisonPlan {
            service: &service,
            peer: &peer,
            directory: directory.path(),
            variant,
            search,
            open: loads.first().copied().filter(|_| !args.closed_alone),
            loads,
            rounds: args.turns.rounds,
            stock: args.turns.stock,
            floor: args.floor.plan(1),
        };
        let report = compare(&comparison, &mut print_progress).await?;
        publish(&report, args.turns.json.as_deref())?;
        Ok(report.has_passed())
    })
}

/// Tries every peer once, for a few seconds, under the first of the loads.
async fn look_for_the_best(program: &Path, directory: &Path, load: LoadSettings) -> anyhow::Result<PeerSearchReport> {
    let server = TemporaryPostgres::start(Durability::Durable).await?;
    let short = LoadSettings {
        warm_up_s: 1,
        seconds: 3,
        ..load
    };
    let what = PeerSearch {
        program,
        directory,
        shapes: &SHAPES,
        pools: &POOLS,
        loads: &[short],
        rounds: 1,
        stock: SEARCH_STOCK,
    };
    search(&server, &what, &mut print_progress).await
}

/// Why there is no peer to compare with, and what to do.
fn no_peer(found: &PeerSearchReport) -> String {
    format!(
        "no peer with {MOST_CONNECTIONS} connections at most is as good as the best: name one with --shape and --pool\n{}",
        found.ranking()
    )
}
