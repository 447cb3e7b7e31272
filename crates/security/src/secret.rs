//! Access to the text of a secret.

use secrecy::{ExposeSecret as _, SecretString};

/// The text of a secret, at the place that needs it.
#[must_use]
pub fn expose(secret: &SecretString) -> &str {
    secret.expose_secret()
}
