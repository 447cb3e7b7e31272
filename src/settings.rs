//! Every setting: by flag, by environment, by file, in that order; what is set nowhere has a default that works.

mod limits;
mod preview;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;
use vouchsafe_actors::engine::DEFAULT_LANES;

use self::limits::LimitSettings;
pub use self::preview::Preview;
use crate::access::client_address::TrustedProxies;
use crate::access::environment::Environment;
use crate::cli::examples::examples;
use crate::cli::{self, closing_words};
use crate::secrets::expose;
use crate::startup::listeners::default_workers;
use crate::vendor::simulator::SimulatorArgs;

/// Vouchsafe: partners order vouchers over a signed REST API.
#[derive(Debug, Parser)]
#[command(name = "vouchsafe", version, about, max_term_width = 110, after_help = closing_words())]
pub struct Cli {
    /// A file of settings, one NAME=value a line, named as the environment variables are.
    #[arg(long, global = true, env = "VOUCHSAFE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where the service keeps what it needs: its own Postgres, keys, tokens.
    #[arg(
        long,
        global = true,
        env = "VOUCHSAFE_DATA_DIR",
        default_value = ".vouchsafe",
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,

    #[command(flatten)]
    serve: ServeSettings,

    /// What to do; nothing said, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve partners and operators.
    #[command(after_help = examples![
        "vouchsafe serve",
        "vouchsafe serve --http-addr 127.0.0.1:9080 --admin-addr 127.0.0.1:9081 --log-format json",
    ])]
    Serve(Box<ServeSettings>),
    /// A vendor to try the vendor protocol on, with faults on demand; not a part of the service.
    VendorSimulator(SimulatorArgs),
    /// A client of the running service.
    #[command(flatten)]
    Client(cli::Command),
}

/// The settings of the service.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    /// Where partners are served.
    #[arg(
        long,
        env = "VOUCHSAFE_HTTP_ADDR",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS"
    )]
    pub http_addr: SocketAddr,

    /// Where operators are served: admin API and metrics.
    #[arg(
        long,
        env = "VOUCHSAFE_ADMIN_ADDR",
        default_value = "127.0.0.1:8081",
        value_name = "ADDRESS"
    )]
    pub admin_addr: SocketAddr,

    /// Sandbox or production; a database belongs to one of them for ever.
    #[arg(
        long,
        env = "VOUCHSAFE_ENVIRONMENT",
        default_value = "sandbox",
        value_name = "sandbox|production"
    )]
    pub environment: Environment,

    /// The Postgres to use. Unset: one of its own in the data directory.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<SecretString>,

    /// The key that wraps all data keys: 64 hex digits or base64 of 32 bytes. Unset in the sandbox: made and kept in the
    /// data directory.
    #[arg(
        long,
        env = "VOUCHSAFE_MASTER_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub master_key: Option<SecretString>,

    /// The operator's token, at least 32 characters. Unset in the sandbox: made and kept in the data directory.
    #[arg(
        long,
        env = "VOUCHSAFE_OPERATOR_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub operator_token: Option<SecretString>,

    /// The proxies in front of partners, whose X-Forwarded-For is believed: addresses and networks with commas between
    /// them. None: the peer is the client.
    #[arg(
        long,
        env = "VOUCHSAFE_TRUSTED_PROXIES",
        default_value = "",
        hide_default_value = true,
        value_name = "CIDR,…"
    )]
    pub trusted_proxies: TrustedProxies,

    /// How many requests of a key pass.
    #[command(flatten)]
    pub limits: LimitSettings,

    /// Whether partners may see the reconciliation of their orders, which is planned and may change: on or off.
    #[arg(
        long,
        env = "VOUCHSAFE_RECONCILIATION_PREVIEW",
        default_value = "off",
        value_name = "on|off"
    )]
    pub reconciliation_preview: Preview,

    /// How many lanes write to the database.
    #[arg(long, env = "VOUCHSAFE_LANES", default_value_t = DEFAULT_LANES, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub lanes: u16,

    /// How many threads serve partners and decide their orders; where nothing is said, one for two cores.
    #[arg(long, env = "VOUCHSAFE_HTTP_WORKERS", default_value_t = default_workers(), value_parser = clap::value_parser!(u16).range(1..=256))]
    pub http_workers: u16,

    /// What is logged: a level, or a filter such as `info,vouchsafe=debug`.
    #[arg(long, env = "VOUCHSAFE_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,

    /// How it is logged.
    #[arg(
        long,
        env = "VOUCHSAFE_LOG_FORMAT",
        default_value = "terminal",
        value_name = "FORMAT"
    )]
    pub log_format: LogFormat,

    /// The collector that the spans of each request are sent to by OTLP over HTTP, such as http://127.0.0.1:4318. Needs a
    /// program that was built with the feature otlp.
    // Read later, and not here, whose errors quote what they cannot read: it may be a URL with a password.
    #[arg(
        long,
        env = "VOUCHSAFE_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otlp_endpoint: Option<SecretString>,
}

impl ServeSettings {
    /// The Postgres to use; an empty variable names none.
    #[must_use]
    pub fn database_url(&self) -> Option<&SecretString> {
        self.database_url.as_ref().filter(|url| !expose(url).is_empty())
    }

    /// The collector of spans; an empty variable names none.
    #[must_use]
    pub fn otlp_endpoint(&self) -> Option<&SecretString> {
        self.otlp_endpoint.as_ref().filter(|url| !expose(url).is_empty())
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Terminal,
    /// A JSON object a line.
    Json,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Wrong arguments; also `--help` and `--version`.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    /// The file of settings.
    #[error("the settings in {path} cannot be used: {reason}")]
    File {
        path: PathBuf,
        reason: String,
    },
}

impl Cli {
    /// Reads all settings.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(arguments: &[OsString]) -> Result<Self, SettingsError> {
        let first = Self::command().ignore_errors(true).get_matches_from(arguments);
        let file = first
            .get_one::<PathBuf>("config")
            .map(|path| read_file(path))
            .transpose()?;
        let command = with_defaults(Self::command(), &file.unwrap_or_default());
        let matches = command.clone().try_get_matches_from(arguments)?;
        let mut settings = Self::from_arg_matches(&matches)?;
        if matches.subcommand_name() == Some("serve") {
            let whole = without_serve(&command, arguments)?;
            settings.command = None;
            settings.serve.update_from_arg_matches(&whole)?;
        }
        Ok(settings)
    }

    /// The settings of the service; commands that speak to one take its addresses from them.
    #[must_use]
    pub const fn serve_settings(&self) -> &ServeSettings {
        &self.serve
    }
}

/// A setting counts before `serve` as well as behind it: the word is taken out, and all is read as one.
fn without_serve(command: &clap::Command, arguments: &[OsString]) -> Result<clap::ArgMatches, clap::Error> {
    let places = arguments.iter().enumerate().filter(|(_, word)| *word == "serve");
    // Another `serve` may be a value, such as a directory's name; without the wrong one there is still a subcommand.
    let readings = places.map(|(place, _)| {
        let rest = [&arguments[..place], &arguments[place + 1..]].concat();
        command.clone().try_get_matches_from(rest)
    });
    let mut refused = None;
    for reading in readings {
        match reading {
            Ok(matches) if matches.subcommand_name().is_none() => return Ok(matches),
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)))
}

/// `NAME=value` lines; blank lines and those that begin with `#` are passed over.
fn read_file(path: &Path) -> Result<Vec<(String, String)>, SettingsError> {
    let refused = |reason: String| SettingsError::File {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let lines = text
        .lines()
        .map(str::trim)
        .zip(1..)
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let known = names(&Cli::command());
    lines
        .map(|(line, number)| {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| refused(format!("line {number} is not NAME=value")))?;
            let name = name.trim().to_owned();
            if !known.contains(&name) {
                return Err(refused(format!(
                    "line {number}: there is no setting {name}; see vouchsafe --help"
                )));
            }
            Ok((name, value.trim().to_owned()))
        })
        .collect()
}

/// The environment variables of a command and of those below it.
fn names(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(clap::Arg::get_env);
    let own = own.filter_map(|name| Some(name.to_str()?.to_owned()));
    own.chain(command.get_subcommands().flat_map(names)).collect()
}

/// Makes what the file says the default of the argument with that environment variable.
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
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(arguments: &[&str]) -> Result<Cli, SettingsError> {
        let arguments: Vec<OsString> = ["vouchsafe"]
            .iter()
            .chain(arguments)
            .map(OsString::from)
            .collect();
        Cli::read(&arguments)
    }

    #[test]
    fn nothing_said_serves_the_sandbox_on_loopback() {
        let cli = read(&[]).unwrap();
        let settings = cli.serve_settings();
        assert_eq!(settings.environment, Environment::Sandbox);
        assert!(settings.http_addr.ip().is_loopback() && settings.admin_addr.ip().is_loopback());
        assert!(settings.trusted_proxies.is_empty());
    }

    #[test]
    fn a_flag_goes_before_the_file_and_the_file_before_the_default() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(
            file,
            "# settings\nVOUCHSAFE_HTTP_ADDR = 127.0.0.1:9000\nVOUCHSAFE_ADMIN_ADDR=127.0.0.1:9001"
        )
        .unwrap();
        let path = file.path().to_str().unwrap();
        let cli = read(&["--config", path, "serve", "--http-addr", "127.0.0.1:9999"]).unwrap();
        assert_eq!(cli.serve_settings().http_addr.port(), 9999);
        assert_eq!(cli.serve_settings().admin_addr.port(), 9001);
    }

    #[test]
    fn a_setting_counts_before_and_behind_serve() {
        let before = ["--environment", "production", "--lanes", "7", "serve"];
        let behind = ["serve", "--environment", "production", "--lanes", "7"];
        let both = ["--environment", "production", "serve", "--lanes", "7"];
        let alone = ["--environment", "production", "--lanes", "7"];
        for arguments in [&before[..], &behind, &both, &alone] {
            let cli = read(arguments).unwrap();
            let settings = cli.serve_settings();
            assert_eq!(
                (settings.environment, settings.lanes),
                (Environment::Production, 7),
                "{arguments:?}"
            );
        }
        let named = read(&["--data-dir", "serve", "--lanes", "7", "serve"]).unwrap();
        assert_eq!(named.data_dir, Path::new("serve"));
        assert_eq!(named.serve_settings().lanes, 7);
        assert!(
            read(&["--lanes", "7", "serve", "--lanes", "8"]).is_err(),
            "said twice"
        );
    }

    #[test]
    fn a_file_with_an_unknown_name_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "VOUCHSAFE_HTTP_ADRR=127.0.0.1:9000").unwrap();
        let read = read(&["--config", file.path().to_str().unwrap()]);
        assert!(
            read.unwrap_err()
                .to_string()
                .contains("line 1: there is no setting VOUCHSAFE_HTTP_ADRR")
        );
    }

    #[test]
    fn a_file_that_is_none_is_an_error() {
        assert!(matches!(
            read(&["--config", "/nowhere/at/all"]),
            Err(SettingsError::File { .. })
        ));
    }
}
