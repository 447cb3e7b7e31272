//! `load scenario`: a scenario on a private service.

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::scenario_run::{GeneratorOptions, run_scenario};
use vouchsafe_load::traffic::pace::Pace;
use vouchsafe_load::traffic::scenario::{Scenario, VoucherSupply};

use super::{CommonArgs, parse_positive};

#[derive(Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file, for example load/scenarios/hot-sku.json
    file: PathBuf,
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl ScenarioArgs {
    pub(crate) fn options(&self) -> GeneratorOptions {
        GeneratorOptions {
            signing: self.common.signing(),
            seed: self.common.seed,
            threads: self.common.threads,
            samples: self.common.audit_sample,
        }
    }

    /// Reads the scenario and applies the overrides.
    pub(crate) fn scenario(&self) -> anyhow::Result<Scenario> {
        scenario(self)
    }
}

/// Runs the scenario on a private deployment; returns whether the audit passed.
pub(crate) fn command(args: &ScenarioArgs) -> anyhow::Result<bool> {
    let scenario = scenario(args)?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => TestDeployment::default_program()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut deployment = runtime.block_on(TestDeployment::start(&program))?;
    let report = run_scenario(&scenario, &mut deployment, args.options())?;
    args.common.publish(&report)?;
    deployment.stop()?;
    Ok(report.audit.has_passed())
}

fn scenario(args: &ScenarioArgs) -> anyhow::Result<Scenario> {
    let mut scenario = Scenario::read(&args.file)?;
    if let Some(seconds) = args.seconds {
        scenario.seconds = seconds;
    }
    if let Some(warm_up) = args.warmup {
        scenario.warm_up_s = warm_up;
    }
    if let Some(vouchers) = args.vouchers {
        scenario.skus.vouchers = VoucherSupply::Each(vouchers);
    }
    if let Some(restarts) = args.restarts {
        scenario.restarts = restarts;
    }
    scenario.pace = match (scenario.pace, args.rate) {
        (Pace::Closed { .. }, Some(_)) => anyhow::bail!("--rate needs a scenario with an open loop"),
        (Pace::Closed { connections }, None) => Pace::Closed {
            connections: args.connections.unwrap_or(connections),
        },
        (
            Pace::Open {
                connections,
                per_second,
                spacing,
            },
            rate,
        ) => Pace::Open {
            connections: args.connections.unwrap_or(connections),
            per_second: rate.unwrap_or(per_second),
            spacing,
        },
    };
    scenario.validate()?;
    Ok(scenario)
}
