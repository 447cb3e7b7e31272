//! `load nodes`: throughput of two nodes on one database, with a model.

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::nodes::{NodesPlan, measure_nodes};

use super::parse_positive;
use super::turns::{create_runtime, print_progress, publish};

#[derive(Args)]
pub(crate) struct NodesArgs {
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Connections of the first turn (one node)
    #[arg(long, default_value_t = 64, value_parser = parse_positive)]
    few: usize,
    /// Connections of the second turn (one node), and of both nodes together
    #[arg(long, default_value_t = 256, value_parser = parse_positive)]
    many: usize,
    /// Generator threads per node
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    threads: usize,
    /// Measured seconds per turn
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Warm-up seconds per turn
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Initial vouchers; must suffice for all turns
    #[arg(long, default_value_t = 1_500_000)]
    stock: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the measurement; returns whether every figure counts.
pub(crate) fn command(args: &NodesArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let service = match &args.program {
            Some(program) => program.clone(),
            None => TestDeployment::default_program()?,
        };
        let plan = NodesPlan {
            service: &service,
            few: args.few,
            many: args.many,
            threads: args.threads,
            warm_up_s: args.warmup,
            seconds: args.seconds,
            rounds: args.rounds,
            stock: args.stock,
        };
        let report = measure_nodes(&plan, &mut print_progress).await?;
        publish(&report, args.json.as_deref())?;
        Ok(report.has_passed())
    })
}
