//! `load growth`: how do the costs of the benches grow?

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use vouchsafe_load::growth::{BenchCosts, render_svg};

use super::turns::publish;

/// Arguments of `load growth`.
#[derive(Args)]
pub(crate) struct GrowthArgs {
    /// Where `cargo bench` left its figures.
    #[arg(default_value = "target/criterion")]
    directory: PathBuf,
    /// Groups of benches, in this order; all that were measured by size if they are left out.
    #[arg(long, value_delimiter = ',')]
    groups: Vec<String>,
    /// Write a drawing, too.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// What the drawing shows, for those who cannot see it.
    #[arg(long, default_value = "Cost of one by size, both by powers of ten")]
    title: String,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Tells and draws; says that there was something to tell.
pub(crate) fn command(args: &GrowthArgs) -> anyhow::Result<bool> {
    let growth = BenchCosts::read(&args.directory, &args.groups)?;
    if let Some(path) = &args.svg {
        std::fs::write(path, render_svg(&growth, &args.title)).context("writing the drawing")?;
    }
    publish(&growth, args.json.as_deref())?;
    Ok(!growth.0.is_empty())
}
