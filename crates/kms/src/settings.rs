//! Settings of the wrapping keys: master keys, and the key in Vault.
//!
//! Every configured key is loaded and unwraps. `VOUCHSAFE_KMS` selects the one that wraps, which is the
//! target of `vouchsafe keys rotate`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use secrecy::SecretString;
use strum::{EnumString, IntoStaticStr};
use vouchsafe_security::secret::expose_setting;
use vouchsafe_security::vault::key_file;
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::wrapping_key::{WrappingKey, WrappingKeys};

use crate::transit::{TransitConfig, TransitKey};

/// What wraps the data keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownKms, parse_err_fn = UnknownKms::new)]
enum Kms {
    /// The master key.
    Local,
    /// A key of HashiCorp Vault.
    VaultTransit,
}

#[derive(Debug)]
struct UnknownKms;

impl UnknownKms {
    const fn new(_: &str) -> Self {
        Self
    }
}

impl std::fmt::Display for UnknownKms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("expected local or vault-transit")
    }
}

impl std::error::Error for UnknownKms {}

/// The file of a sandbox's master key, which is used without `VOUCHSAFE_MASTER_KEY`.
#[derive(Debug, Clone, Copy)]
pub enum KeyFile<'a> {
    /// The database is not that of a data directory.
    None,
    /// Loaded if it exists.
    IfExists(&'a Path),
    /// Created if it does not exist, unless a key manager wraps.
    CreateIfMissing(&'a Path),
}

/// Settings of the wrapping keys.
#[derive(Debug, Clone, Args)]
pub struct WrappingKeyArgs {
    /// Master key that encrypts all data keys: 64 hex digits or base64 of 32 bytes [default in the sandbox:
    /// generated in the data directory].
    #[arg(
        long,
        env = "VOUCHSAFE_MASTER_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    master_key: Option<SecretString>,

    /// Master key before the current one, until `vouchsafe keys rotate` has replaced it.
    #[arg(
        long,
        env = "VOUCHSAFE_MASTER_KEY_PREVIOUS",
        hide_env_values = true,
        value_name = "KEY"
    )]
    master_key_previous: Option<SecretString>,

    /// What encrypts the data keys: the master key, or a key of HashiCorp Vault.
    #[arg(
        long,
        env = "VOUCHSAFE_KMS",
        default_value = "local",
        value_name = "local|vault-transit"
    )]
    kms: Kms,

    /// URL of HashiCorp Vault: https, or http on loopback. Its key is also loaded if the master key encrypts
    /// the data keys.
    #[arg(long, env = "VOUCHSAFE_VAULT_ADDR", value_name = "URL")]
    vault_addr: Option<String>,

    /// Path of the transit engine in Vault.
    #[arg(
        long,
        env = "VOUCHSAFE_VAULT_MOUNT",
        default_value = "transit",
        value_name = "PATH"
    )]
    vault_mount: String,

    /// Name of the key in the transit engine.
    #[arg(
        long,
        env = "VOUCHSAFE_VAULT_KEY",
        default_value = "vouchsafe",
        value_name = "NAME"
    )]
    vault_key: String,

    /// File with the token for Vault, read before each request.
    #[arg(long, env = "VOUCHSAFE_VAULT_TOKEN_FILE", value_name = "FILE")]
    vault_token_file: Option<PathBuf>,
}

impl WrappingKeyArgs {
    /// Whether the settings name a key that wraps, without a file of a sandbox.
    #[must_use]
    pub fn has_key(&self) -> bool {
        expose_setting(self.master_key.as_ref()).is_some() || matches!(self.kms, Kms::VaultTransit)
    }

    /// Loads all configured keys. Sends no request. `None` without a key that wraps.
    ///
    /// # Errors
    /// If a setting is invalid or missing, or the file cannot be read or created, or other users may read it.
    pub fn load(&self, file: KeyFile<'_>) -> anyhow::Result<Option<WrappingKeys>> {
        let mut master_keys: Vec<Arc<dyn WrappingKey>> = Vec::new();
        match (expose_setting(self.master_key.as_ref()), file) {
            (Some(key), _) => master_keys.push(parse(key, "VOUCHSAFE_MASTER_KEY")?),
            (None, KeyFile::CreateIfMissing(path)) if self.kms == Kms::Local => {
                let key = key_file::load_or_create(path).context("read or create the master key")?;
                master_keys.push(Arc::new(key));
            }
            (None, KeyFile::CreateIfMissing(path) | KeyFile::IfExists(path)) => {
                if path.try_exists().unwrap_or_default() {
                    let key = key_file::load(path).context("read the master key")?;
                    master_keys.push(Arc::new(key));
                }
            }
            (None, KeyFile::None) => {}
        }
        let has_current = !master_keys.is_empty();
        if let Some(key) = expose_setting(self.master_key_previous.as_ref()) {
            master_keys.push(parse(key, "VOUCHSAFE_MASTER_KEY_PREVIOUS")?);
        }
        let transit = self.transit()?;
        Ok(match (self.kms, transit) {
            (Kms::VaultTransit, Some(transit)) => Some(WrappingKeys::new(transit, master_keys)),
            (Kms::VaultTransit, None) => {
                bail!("VOUCHSAFE_KMS=vault-transit requires VOUCHSAFE_VAULT_ADDR, the URL of HashiCorp Vault")
            }
            (Kms::Local, _) if !has_current => None,
            (Kms::Local, transit) => {
                let current = master_keys.remove(0);
                Some(WrappingKeys::new(
                    current,
                    master_keys.into_iter().chain(transit).collect(),
                ))
            }
        })
    }

    fn transit(&self) -> anyhow::Result<Option<Arc<dyn WrappingKey>>> {
        let Some(address) = self.vault_addr.as_deref().filter(|address| !address.is_empty()) else {
            return Ok(None);
        };
        let Some(token_file) = self.vault_token_file.clone() else {
            bail!("VOUCHSAFE_VAULT_ADDR requires VOUCHSAFE_VAULT_TOKEN_FILE, a file with a token for Vault");
        };
        let key = TransitKey::new(TransitConfig {
            address,
            mount: &self.vault_mount,
            key: &self.vault_key,
            token_file,
        });
        Ok(Some(Arc::new(key.context("read VOUCHSAFE_VAULT_ADDR")?)))
    }
}

fn parse(key: &str, name: &'static str) -> anyhow::Result<Arc<dyn WrappingKey>> {
    let key = MasterKey::parse(key).with_context(|| format!("read {name}"))?;
    Ok(Arc::new(key))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestCommand {
        #[command(flatten)]
        keys: WrappingKeyArgs,
    }

    fn load(line: &str, file: KeyFile<'_>) -> anyhow::Result<Option<WrappingKeys>> {
        let line = line
            .replace("AB", &"ab".repeat(32))
            .replace("CD", &"cd".repeat(32));
        let arguments = ["test"].into_iter().chain(line.split_whitespace());
        TestCommand::try_parse_from(arguments)?.keys.load(file)
    }

    fn ids(line: &str) -> Vec<String> {
        load(line, KeyFile::None)
            .unwrap()
            .map_or_else(Vec::new, |keys| keys.ids())
    }

    #[test]
    fn all_configured_keys_are_loaded_and_the_selected_one_is_current() {
        let id = |byte: &str| MasterKey::parse(&byte.repeat(32)).unwrap().id().to_string();
        let (ab, cd, transit) = (
            id("ab"),
            id("cd"),
            "vault-transit:https://vault.example:8200/transit/vouchsafe".to_owned(),
        );
        let vault = "--vault-addr https://vault.example:8200 --vault-token-file token";
        for (line, expected) in [
            ("--master-key AB".to_owned(), vec![&ab]),
            (
                "--master-key CD --master-key-previous AB".to_owned(),
                vec![&cd, &ab],
            ),
            (format!("--kms vault-transit {vault}"), vec![&transit]),
            (
                format!("--kms vault-transit {vault} --master-key AB"),
                vec![&transit, &ab],
            ),
            (
                format!("--kms vault-transit {vault} --master-key-previous AB"),
                vec![&transit, &ab],
            ),
            (format!("--master-key CD {vault}"), vec![&cd, &transit]),
            (vault.to_owned(), vec![]),
            ("--master-key-previous AB".to_owned(), vec![]),
            (String::new(), vec![]),
        ] {
            assert_eq!(ids(&line).iter().collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn incomplete_or_insecure_settings_are_refused() {
        for (line, expected) in [
            ("--kms other", "expected local or vault-transit"),
            ("--kms vault-transit", "VOUCHSAFE_VAULT_ADDR"),
            ("--vault-addr https://vault.example", "VOUCHSAFE_VAULT_TOKEN_FILE"),
            (
                "--vault-addr http://vault.example --vault-token-file t",
                "use https",
            ),
            ("--vault-addr vault --vault-token-file t", "expected a URL"),
            ("--master-key x", "VOUCHSAFE_MASTER_KEY"),
            (
                "--master-key AB --master-key-previous x",
                "VOUCHSAFE_MASTER_KEY_PREVIOUS",
            ),
        ] {
            let error = load(line, KeyFile::None).map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{line}: {error:#}");
        }
    }

    #[test]
    fn file_of_a_sandbox_is_created_for_the_master_key_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master-key");
        let vault = "--kms vault-transit --vault-addr http://127.0.0.1:8200 --vault-token-file token";
        let count = |line, file| load(line, file).unwrap().map_or(0, |keys| keys.ids().len());
        assert_eq!(count(vault, KeyFile::CreateIfMissing(&path)), 1);
        assert_eq!(count("", KeyFile::IfExists(&path)), 0);
        assert!(!path.exists());
        assert_eq!(count("", KeyFile::CreateIfMissing(&path)), 1);
        assert_eq!(count("", KeyFile::IfExists(&path)), 1);
        assert_eq!(count(vault, KeyFile::CreateIfMissing(&path)), 2);
    }
}
