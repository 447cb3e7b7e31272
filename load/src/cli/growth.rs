//! `load growth`: criterion results by input size.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use vouchsafe_load::growth::{BenchCosts, render_svg};

use super::turns::publish;

#[derive(Args)]
pub(crate) struct GrowthArgs {
    /// Output directory of criterion
    #[arg(default_value = "target/criterion")]
    directory: PathBuf,
    /// Bench groups in this order [default: all groups with a numeric size]
    #[arg(long, value_delimiter = ',')]
    groups: Vec<String>,
    /// Also write an SVG plot
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Accessible title of the plot
    #[arg(long, default_value = "Cost per element by size, both axes logarithmic")]
    title: String,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Prints and plots; returns whether there are results.
pub(crate) fn command(args: &GrowthArgs) -> anyhow::Result<bool> {
    let growth = BenchCosts::read(&args.directory, &args.groups)?;
    if let Some(path) = &args.svg {
        std::fs::write(path, render_svg(&growth, &args.title)).context("cannot write the plot")?;
    }
    publish(&growth, args.json.as_deref())?;
    Ok(!growth.0.is_empty())
}
