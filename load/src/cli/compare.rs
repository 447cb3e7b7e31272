//! `load compare`: comparison of service, peer and Postgres floor.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use vouchsafe_load::compare::rounds::{ComparisonPlan, compare};
use vouchsafe_load::compare::search::{PeerSearch, PeerSearchReport, PeerVariant, search};
use vouchsafe_load::compare::turn::LoadSettings;
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_peer::TransactionShape;
use vouchsafe_peer::postgres::{Durability, TemporaryPostgres};
use vouchsafe_peer::process::PeerProcess;

use super::search::{POOLS, SHAPES};
use super::turns::{FloorSizes, TurnArgs, create_runtime, print_progress, publish};

/// Maximum connections of a peer on the server of the deployment.
const MAX_PEER_CONNECTIONS: u32 = 40;

/// Vouchers per database during the search: more than a peer sells in these few seconds.
const SEARCH_STOCK: u64 = 60_000;

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Transaction shape of the peer [default: a short search selects shape and pool]
    #[arg(long, value_enum, requires = "pool")]
    shape: Option<TransactionShape>,
    /// Database connections of the peer. The service's server allows 64 in total, including its own
    #[arg(long, requires = "shape", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_PEER_CONNECTIONS)))]
    pool: Option<u32>,
    /// Skip the open loop at half of the peer's best rate
    #[arg(long)]
    closed_alone: bool,
    #[command(flatten)]
    turns: TurnArgs,
    #[command(flatten)]
    floor: FloorSizes,
}

/// Runs the comparison; returns whether every figure counts.
pub(crate) fn command(args: CompareArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let service = match args.program {
            Some(program) => program,
            None => TestDeployment::default_program()?,
        };
        let loads = args.turns.loads();
        let peer = PeerProcess::default_program()?;
        let (variant, search) = match (args.shape, args.pool, loads.first()) {
            (Some(shape), Some(pool), _) => (PeerVariant { shape, pool }, None),
            (_, _, Some(load)) => {
                let search_report = find_best_peer(&peer, directory.path(), *load).await?;
                let best = search_report.best_within(MAX_PEER_CONNECTIONS);
                (
                    best.with_context(|| no_peer_message(&search_report))?,
                    Some(search_report),
                )
            }
            (_, _, None) => bail!("nothing to measure; set --connections"),
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

/// Measures every peer once for a few seconds under the first load.
async fn find_best_peer(
    program: &Path,
    directory: &Path,
    load: LoadSettings,
) -> anyhow::Result<PeerSearchReport> {
    let server = TemporaryPostgres::start(Durability::Durable).await?;
    let short_load = LoadSettings {
        warm_up_s: 1,
        seconds: 3,
        ..load
    };
    let search_plan = PeerSearch {
        program,
        directory,
        shapes: &SHAPES,
        pools: &POOLS,
        loads: &[short_load],
        rounds: 1,
        stock: SEARCH_STOCK,
    };
    search(&server, &search_plan, &mut print_progress).await
}

/// Error text for a search without a usable peer.
fn no_peer_message(search_report: &PeerSearchReport) -> String {
    format!(
        "no peer with at most {MAX_PEER_CONNECTIONS} connections is within 10 % of the best; select one with --shape and --pool\n{}",
        search_report.ranking()
    )
}
