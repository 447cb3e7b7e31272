//! `load ab`: two service programs in alternating turns.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use vouchsafe_load::ab::{AbPlan, compare_programs};
use vouchsafe_load::report::{Verdict, check_output_file, publish};

use super::scenario::{OverrideArgs, read_scenario};
use super::{GeneratorArgs, print_progress};

#[derive(Args)]
pub(crate) struct AbArgs {
    /// Service program that is the base of the ratios
    #[arg(value_name = "A")]
    base: PathBuf,
    /// Service program that gets the verdicts
    #[arg(value_name = "B")]
    candidate: PathBuf,
    /// Scenario file
    #[arg(value_name = "SCENARIO", default_value = "load/scenarios/hot-sku.json")]
    scenario: PathBuf,
    /// Rounds, each with a turn of both programs; the order of the turns alternates
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    rounds: u16,
    /// Also write the report, with the runs of all turns, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    overrides: OverrideArgs,
    #[command(flatten)]
    generator: GeneratorArgs,
}

/// Runs the comparison.
pub(crate) fn command(args: &AbArgs) -> anyhow::Result<Verdict> {
    let scenario = read_scenario(&args.scenario, &args.overrides, &args.generator, None)?;
    for program in [&args.base, &args.candidate] {
        ensure!(
            program.is_file(),
            "`{}` does not exist: name two built service programs",
            program.display()
        );
    }
    if let Some(json) = &args.json {
        check_output_file(json, &[&args.base, &args.candidate, &args.scenario])?;
    }
    let plan = AbPlan {
        programs: [&args.base, &args.candidate],
        scenario: &scenario,
        rounds: usize::from(args.rounds),
        options: args.generator.options(),
    };
    let report = compare_programs(&plan, &mut print_progress)?;
    publish(&report, args.json.as_deref())?;
    Ok(report.verdict())
}
