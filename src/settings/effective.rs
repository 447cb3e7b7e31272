//! The settings in force with their sources, as operators see them.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use vouchsafe_security::environment::Environment;
use vouchsafe_webhooks::LoopbackTargets;
use vouchsafe_wire::operator::settings::{Setting, SettingSource};

use super::ServeSettings;

/// The settings of `command` with an environment variable. `file` has the names and values of the settings
/// file and of secrets' files, which `matches` takes for defaults.
pub(crate) fn effective_settings(
    command: &Command,
    matches: &ArgMatches,
    file: &[(String, String)],
    serve: &ServeSettings,
) -> Vec<Setting> {
    let mut settings = explicit_settings(command, matches, file);
    for (name, value) in derived_values(serve) {
        if let Some(setting) = settings.iter_mut().find(|setting| setting.name == name) {
            setting.value = value;
            if setting.source == SettingSource::Unset {
                setting.source = SettingSource::Default;
            }
        }
    }
    settings
}

/// Values in force of the settings that depend on other ones; `None` for a secret that a sandbox generates.
fn derived_values(serve: &ServeSettings) -> Vec<(&'static str, Option<String>)> {
    let is_sandbox = serve.environment == Environment::Sandbox;
    let loopback = serve.webhook_loopback() == LoopbackTargets::Allowed;
    let rotations = serve.limits.rotations_per_day(serve.environment);
    let mut derived = vec![
        (
            "VOUCHSAFE_CONSOLE_URL",
            Some(serve.console_url().origin().to_owned()),
        ),
        ("VOUCHSAFE_WEBHOOK_LOOPBACK", Some(on_or_off(loopback))),
        ("VOUCHSAFE_ROTATIONS_PER_DAY", Some(rotations.to_string())),
    ];
    if serve.vendor_network.is_none() {
        derived.push((
            "VOUCHSAFE_VENDOR_NETWORK",
            Some(serve.vendor_network().into_str().to_owned()),
        ));
    }
    if serve.four_eyes.is_none() {
        derived.push(("VOUCHSAFE_FOUR_EYES", Some(on_or_off(serve.four_eyes().is_on()))));
    }
    if is_sandbox && !serve.database.has_url() {
        derived.push(("DATABASE_URL", None));
    }
    if is_sandbox && !serve.keys.has_key() {
        derived.push(("VOUCHSAFE_MASTER_KEY", None));
    }
    if is_sandbox && serve.operator_token.is_none() {
        derived.push(("VOUCHSAFE_OPERATOR_TOKEN", None));
    }
    derived
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn explicit_settings(command: &Command, matches: &ArgMatches, file: &[(String, String)]) -> Vec<Setting> {
    let settings = command.get_arguments().filter_map(|argument| {
        let name = argument.get_env()?.to_str()?;
        let id = argument.get_id().as_str();
        let source = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => SettingSource::Option,
            Some(ValueSource::EnvVariable) => SettingSource::Environment,
            Some(_) if file.iter().any(|(known, _)| known == name) => SettingSource::File,
            Some(_) => SettingSource::Default,
            None => SettingSource::Unset,
        };
        let is_secret = argument.is_hide_env_values_set();
        let values = matches.get_raw(id).filter(|_| !is_secret);
        let values = values.map(|values| {
            values
                .map(|value| value.to_string_lossy())
                .collect::<Vec<_>>()
                .join(",")
        });
        Some(Setting {
            name: name.to_owned(),
            value: values.filter(|value| !value.is_empty()),
            is_secret,
            source,
            description: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::program::Cli;

    /// Value and source of the settings with these names.
    fn in_force(line: &str, names: &[&str]) -> Vec<(Option<String>, SettingSource)> {
        let arguments = ["vouchsafe"].into_iter().chain(line.split_whitespace());
        let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
        let settings = Cli::read(&arguments).unwrap().serve_settings().effective.clone();
        let find = |name: &&str| {
            let found = settings.iter().find(|setting| setting.name == **name).unwrap();
            (found.value.clone(), found.source)
        };
        names.iter().map(find).collect()
    }

    #[test]
    fn derived_defaults_are_shown_with_their_values() {
        const NAMES: [&str; 4] = [
            "VOUCHSAFE_CONSOLE_URL",
            "VOUCHSAFE_FOUR_EYES",
            "VOUCHSAFE_WEBHOOK_LOOPBACK",
            "VOUCHSAFE_ROTATIONS_PER_DAY",
        ];
        for (line, expected) in [
            ("", ["http://127.0.0.1:8081", "off", "on", "1000"]),
            (
                "--environment production --admin-addr 10.0.0.7:8081",
                ["https://10.0.0.7:8081", "on", "off", "10"],
            ),
        ] {
            let expected = expected.map(|value| (Some(value.to_owned()), SettingSource::Default));
            assert_eq!(in_force(line, &NAMES), expected, "{line}");
        }
    }

    #[test]
    fn value_of_a_setting_is_the_one_in_force() {
        for (line, name, value) in [
            (
                "--console-url https://console.example.com/",
                "VOUCHSAFE_CONSOLE_URL",
                "https://console.example.com",
            ),
            ("--four-eyes USD=1000", "VOUCHSAFE_FOUR_EYES", "USD=1000"),
            (
                "--environment production --webhook-loopback on",
                "VOUCHSAFE_WEBHOOK_LOOPBACK",
                "off",
            ),
            ("--rotations-per-day 7", "VOUCHSAFE_ROTATIONS_PER_DAY", "7"),
            (
                "--metrics-networks 10.0.0.0/8",
                "VOUCHSAFE_METRICS_NETWORKS",
                "10.0.0.0/8",
            ),
        ] {
            let expected = (Some(value.to_owned()), SettingSource::Option);
            assert_eq!(in_force(line, &[name]), [expected], "{line}");
        }
    }

    #[test]
    fn secrets_that_a_sandbox_generates_are_defaults_without_a_value() {
        const NAMES: [&str; 3] = ["DATABASE_URL", "VOUCHSAFE_MASTER_KEY", "VOUCHSAFE_OPERATOR_TOKEN"];
        for (line, source) in [
            ("", SettingSource::Default),
            ("--environment production", SettingSource::Unset),
            (
                "--database-url u --master-key k --operator-token t",
                SettingSource::Option,
            ),
        ] {
            assert_eq!(
                in_force(line, &NAMES),
                [const { None }; 3].map(|value| (value, source)),
                "{line}"
            );
        }
    }
}
