//! `load nodes`: what do two nodes give on one database, and does the model say so?

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::nodes::{Plan, measure};
use vouchsafe_load::stand::Stand;

use super::at_least_one;
use super::turns::{publish, runtime, say};

/// Arguments of `load nodes`.
#[derive(Args)]
pub(crate) struct NodesArgs {
    /// The service's program; without it, the one beside this program.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Connections of the first turn of one node.
    #[arg(long, default_value_t = 64, value_parser = at_least_one)]
    few: usize,
    /// Connections of the second turn of one node, and of two nodes together.
    #[arg(long, default_value_t = 256, value_parser = at_least_one)]
    many: usize,
    /// Generator threads of each node's partner.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
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
    runtime()?.block_on(async {
        let service = match &args.program {
            Some(given) => given.clone(),
            None => Stand::program_beside()?,
        };
        let plan = Plan {
            service: &service,
            few: args.few,
            many: args.many,
            threads: args.threads,
            warm_up_s: args.warmup,
            seconds: args.seconds,
            rounds: args.rounds,
            stock: args.stock,
        };
        let report = measure(&plan, &mut say).await?;
        publish(&report, args.json.as_deref())?;
        Ok(report.passed())
    })
}
