//! `vouchsafe completions`: shell completion scripts.

use clap::Args;
use clap_complete::{Shell, generate};

use super::CommandOutput;
use super::examples::examples;

#[derive(Debug, Args)]
#[command(after_help = examples![
    r#"eval "$(vouchsafe completions bash)""#,
    "vouchsafe completions zsh > _vouchsafe",
])]
pub struct CompletionsArgs {
    /// Shell.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, mut program: clap::Command) -> anyhow::Result<CommandOutput> {
    let mut script = Vec::new();
    generate(args.shell, &mut program, "vouchsafe", &mut script);
    Ok(String::from_utf8(script)?.into())
}
