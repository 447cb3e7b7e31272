//! Access to the text of a secret, and types that do not show theirs.

use hmac::{Hmac, KeyInit as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

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

/// HMAC-SHA-256 that has read its key.
pub(crate) fn keyed_hash(key: &[u8]) -> Hmac<Sha256> {
    let Ok(mac) = Hmac::new_from_slice(key) else {
        unreachable!("HMAC accepts keys of any length");
    };
    mac
}

/// Declares the hash of a secret. It has no `==`: `matches` compares in constant time. `Debug` prints `***`.
macro_rules! secret_hash {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes the stored bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Compares in constant time.
            #[must_use]
            pub fn matches(&self, other: &Self) -> bool {
                subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
            }
        }

        $crate::secret::hidden!($name);
    };
}

/// Implements a `Debug` that prints the name of the type and `***`.
macro_rules! hidden {
    ($name:ident) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(***)"))
            }
        }
    };
}

pub(crate) use {hidden, secret_hash};
