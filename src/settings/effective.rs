//! The settings in force with their sources, as operators see them.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use vouchsafe_wire::operator::settings::{EffectiveSetting, SettingSource};

/// The settings of `command` with an environment variable. `file` has the names and values of the settings file and of secrets'
/// files, which `matches` takes for defaults.
pub(crate) fn effective_settings(
    command: &Command,
    matches: &ArgMatches,
    file: &[(String, String)],
) -> Vec<EffectiveSetting> {
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
        Some(EffectiveSetting {
            name: name.to_owned(),
            value: values.filter(|value| !value.is_empty()),
            is_secret,
            source,
            description: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    });
    settings.collect()
}
