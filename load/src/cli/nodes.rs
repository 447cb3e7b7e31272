//! `load nodes`: what do two nodes give on one database, and does the model say so?

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::nodes::{NodesPlan, measure_nodes};
use vouchsafe_load::deployment::TestDeployment;

use super::parse_positive;
use super::turns::{publish, create_runtime, print_progress};

/// Arguments of `load nodes`.
#[derive(Args)]
pub(crate) struct NodesArgs {
    /// The service's program; without it, the one beside this program.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Connections of the first turn of one node.
    #[arg(long, default_value_t = 64, value_parser = parse_positive)]
    few: usize,
    /// Connections of the second turn of one node, and of two nodes together.
    #[arg(long, default_value_t = 256, value_parser = parse_positive)]
    many: usize,
    /// Generator threads of each node's partner.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    threads: usize,
    /// Seconds of each turn that are measured.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seconds of each turn before anything is measured.
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Vouchers at the start: enough for what is sold in all turns.
    #[arg(long, default_value_t = 1_500_000)]
    stock: u64,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and reports; says whether every figure counts.
pub(crate) fn command(args: &NodesArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let service = match &args.program {
            Some(given) => given.clone(),
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
