//! Access to the text of a secret.

use secrecy::{ExposeSecret as _, SecretString};

/// The text of a secret setting; `None` if it is unset or empty, as a variable in a settings file may be.
#[must_use]
pub fn expose_setting(setting: Option<&SecretString>) -> Option<&str> {
    setting.map(expose).filter(|text| !text.is_empty())
}

/// The text of a secret, at the place that needs it.
#[must_use]
pub fn expose(secret: &SecretString) -> &str {
    secret.expose_secret()
}
