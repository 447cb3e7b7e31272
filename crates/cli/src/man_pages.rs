//! `vouchsafe man-pages`: a manual page per command, for packages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::CommandOutput;
use super::examples::examples;

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe man-pages /usr/local/share/man/man1"])]
pub struct ManPagesArgs {
    /// Existing directory that receives the pages, vouchsafe.1 and others.
    directory: PathBuf,
}

pub(super) fn run(args: &ManPagesArgs, program: clap::Command) -> anyhow::Result<CommandOutput> {
    let command = program.disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.directory)
        .with_context(|| format!("write manual pages to {}", args.directory.display()))?;
    Ok(String::new().into())
}
