//! `load grown`: one scenario on an empty and on a prefilled database.

use clap::Args;
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::report::render_html;
use vouchsafe_load::scenario_run::grown::compare_empty_and_grown;
use vouchsafe_load::scenario_run::prefill::PrefillSizes;

use super::scenario::ScenarioArgs;
use super::turns::{print_progress, publish};

#[derive(Args)]
pub(crate) struct GrownArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    growth: PrefillSizes,
}

/// Runs both; returns whether both audits passed.
pub(crate) fn command(args: &GrownArgs) -> anyhow::Result<bool> {
    let scenario = args.scenario.scenario()?;
    let program = match &args.scenario.program {
        Some(program) => program.clone(),
        None => TestDeployment::default_program()?,
    };
    let options = args.scenario.options();
    let grown = compare_empty_and_grown(&program, &scenario, args.growth, options, &mut print_progress)?;
    if let Some(path) = &args.scenario.common.html {
        std::fs::write(path, render_html(&grown.grown))?;
    }
    publish(&grown, args.scenario.common.json.as_deref())?;
    Ok(grown.has_passed())
}
