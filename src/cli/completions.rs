//! `vouchsafe completions`: the words that a shell completes.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::Outcome;
use super::examples::examples;
use crate::settings::Cli;

/// Arguments of `vouchsafe completions`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    r#"eval "$(vouchsafe completions bash)""#,
    "vouchsafe completions zsh > _vouchsafe",
])]
pub struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

/// Runs `vouchsafe completions`.
pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "vouchsafe", &mut script);
    Ok(String::from_utf8(script)?.into())
}
