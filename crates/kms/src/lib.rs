//! Wrapping keys: the settings that name them, and the client of a key manager.
//!
//! The port is [`WrappingKey`](vouchsafe_security::vault::wrapping_key::WrappingKey); the master key
//! implements it in the vault, HashiCorp Vault Transit in [`transit`].

mod settings;
pub mod transit;

pub use self::settings::{KeyFile, WrappingKeyArgs};
