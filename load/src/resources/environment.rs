//! Environment variables that a started service inherits, without secrets.

use std::collections::BTreeMap;

/// Variables of another service that must not reach this one.
pub(crate) const NOT_INHERITED: [&str; 3] =
    ["DATABASE_URL", "VOUCHSAFE_MASTER_KEY", "VOUCHSAFE_OPERATOR_TOKEN"];

/// Variables of the service begin with it.
const PREFIX: &str = "VOUCHSAFE_";

/// Sets the log level of libraries.
const RUST_LOG: &str = "RUST_LOG";

/// Parts of the names of variables whose value is, or may contain, a secret.
const SECRET_WORDS: [&str; 7] = [
    "KEY",
    "SECRET",
    "TOKEN",
    "AUTHORIZATION",
    "PASSWORD",
    "URL",
    "ENDPOINT",
];

/// Variables with this ending contain the path of a file.
const FILE_SUFFIX: &str = "_FILE";

/// Stands for the value of a secret.
const HIDDEN: &str = "(hidden)";

/// Selects the variables that change the behaviour of the service, by name.
pub(crate) fn select_environment(
    variables: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let is_selected =
        |name: &str| (name.starts_with(PREFIX) || name == RUST_LOG) && !NOT_INHERITED.contains(&name);
    let variables = variables.into_iter().filter(|(name, _)| is_selected(name));
    variables
        .map(|(name, value)| {
            let value = if is_secret(&name) {
                HIDDEN.to_owned()
            } else {
                value
            };
            (name, value)
        })
        .collect()
}

fn is_secret(name: &str) -> bool {
    !name.ends_with(FILE_SUFFIX) && SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_service_are_selected_without_secrets() {
        let variables = [
            ("VOUCHSAFE_LANES", "4"),
            ("RUST_LOG", "debug"),
            ("PATH", "/bin"),
            ("VOUCHSAFE_MASTER_KEY", "0123"),
            ("VOUCHSAFE_METRICS_TOKEN", "abc"),
            ("VOUCHSAFE_METRICS_TOKEN_FILE", "/run/token"),
            ("VOUCHSAFE_AUDIT_EXPORT_URL", "https://u:p@h"),
        ];
        let selected = select_environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let selected: Vec<_> = selected
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            selected,
            [
                ("RUST_LOG", "debug"),
                ("VOUCHSAFE_AUDIT_EXPORT_URL", "(hidden)"),
                ("VOUCHSAFE_LANES", "4"),
                ("VOUCHSAFE_METRICS_TOKEN", "(hidden)"),
                ("VOUCHSAFE_METRICS_TOKEN_FILE", "/run/token"),
            ]
        );
    }
}
