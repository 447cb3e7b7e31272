//! `load grown`: what does a database cost a scenario that has grown for years?

use clap::Args;
use vouchsafe_load::grow::Growth;
use vouchsafe_load::grown::compare;
use vouchsafe_load::report::page;
use vouchsafe_load::stand::Stand;

use super::scenario::ScenarioArgs;
use super::turns::{publish, say};

/// Arguments of `load grown`.
#[derive(Args)]
pub(crate) struct GrownArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    growth: Growth,
}

/// Plays on an empty and on a grown database and reports; says whether both audits passed.
pub(crate) fn command(args: &GrownArgs) -> anyhow::Result<bool> {
    let scenario = args.scenario.scenario()?;
    let program = match &args.scenario.program {
        Some(program) => program.clone(),
        None => Stand::program_beside()?,
    };
    let options = args.scenario.options();
    let grown = compare(&program, &scenario, args.growth, options, &mut say)?;
    if let Some(path) = &args.scenario.common.html {
        std::fs::write(path, page(&grown.grown))?;
    }
    publish(&grown, args.scenario.common.json.as_deref())?;
    Ok(grown.passed())
}
