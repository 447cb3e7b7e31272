//! `*_FILE` variants of secret settings, as container secrets and systemd credentials need them.
//!
//! A setting is secret if its argument hides the value of its environment variable.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use vouchsafe_security::secret_file::{self, ExposedFile};

#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("{name} and {name}_FILE are both set; remove one of them")]
    BothSet { name: String },
    /// Without the content, also where it is not UTF-8.
    #[error("cannot read {name}_FILE {path}: {reason}")]
    Unreadable {
        name: String,
        path: PathBuf,
        reason: String,
    },
    #[error("{name}_FILE names {path}, which is empty")]
    Empty { name: String, path: PathBuf },
}

/// Name of the setting with the path.
fn file_setting(name: &str) -> String {
    format!("{name}_FILE")
}

/// The environment variable of a secret argument.
fn secret_name(argument: &Arg) -> Option<&str> {
    argument
        .get_env()
        .filter(|_| argument.is_hide_env_values_set())?
        .to_str()
}

/// Names the `*_FILE` settings in the help, and keeps secrets of a settings file out of it.
pub(super) fn describe(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let Some(setting) = secret_name(&argument).map(file_setting) else {
            return argument;
        };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        argument
            .help(format!("{help} [file: {setting}]"))
            .hide_default_value(true)
    });
    command.mut_subcommands(describe)
}

/// The `*_FILE` settings of a command, without its subcommands.
pub(super) fn file_settings(command: &Command) -> impl Iterator<Item = String> {
    command.get_arguments().filter_map(secret_name).map(file_setting)
}

/// Whether this environment variable, of a command or its subcommands, has a secret.
pub(super) fn is_secret(command: &Command, name: &str) -> bool {
    let mut secrets = command.get_arguments().filter_map(secret_name);
    secrets.any(|known| known == name)
        || command
            .get_subcommands()
            .any(|subcommand| is_secret(subcommand, name))
}

/// Warnings about secrets on the command line, which the list of processes shows to every user.
pub(super) fn flag_warnings(command: &Command, matches: &ArgMatches) -> BTreeSet<String> {
    let flags = levels(command, matches).flat_map(|(command, matches)| {
        let is_flag = |argument: &&Arg| {
            let id = argument.get_id().as_str();
            matches.value_source(id) == Some(ValueSource::CommandLine) && has_secret(argument, matches)
        };
        command.get_arguments().filter(is_flag)
    });
    let warning = |flag: &Arg| {
        let name = secret_name(flag)?;
        Some(format!(
            "--{} is visible to every user of this machine, in the list of processes; set {} instead",
            flag.get_long()?,
            file_setting(name)
        ))
    };
    flags.filter_map(warning).collect()
}

/// Whether the value of a secret argument has a secret: a URL has none without a password.
fn has_secret(argument: &Arg, matches: &ArgMatches) -> bool {
    let is_url = argument
        .get_value_names()
        .is_some_and(|names| names.iter().any(|name| name.as_str() == "URL"));
    let has_password = |value: &OsStr| {
        let url = value.to_string_lossy();
        let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
    };
    let mut values = matches.get_raw(argument.get_id().as_str()).into_iter().flatten();
    secret_name(argument).is_some() && (!is_url || values.any(has_password))
}

/// Reads the files of the secrets that the given command takes: others may be unreadable for its user.
///
/// `file` has the lines of the settings file. Returns names and values of the secrets, and adds files that
/// are open to other users to `exposed`.
///
/// # Errors
/// If a setting and its file are both set, or a file cannot be read or is empty.
pub(super) fn read(
    command: &Command,
    matches: &ArgMatches,
    file: &[(String, String)],
    environment: impl Fn(&str) -> Option<OsString>,
    exposed: &mut Vec<ExposedFile>,
) -> Result<Vec<(String, String)>, SecretFileError> {
    // An empty variable counts as unset.
    let find = |name: &str| {
        let in_file = || {
            file.iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.into())
        };
        let value = environment(name).filter(|value| !value.is_empty());
        value
            .or_else(in_file)
            .filter(|value: &OsString| !value.is_empty())
    };
    let mut secrets = Vec::new();
    for (argument, is_flag) in arguments(command, matches) {
        // A flag overrides both.
        let Some(name) = secret_name(argument).filter(|_| !is_flag) else {
            continue;
        };
        let Some(path) = find(&file_setting(name)).map(PathBuf::from) else {
            continue;
        };
        let name = name.to_owned();
        if find(&name).is_some() {
            return Err(SecretFileError::BothSet { name });
        }
        let (value, open) = read_secret(&name, &path)?;
        exposed.extend(open);
        secrets.push((name, value));
    }
    Ok(secrets)
}

/// The arguments of the given subcommand, and whether each is on the command line; without a subcommand those
/// of the service.
fn arguments<'a>(command: &'a Command, matches: &'a ArgMatches) -> impl Iterator<Item = (&'a Arg, bool)> {
    let is_root_skipped = matches.subcommand().is_some();
    let levels = levels(command, matches).skip(is_root_skipped.into());
    levels.flat_map(|(command, matches)| {
        command.get_arguments().map(move |argument| {
            let source = matches.value_source(argument.get_id().as_str());
            (argument, source == Some(ValueSource::CommandLine))
        })
    })
}

/// The command and the given subcommands, with their arguments.
fn levels<'a>(
    command: &'a Command,
    matches: &'a ArgMatches,
) -> impl Iterator<Item = (&'a Command, &'a ArgMatches)> {
    std::iter::successors(Some((command, matches)), |(command, matches)| {
        let (name, own) = matches.subcommand()?;
        Some((command.find_subcommand(name)?, own))
    })
}

/// The content without the line feeds at its end.
fn read_secret(name: &str, path: &Path) -> Result<(String, Option<ExposedFile>), SecretFileError> {
    let (text, exposed) = secret_file::read(path).map_err(|error| SecretFileError::Unreadable {
        name: name.to_owned(),
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let value = text.trim_end_matches(['\r', '\n']);
    if value.trim().is_empty() {
        return Err(SecretFileError::Empty {
            name: name.to_owned(),
            path: path.to_owned(),
        });
    }
    Ok((value.to_owned(), exposed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::program::Cli;

    const NAME: &str = "VOUCHSAFE_MASTER_KEY";

    /// The secrets of a command line with these variables and settings of the file.
    fn read_for(
        line: &str,
        variables: &[(&str, &str)],
        file: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, String> {
        let command = Cli::commands();
        let arguments = ["vouchsafe"].into_iter().chain(line.split_whitespace());
        let matches = command.clone().ignore_errors(true).get_matches_from(arguments);
        let file: Vec<_> = file
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        };
        read(&command, &matches, &file, environment, &mut Vec::new()).map_err(|error| error.to_string())
    }

    fn secret_file(content: &[u8]) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, content).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (directory, path)
    }

    #[test]
    fn secret_is_read_from_its_file_without_the_final_line_feed() {
        for (content, expected) in [
            (" s3cret \n", " s3cret "),
            ("s3cret\r\n", "s3cret"),
            ("s3cret", "s3cret"),
        ] {
            let (_directory, path) = secret_file(content.as_bytes());
            let secrets = Ok(vec![(NAME.to_owned(), expected.to_owned())]);
            let setting = [("VOUCHSAFE_MASTER_KEY_FILE", path.as_str())];
            assert_eq!(read_for("", &setting, &[]), secrets);
            assert_eq!(read_for("serve", &[], &setting), secrets);
            assert_eq!(read_for("", &[(NAME, ""), setting[0]], &[(NAME, "")]), secrets);
            let other = [("VOUCHSAFE_MASTER_KEY_FILE", "/nowhere/at/all")];
            assert_eq!(
                read_for("", &setting, &other),
                secrets,
                "the environment overrides"
            );
        }
    }

    #[test]
    fn value_and_file_together_are_rejected() {
        let (_directory, path) = secret_file(b"s3cret\n");
        let setting = [("VOUCHSAFE_MASTER_KEY_FILE", path.as_str())];
        let value = [(NAME, "s3cret")];
        let both = [setting[0], value[0]];
        for (variables, file) in [
            (&both[..], &[][..]),
            (&[][..], &both[..]),
            (&setting[..], &value[..]),
            (&value[..], &setting[..]),
        ] {
            let error = read_for("serve", variables, file).unwrap_err();
            assert_eq!(
                error,
                "VOUCHSAFE_MASTER_KEY and VOUCHSAFE_MASTER_KEY_FILE are both set; remove one of them"
            );
        }
    }

    #[test]
    fn unusable_file_is_rejected_by_setting_and_path() {
        for content in [&b""[..], b"\n", b" \r\n", b"s3cret\xff"] {
            let (_directory, path) = secret_file(content);
            let error = read_for("serve", &[("DATABASE_URL_FILE", &path)], &[]).unwrap_err();
            assert!(
                error.contains("DATABASE_URL_FILE") && error.contains(&path),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
        let error = read_for("", &[("DATABASE_URL_FILE", "/nowhere/at/all")], &[]).unwrap_err();
        assert_eq!(
            error,
            "cannot read DATABASE_URL_FILE /nowhere/at/all: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn command_reads_the_files_of_its_own_secrets() {
        let (_directory, path) = secret_file(b"s3cret\n");
        let variables = [
            ("VOUCHSAFE_MASTER_KEY_FILE", "/nowhere/at/all"),
            ("VOUCHSAFE_OPERATOR_TOKEN_FILE", path.as_str()),
        ];
        let names = |line: &str| -> Vec<_> {
            let secrets = read_for(line, &variables, &[]).unwrap();
            secrets.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("partner list"), ["VOUCHSAFE_OPERATOR_TOKEN"]);
        assert_eq!(names("actors"), ["VOUCHSAFE_OPERATOR_TOKEN"]);
        assert!(names("migrate").is_empty());
        assert!(
            read_for("verify", &variables, &[]).is_err(),
            "it checks HMACs under the master key"
        );
        assert!(names("actors --operator-token t").is_empty(), "a flag overrides");
    }

    #[test]
    fn secret_on_the_command_line_is_warned_of() {
        let warnings = |line: &str| -> Vec<_> {
            let command = Cli::commands();
            let arguments = ["vouchsafe"].into_iter().chain(line.split_whitespace());
            let matches = command.clone().ignore_errors(true).get_matches_from(arguments);
            flag_warnings(&command, &matches).into_iter().collect()
        };
        for (line, flag, setting) in [
            ("--master-key k", "--master-key ", "VOUCHSAFE_MASTER_KEY_FILE"),
            (
                "--master-key k serve",
                "--master-key ",
                "VOUCHSAFE_MASTER_KEY_FILE",
            ),
            (
                "serve --master-key k",
                "--master-key ",
                "VOUCHSAFE_MASTER_KEY_FILE",
            ),
            (
                "partner list --operator-token t",
                "--operator-token ",
                "VOUCHSAFE_OPERATOR_TOKEN_FILE",
            ),
            (
                "verify --database-url postgres://u:p@h/d",
                "--database-url ",
                "DATABASE_URL_FILE",
            ),
        ] {
            let found = warnings(line);
            assert!(
                found.len() == 1 && found[0].starts_with(flag) && found[0].contains(setting),
                "{line}: {found:?}"
            );
        }
        for line in [
            "",
            "serve",
            "partner list",
            "verify --database-url postgres://u@h/d",
        ] {
            assert!(warnings(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn every_secret_names_its_file_in_the_help() {
        let settings: Vec<_> = file_settings(&Cli::commands()).collect();
        assert_eq!(
            settings,
            [
                "DATABASE_URL_FILE",
                "VOUCHSAFE_REPLICA_URL_FILE",
                "VOUCHSAFE_MASTER_KEY_FILE",
                "VOUCHSAFE_MASTER_KEY_PREVIOUS_FILE",
                "VOUCHSAFE_OPERATOR_TOKEN_FILE",
                "VOUCHSAFE_METRICS_TOKEN_FILE",
                "VOUCHSAFE_OIDC_CLIENT_SECRET_FILE",
                "VOUCHSAFE_AUDIT_EXPORT_URL_FILE",
                "VOUCHSAFE_AUDIT_EXPORT_SECRET_FILE",
                "VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION_FILE",
                "VOUCHSAFE_OTLP_ENDPOINT_FILE",
                "OTEL_EXPORTER_OTLP_HEADERS_FILE"
            ]
        );
        let help = Cli::commands().render_help().to_string();
        let words: Vec<_> = help.split_whitespace().collect();
        for setting in settings {
            let named = format!("{setting}]");
            assert!(
                words.windows(2).any(|pair| pair == ["[file:", &named]),
                "{setting}"
            );
        }
    }
}
