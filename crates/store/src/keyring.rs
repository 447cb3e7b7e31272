//! Keyring: the process's unlocked data keys, and their rotation.
//!
//! At startup it creates missing data keys and unwraps all of them with the master key. Every key that ever encrypted a
//! code stays loaded.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use sqlx::PgConnection;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_security::vault::data_key::DataKey;
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::{UnlockError, Vault};

use crate::data_keys::read_data_keys;
use crate::{DataKeySet, DataKeys, KeyWrapper};

/// Why the data keys are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The master key belongs to another database, or a key is missing.
    #[error(
        "cannot decrypt the codes of this database: {0}; start with the master key with which it was created"
    )]
    Locked(#[from] UnlockError),
    /// The database failed, or no new key could be generated.
    #[error("cannot read the data keys: {0}")]
    Store(#[from] sqlx::Error),
}

pub struct Keyring {
    data_keys: DataKeys,
    master: Arc<MasterKey>,
    vault: RwLock<Arc<Vault>>,
}

impl Keyring {
    /// Loads the data keys, creates missing ones, and unwraps all.
    ///
    /// # Errors
    /// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
    pub async fn open(data_keys: DataKeys, master: MasterKey) -> Result<Self, KeyringError> {
        let master = Arc::new(master);
        let keys = data_keys.ensure(wrap_with(&master)).await?;
        let vault = RwLock::new(unlock(&master, &keys)?);
        Ok(Self {
            data_keys,
            master,
            vault,
        })
    }

    /// The current vault, for decryption.
    #[must_use]
    pub fn vault(&self) -> Arc<Vault> {
        Arc::clone(&self.vault.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The vault for encryption; rotates to the next data key if it is due.
    ///
    /// # Errors
    /// [`KeyringError`] if the next key is due and cannot be created.
    pub async fn sealing_vault(&self) -> Result<Arc<Vault>, KeyringError> {
        let vault = self.vault();
        if !vault.needs_rotation() {
            return Ok(vault);
        }
        let keys = self
            .data_keys
            .next_codes_key(vault.active_key(), wrap_with(&self.master))
            .await?;
        self.replace_vault(&keys)
    }

    /// Reloads the data keys: another node may have encrypted under a new one.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub async fn reload(&self) -> Result<Arc<Vault>, KeyringError> {
        let keys = self.data_keys.ensure(wrap_with(&self.master)).await?;
        self.replace_vault(&keys)
    }

    fn replace_vault(&self, keys: &DataKeySet) -> Result<Arc<Vault>, KeyringError> {
        let vault = unlock(&self.master, keys)?;
        let mut current = self.vault.write().unwrap_or_else(PoisonError::into_inner);
        // A concurrent call that read an older key set may arrive here later.
        if vault.active_key() >= current.active_key() {
            *current = vault;
        }
        tracing::info!(key.id = current.active_key().0, "data keys reloaded");
        Ok(Arc::clone(&current))
    }
}

/// The key of the audit checkpoints, without the service. `None` if the database has no data keys yet.
///
/// # Errors
/// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
pub async fn load_checkpoint_key(
    connection: &mut PgConnection,
    master: &MasterKey,
) -> Result<Option<CheckpointKey>, KeyringError> {
    let keys = read_data_keys(connection).await?;
    if keys.is_empty() {
        return Ok(None);
    }
    // This vault encrypts nothing, so the number of encrypted codes does not matter.
    Ok(Some(Vault::unlock(master, &keys, 0)?.checkpoint_key()))
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.vault()).finish()
    }
}

fn unlock(master: &MasterKey, keys: &DataKeySet) -> Result<Arc<Vault>, UnlockError> {
    Vault::unlock(master, &keys.keys, keys.active_seals).map(Arc::new)
}

fn wrap_with(master: &Arc<MasterKey>) -> KeyWrapper {
    let master = Arc::clone(master);
    Box::new(move |key_id, purpose| {
        let key = DataKey::generate(key_id, purpose).and_then(|key| key.wrap(&master));
        key.map_err(|error| sqlx::Error::Encode(Box::new(error)))
    })
}
