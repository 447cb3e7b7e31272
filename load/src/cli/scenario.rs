//! `load scenario`: what does a service of our own do in a scenario?

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::scenario_run::{GeneratorOptions, run_scenario};
use vouchsafe_load::scenario::{Pace, Scenario, VoucherSupply};
use vouchsafe_load::deployment::TestDeployment;

use super::{CommonArgs, parse_positive};

/// Arguments of `load scenario`.
#[derive(Args)]
pub(crate) struct ScenarioArgs {
    /// The file, such as load/scenarios/hot-sku.json.
    file: PathBuf,
    /// The service's program; the one beside this program if it is left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Another length of the measured part.
    #[arg(long)]
    seconds: Option<u64>,
    /// Another warm-up, in seconds.
    #[arg(long)]
    warmup: Option<u64>,
    /// Another number of connections.
    #[arg(long, value_parser = parse_positive)]
    connections: Option<usize>,
    /// Another rate of an open loop; a closed one has none.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Another number of vouchers of each SKU that is not scarce.
    #[arg(long)]
    vouchers: Option<u64>,
    /// Kill the service and start it again so often when the load is over.
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

    /// The scenario of the file, with what was changed for this run.
    pub(crate) fn scenario(&self) -> anyhow::Result<Scenario> {
        scenario(self)
    }
}

/// Starts a stand, plays, reports, and ends the stand; says whether the audit passed.
pub(crate) fn command(args: &ScenarioArgs) -> anyhow::Result<bool> {
    let scenario = scenario(args)?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => TestDeployment::default_program()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut stand = runtime.block_on(TestDeployment::start(&program))?;
    let report = run_scenario(&scenario, &mut stand, args.options())?;
    args.common.publish(&report)?;
    stand.stop()?;
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
        (Pace::Closed { .. }, Some(_)) => anyhow::bail!("the scenario is a closed loop, which has no --rate"),
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
