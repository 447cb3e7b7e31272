//! Command line of the program. Settings come from flags, environment variables, a settings file and
//! defaults, in this order of precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use vouchsafe_cli::{self as cli, MAX_WIDTH, examples, with_validation};

use vouchsafe_security::secret_file::{self, ExposedFile};

use crate::secret_files::{self, SecretFileError};
use crate::settings::{ServeSettings, effective_settings};
use crate::vendor_simulator::SimulatorArgs;

/// Heading of the options that every command has.
const GLOBAL_OPTIONS: &str = "Global options";

/// Commands that print no response.
const WITHOUT_JSON: [&str; 4] = ["serve", "vendor-simulator", "completions", "man-pages"];

/// Vouchsafe: partners order vouchers over a signed REST API.
#[derive(Debug, Parser)]
#[command(name = "vouchsafe", version, about, max_term_width = MAX_WIDTH, after_help = cli::after_help())]
pub struct Cli {
    /// Print the response as JSON.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub json: bool,

    /// Data directory of the service: private Postgres, keys, tokens.
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_OPTIONS,
        env = "VOUCHSAFE_DATA_DIR",
        default_value = ".vouchsafe",
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,

    /// Settings file with one NAME=value per line; names are those of the environment variables.
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_OPTIONS,
        env = "VOUCHSAFE_CONFIG",
        value_name = "FILE"
    )]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    serve: ServeSettings,

    /// Secrets that other users of the machine can see.
    #[arg(skip)]
    pub warnings: Vec<String>,

    /// Command; default `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service.
    #[command(after_help = examples![
        "vouchsafe serve",
        "vouchsafe serve --http-addr 127.0.0.1:9080 --admin-addr 127.0.0.1:9081 --log-format json",
    ])]
    Serve(Box<ServeSettings>),
    /// Run a vendor simulator: a separate server that implements the vendor protocol, with faults on demand.
    VendorSimulator(SimulatorArgs),
    /// Client commands.
    #[command(flatten)]
    Client(cli::Command),
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Invalid arguments; also `--help` and `--version`.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    #[error("invalid settings file {path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error(transparent)]
    Secret(#[from] SecretFileError),
}

impl Cli {
    /// The commands and options. `--json` is hidden where it does not apply.
    #[must_use]
    pub fn commands() -> clap::Command {
        let hidden = clap::Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .hide(true);
        let command = WITHOUT_JSON.into_iter().fold(Self::command(), |command, name| {
            command.mut_subcommand(name, |command| command.arg(&hidden))
        });
        secret_files::describe(command)
    }

    /// # Errors
    /// [`SettingsError`] for invalid arguments, environment variables and files.
    pub fn read(arguments: &[OsString]) -> Result<Self, SettingsError> {
        let first = Self::commands().ignore_errors(true).get_matches_from(arguments);
        let mut exposed = Vec::new();
        let file = first
            .get_one::<PathBuf>("config")
            .map(|path| read_file(path, &mut exposed))
            .transpose()?;
        let mut file = file.unwrap_or_default();
        let environment = |name: &str| std::env::var_os(name);
        let secrets = secret_files::read(&Self::commands(), &first, &file, environment, &mut exposed)?;
        file.splice(..0, secrets);
        let command = with_validation(Self::commands());
        let command = with_full_usage(with_defaults(command, &file));
        let matches = command.clone().try_get_matches_from(arguments)?;
        let mut settings = Self::from_arg_matches(&matches)?;
        let name = matches.subcommand_name().unwrap_or("serve").to_owned();
        if settings.json && WITHOUT_JSON.contains(&name.as_str()) {
            let message =
                "--json applies to commands with a response; for JSON log lines use --log-format json";
            return Err(command.clone().error(ErrorKind::ArgumentConflict, message).into());
        }
        let matches = if name == "serve" && settings.command.is_some() {
            let matches_without_serve = parse_without_serve(&command, arguments)?;
            settings.command = None;
            settings.serve.update_from_arg_matches(&matches_without_serve)?;
            matches_without_serve
        } else {
            matches
        };
        settings.warnings = secret_files::flag_warnings(&command, &matches)
            .into_iter()
            .chain(exposed.iter().map(ToString::to_string))
            .collect();
        settings.serve.effective = effective_settings(&command, &matches, &file, &settings.serve);
        Ok(settings)
    }

    /// Settings of the service; client commands take its addresses from them.
    #[must_use]
    pub const fn serve_settings(&self) -> &ServeSettings {
        &self.serve
    }
}

/// Removes the argument `serve` and parses the others, so that settings are valid before and after it.
fn parse_without_serve(
    command: &clap::Command,
    arguments: &[OsString],
) -> Result<clap::ArgMatches, clap::Error> {
    let positions = arguments.iter().enumerate().filter(|(_, word)| *word == "serve");
    // Another `serve` may be a value, such as a directory. Removing that one leaves the subcommand.
    let parsed = positions.map(|(position, _)| {
        let rest = [&arguments[..position], &arguments[position + 1..]].concat();
        command.clone().try_get_matches_from(rest)
    });
    let mut last_error = None;
    for result in parsed {
        match result {
            Ok(matches) if matches.subcommand_name().is_none() => return Ok(matches),
            Ok(_) => {}
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand)))
}

/// Parses `NAME=value` lines; ignores blank lines and lines that begin with `#`. A name may occur once:
/// programs disagree on which of two values counts.
///
/// Adds the file to `exposed` if it has secrets and is open to other users.
fn read_file(path: &Path, exposed: &mut Vec<ExposedFile>) -> Result<Vec<(String, String)>, SettingsError> {
    let file_error = |reason: String| SettingsError::File {
        path: path.to_owned(),
        reason,
    };
    let (text, open) = secret_file::read(path).map_err(|error| file_error(error.to_string()))?;
    let lines = text
        .lines()
        .map(str::trim)
        .zip(1..)
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let commands = Cli::commands();
    let known = environment_variables(&commands);
    let mut line_of = BTreeMap::new();
    let settings: Vec<_> = lines
        .map(|(line, number)| {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| file_error(format!("line {number} is not NAME=value")))?;
            let name = name.trim().to_owned();
            if !known.contains(&name) {
                return Err(file_error(format!(
                    "line {number}: unknown setting {name}; see vouchsafe --help"
                )));
            }
            if let Some(first) = line_of.insert(name.clone(), number) {
                return Err(file_error(format!(
                    "lines {first} and {number} both set {name}; remove one of them"
                )));
            }
            Ok((name, value.trim().to_owned()))
        })
        .collect::<Result<_, _>>()?;
    let has_secrets = settings
        .iter()
        .any(|(name, _)| secret_files::is_secret(&commands, name));
    exposed.extend(open.filter(|_| has_secrets));
    Ok(settings)
}

/// Environment variables of a command and its subcommands.
fn environment_variables(command: &clap::Command) -> BTreeSet<String> {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    let variables = variables.filter_map(|name| Some(name.to_str()?.to_owned()));
    variables
        .chain(secret_files::file_settings(command))
        .chain(command.get_subcommands().flat_map(environment_variables))
        .collect()
}

/// Shows the usage of the help in errors, too. clap would name the options that were given, also those of the
/// environment: `vouchsafe order list --data-dir <DIR>`.
fn with_full_usage(mut command: clap::Command) -> clap::Command {
    command.build();
    set_usage(command)
}

fn set_usage(mut command: clap::Command) -> clap::Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command.override_usage(usage).mut_subcommands(set_usage)
}

/// Sets the values of the file as defaults of the arguments with these environment variables.
fn with_defaults(command: clap::Command, file: &[(String, String)]) -> clap::Command {
    let command = command.mut_args(|argument| {
        let name = argument
            .get_env()
            .and_then(|name| name.to_str())
            .map(ToOwned::to_owned);
        let value = name.and_then(|name| file.iter().find(|(known, _)| *known == name));
        match value {
            Some((_, value)) => argument.default_value(value.clone()),
            None => argument,
        }
    });
    command.mut_subcommands(|subcommand| with_defaults(subcommand, file))
}

#[cfg(test)]
mod tests;
