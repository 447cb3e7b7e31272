//! Which keys seal and open codes right now?
//!
//! The keyring makes the data keys that are missing at the start, unlocks them with the master key, and takes the next
//! key for codes into use when one is due. Rule: every key that a code was ever sealed under stays loaded.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::store::{DataKeys, PgStore, KeyWrapper};
use crate::vault::data_key::DataKey;
use crate::vault::master_key::MasterKey;
use crate::vault::seal::{UnlockError, Vault};

/// Why there are no keys to work with.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The master key is not that of this database, or a key is missing.
    #[error(
        "the codes in this database cannot be opened: {0}; start with the master key that it was begun with"
    )]
    Locked(#[from] UnlockError),
    /// The database did not answer, or no new key could be made.
    #[error("the data keys cannot be read: {0}")]
    Store(#[from] sqlx::Error),
}

/// The unlocked keys of this process, and what unlocks further ones.
pub struct Keyring {
    store: PgStore,
    master: Arc<MasterKey>,
    vault: RwLock<Arc<Vault>>,
}

impl Keyring {
    /// Reads the data keys, makes those that are missing, and unlocks all.
    ///
    /// # Errors
    /// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
    pub async fn open(store: PgStore, master: MasterKey) -> Result<Self, KeyringError> {
        let master = Arc::new(master);
        let keys = store.ensure_data_keys(wrap_with(&master)).await?;
        let vault = RwLock::new(unlock(&master, &keys)?);
        Ok(Self { store, master, vault })
    }

    /// What opens codes.
    #[must_use]
    pub fn vault(&self) -> Arc<Vault> {
        Arc::clone(&self.vault.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What seals codes: with the next key, where the active one has done its part.
    ///
    /// # Errors
    /// [`KeyringError`] when a new key was due and could not be had.
    pub async fn sealing_vault(&self) -> Result<Arc<Vault>, KeyringError> {
        let vault = self.vault();
        if !vault.needs_rotation() {
            return Ok(vault);
        }
        let keys = self
            .store
            .next_codes_key(vault.active_key(), wrap_with(&self.master))
            .await?;
        self.replace_vault(&keys)
    }

    /// Reads the keys again: another node may have sealed under a new one.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub async fn reload(&self) -> Result<Arc<Vault>, KeyringError> {
        let keys = self.store.ensure_data_keys(wrap_with(&self.master)).await?;
        self.replace_vault(&keys)
    }

    fn replace_vault(&self, keys: &DataKeys) -> Result<Arc<Vault>, KeyringError> {
        let vault = unlock(&self.master, keys)?;
        let mut current = self.vault.write().unwrap_or_else(PoisonError::into_inner);
        // Whoever read earlier may come here later.
        if vault.active_key() >= current.active_key() {
            *current = vault;
        }
        tracing::info!(key.id = current.active_key().0, "data keys were read again");
        Ok(Arc::clone(&current))
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.vault()).finish()
    }
}

fn unlock(master: &MasterKey, keys: &DataKeys) -> Result<Arc<Vault>, UnlockError> {
    Vault::unlock(master, &keys.keys, keys.active_seals).map(Arc::new)
}

fn wrap_with(master: &Arc<MasterKey>) -> KeyWrapper {
    let master = Arc::clone(master);
    Box::new(move |key_id, purpose| {
        let key = DataKey::generate(key_id, purpose).and_then(|key| key.wrap(&master));
        key.map_err(|error| sqlx::Error::Encode(Box::new(error)))
    })
}
