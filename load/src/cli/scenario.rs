//! `load scenario`: scenarios, each on its own private service.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use vouchsafe_load::deployment::{TestDeployment, run_in_new_deployment};
use vouchsafe_load::report::{RunReport, Verdict, check_output_file, draw_flame_graph, write_output_file};
use vouchsafe_load::scenario_run::prefill::{PrefillSizes, prefill_deployment};
use vouchsafe_load::scenario_run::{GeneratorOptions, run_scenario};
use vouchsafe_load::traffic::pace::Pace;
use vouchsafe_load::traffic::scenario::{OpenConsoles, Scenario, VoucherSupply};

use super::{GeneratorArgs, ReportArgs, parse_positive, print_progress};

#[derive(Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario files, for example load/scenarios/hot-sku.json
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Insert this number of past orders before the run, with stored responses, unsold vouchers and partners
    /// in proportion
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    prefill_orders: Option<u64>,
    /// Also sample the service with perf and write a flame graph to an .svg file, or folded stacks to any
    /// other
    #[arg(long, value_name = "FILE")]
    stacks: Option<PathBuf>,
    #[command(flatten)]
    generator: GeneratorArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Values that replace those of a scenario file.
#[derive(Args)]
pub(crate) struct OverrideArgs {
    /// Override the measured seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Override the warm-up seconds
    #[arg(long)]
    warmup: Option<u64>,
    /// Override the number of connections
    #[arg(long, value_parser = parse_positive)]
    connections: Option<usize>,
    /// Override the rate of an open loop
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Override the number of vouchers per SKU that is not scarce
    #[arg(long)]
    vouchers: Option<u64>,
    /// Override the number of kills and restarts after the load
    #[arg(long, value_name = "TIMES")]
    restarts: Option<u64>,
    /// Override the number of open consoles
    #[arg(long, value_name = "NUMBER")]
    consoles: Option<u32>,
}

/// Runs the scenarios.
pub(crate) fn command(args: &ScenarioArgs) -> anyhow::Result<Verdict> {
    let scenarios: Vec<_> = args
        .files
        .iter()
        .map(|file| read_scenario(file, &args.overrides, &args.generator, None))
        .collect::<anyhow::Result<_>>()?;
    let names: Vec<_> = scenarios
        .iter()
        .map(|scenario| Some(scenario.name.as_str()))
        .collect();
    let baseline = args.report.check_files(&names)?;
    if let Some(stacks) = &args.stacks {
        check_output_file(stacks, &[])?;
    }
    let program = service_program(args.program.as_ref())?;
    let mut runs = Vec::with_capacity(scenarios.len());
    for scenario in &scenarios {
        runs.push(run(args, scenario, &program)?);
    }
    if let Some(path) = &args.stacks {
        let stacks: String = runs.iter().filter_map(|run| run.stacks.as_deref()).collect();
        let is_graph = path.extension().is_some_and(|extension| extension == "svg");
        let content = if is_graph {
            draw_flame_graph(&stacks)
        } else {
            stacks
        };
        write_output_file(path, content.as_bytes())?;
    }
    args.report.publish(runs, baseline.as_ref())
}

/// Runs a scenario on a new deployment.
fn run(args: &ScenarioArgs, scenario: &Scenario, program: &Path) -> anyhow::Result<RunReport> {
    let Scenario {
        name,
        warm_up_s,
        seconds,
        ..
    } = scenario;
    print_progress(&format!(
        "{name}: seeding, {warm_up_s} s of warm-up, {seconds} s of load, audit"
    ));
    run_in_new_deployment(program, |deployment| {
        if let Some(orders) = args.prefill_orders {
            let sizes = PrefillSizes::for_orders(orders);
            print_progress(&format!("inserting {sizes}"));
            prefill_deployment(deployment, &sizes)?;
        }
        let options = GeneratorOptions {
            has_stacks: args.stacks.is_some(),
            ..args.generator.options()
        };
        run_scenario(scenario, deployment, options)
    })
}

/// The program of the option, or the one beside this program.
pub(crate) fn service_program(option: Option<&PathBuf>) -> std::io::Result<PathBuf> {
    option.map_or_else(TestDeployment::default_program, |program| Ok(program.clone()))
}

/// Reads a scenario file, replaces its pace, then single values.
pub(crate) fn read_scenario(
    file: &Path,
    overrides: &OverrideArgs,
    generator: &GeneratorArgs,
    pace: Option<Pace>,
) -> anyhow::Result<Scenario> {
    let read = || {
        let mut scenario = Scenario::read(file)?;
        scenario.pace = pace.unwrap_or(scenario.pace);
        if let Some(drain) = generator.drain {
            scenario.drain_s = drain;
        }
        overrides.apply(&mut scenario)?;
        scenario.validate()?;
        Ok::<_, anyhow::Error>(scenario)
    };
    read().with_context(|| format!("`{}`", file.display()))
}

impl OverrideArgs {
    fn apply(&self, scenario: &mut Scenario) -> anyhow::Result<()> {
        if let Some(seconds) = self.seconds {
            scenario.seconds = seconds;
        }
        if let Some(warm_up) = self.warmup {
            scenario.warm_up_s = warm_up;
        }
        if let Some(vouchers) = self.vouchers {
            scenario.skus.vouchers = VoucherSupply::Each(vouchers);
        }
        if let Some(restarts) = self.restarts {
            scenario.restarts = restarts;
        }
        if let Some(count) = self.consoles {
            let idle_actors = scenario.consoles.map_or(0, |consoles| consoles.idle_actors);
            scenario.consoles = Some(OpenConsoles { count, idle_actors });
        }
        match &mut scenario.pace {
            Pace::Closed { connections } => {
                anyhow::ensure!(self.rate.is_none(), "--rate needs a scenario with an open loop");
                *connections = self.connections.unwrap_or(*connections);
            }
            Pace::Open {
                connections,
                per_second,
                ..
            } => {
                *connections = self.connections.unwrap_or(*connections);
                *per_second = self.rate.unwrap_or(*per_second);
            }
        }
        Ok(())
    }
}
