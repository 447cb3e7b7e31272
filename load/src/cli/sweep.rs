//! `load sweep`: the highest rate of an open loop within bounds.

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::condition::Condition;
use vouchsafe_load::report::{Verdict, check_output_file, publish};
use vouchsafe_load::sweep::{SweepPlan, sweep};
use vouchsafe_load::traffic::pace::{Pace, Spacing};

use super::scenario::{OverrideArgs, read_scenario, service_program};
use super::{GeneratorArgs, print_progress};

/// Enough for thousands of requests in flight: with fewer, a slow service would look like a slow generator.
const CONNECTIONS: usize = 2_000;

#[derive(Args)]
pub(crate) struct SweepArgs {
    /// Scenario file; its pace becomes an open loop
    #[arg(value_name = "SCENARIO", default_value = "load/scenarios/hot-sku.json")]
    scenario: PathBuf,
    /// Condition of a rate within the bounds, for any number of the JSON report; can be repeated
    #[arg(long, value_name = "CONDITION", default_value = "p99<=50")]
    within: Vec<Condition>,
    /// First rate
    #[arg(long, value_name = "PER_SECOND", default_value_t = 500.0)]
    first: f64,
    /// Largest distance between the highest rate within and the lowest one out of bounds, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    precision: f64,
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also write the report, with the runs of all rates, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    overrides: OverrideArgs,
    #[command(flatten)]
    generator: GeneratorArgs,
}

/// Runs the search.
pub(crate) fn command(args: &SweepArgs) -> anyhow::Result<Verdict> {
    anyhow::ensure!(
        args.first >= 1.0 && args.precision > 0.0,
        "--first must be at least 1 and --precision above 0"
    );
    let open = Pace::Open {
        connections: CONNECTIONS,
        per_second: args.first,
        spacing: Spacing::Poisson,
    };
    let scenario = read_scenario(&args.scenario, &args.overrides, &args.generator, Some(open))?;
    if let Some(json) = &args.json {
        check_output_file(json, &[&args.scenario])?;
    }
    let plan = SweepPlan {
        program: &service_program(args.program.as_ref())?,
        scenario,
        bounds: args.within.clone(),
        first_per_s: args.first,
        precision: args.precision,
        options: args.generator.options(),
    };
    let report = sweep(&plan, &mut print_progress)?;
    publish(&report, args.json.as_deref())?;
    Ok(report.verdict())
}
