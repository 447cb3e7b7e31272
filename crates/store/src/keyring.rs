//! Keyring: the process's unlocked data keys, and their rotation.
//!
//! At startup it creates missing data keys and unwraps all of them with the wrapping keys. Every key that
//! ever encrypted a code stays loaded. A key that another node created is loaded when a value needs it, and
//! by [`Keyring::refresh`].

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use parking_lot::{Mutex, RwLock};
use sqlx::postgres::PgConnectOptions;
use sqlx::{PgConnection, PgPool};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_security::vault::data_key::KeyId;
use vouchsafe_security::vault::grant_key::GrantKey;
use vouchsafe_security::vault::seal::{IncompleteKeySet, Vault};
use vouchsafe_security::vault::wrapping_key::{WrapError, WrappingKeyId, WrappingKeys};

use crate::data_keys::{DataKeyError, KeyRow, create_missing, read_data_keys};
use crate::{DataKeySet, DataKeys};
use vouchsafe_operators::grants::Grants;

/// After a load without the requested key, or that failed: callers must not queue for a key manager that
/// hangs.
const MISS_RETRY_DELAY: Duration = Duration::from_secs(5);

/// After a failed creation of the next key: the active one is usable for long.
const ROTATION_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Why the data keys are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The master key belongs to another database, or the key manager failed.
    #[error("cannot decrypt the codes of this database: {0}{advice}", advice = advice(.0))]
    Locked(#[from] WrapError),
    #[error("cannot decrypt the codes of this database: {0}")]
    Incomplete(#[from] IncompleteKeySet),
    #[error("cannot read the data keys: {0}")]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for KeyringError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// What to do about the error, to append to its text.
#[must_use]
pub const fn advice(error: &WrapError) -> &'static str {
    match error {
        WrapError::WrongMasterKey(_) => "; set the master key with which it was created",
        WrapError::NotLoaded { .. } => {
            "; set that key as VOUCHSAFE_MASTER_KEY or VOUCHSAFE_MASTER_KEY_PREVIOUS, or the settings of Vault"
        }
        WrapError::NoRandomness(_) | WrapError::KeyManager(_) => "",
    }
}

impl From<DataKeyError> for KeyringError {
    fn from(error: DataKeyError) -> Self {
        match error {
            DataKeyError::Wrap(error) => Self::Locked(error),
            DataKeyError::Store(error) => Self::Store(error),
        }
    }
}

pub struct Keyring {
    data_keys: DataKeys,
    wrapping: WrappingKeys,
    /// The wrapping keys that did not work when they were probed last.
    failing: Mutex<Vec<WrappingKeyId>>,
    vault: RwLock<Arc<Vault>>,
    /// Held while keys are loaded and put in place: callers that lack a key share one load, and a later load
    /// has read later rows.
    loading: tokio::sync::Mutex<LoadState>,
    /// Locked while a caller creates the next key because the active one is used up; not before this time.
    next_rotation: tokio::sync::Mutex<Option<Instant>>,
}

struct LoadState {
    /// The newest row that was loaded.
    newest: Option<KeyRow>,
    /// Keys that did not exist at a load.
    misses: HashMap<KeyId, Instant>,
    /// The last load, if a key was not unwrapped.
    failure: Option<(Instant, WrapError)>,
}

impl LoadState {
    fn new(newest: Option<KeyRow>) -> Self {
        Self {
            newest,
            misses: HashMap::new(),
            failure: None,
        }
    }

    fn has_missed(&self, key_id: KeyId) -> bool {
        self.misses
            .get(&key_id)
            .is_some_and(|at| at.elapsed() < MISS_RETRY_DELAY)
    }

    fn recent_failure(&self) -> Option<WrapError> {
        let failure = self.failure.as_ref();
        failure
            .filter(|(at, _)| at.elapsed() < MISS_RETRY_DELAY)
            .map(|(_, error)| error.clone())
    }

    /// A lookup by a number that does not exist must not load the keys again and again.
    fn remember_misses(&mut self, key_ids: &[KeyId], vault: &Vault) {
        self.misses.retain(|_, at| at.elapsed() < MISS_RETRY_DELAY);
        let missing = key_ids.iter().filter(|key_id| !vault.has_key(**key_id));
        self.misses
            .extend(missing.map(|key_id| (*key_id, Instant::now())));
    }
}

impl Keyring {
    /// Loads the data keys, creates missing ones, and unwraps all.
    ///
    /// # Errors
    /// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
    #[boxed]
    pub async fn open(data_keys: DataKeys, wrapping: WrappingKeys) -> Result<Self, KeyringError> {
        let keys = data_keys.ensure(wrapping.clone()).await?;
        let vault = RwLock::new(unlock(&wrapping, &keys).await?);
        let loading = tokio::sync::Mutex::new(LoadState::new(keys.newest));
        Ok(Self {
            data_keys,
            wrapping,
            failing: Mutex::default(),
            vault,
            loading,
            next_rotation: tokio::sync::Mutex::default(),
        })
    }

    /// Checks that the wrapping keys still unwrap all data keys. Call it once the node's wrapping keys are
    /// reported: a rotation that did not see the report has ended when this returns, and later ones refuse if
    /// the node cannot follow.
    ///
    /// # Errors
    /// [`KeyringError`].
    #[boxed]
    pub async fn confirm(&self) -> Result<(), KeyringError> {
        let keys = self.data_keys.ensure(self.wrapping.clone()).await?;
        unlock(&self.wrapping, &keys).await.map(drop)
    }

    /// Probes all wrapping keys and returns the ids of those that work, for the report of the node: a
    /// rotation to another one would lock the node out.
    #[boxed]
    pub async fn probe_wrapping_keys(&self) -> Vec<String> {
        self.probe(|_| true).await
    }

    /// Probes the wrapping keys again that did not work, and returns the ids of all that work now.
    #[boxed]
    pub async fn probe_failing_wrapping_keys(&self) -> Vec<String> {
        let failing = self.failing_wrapping_keys();
        self.probe(|id| failing.contains(id)).await
    }

    /// The wrapping keys that did not work when they were probed last.
    #[must_use]
    pub fn failing_wrapping_keys(&self) -> Vec<WrappingKeyId> {
        self.failing.lock().clone()
    }

    async fn probe(&self, is_due: impl Fn(&WrappingKeyId) -> bool) -> Vec<String> {
        let results = self.wrapping.probe(is_due).await;
        let mut failing = self.failing.lock();
        for (id, result) in results {
            let has_failed = failing.contains(&id);
            match result {
                Ok(()) if has_failed => {
                    tracing::info!(key.id = %id, "wrapping key works again");
                    failing.retain(|failing| *failing != id);
                }
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(key.id = %id, error.message = %error, "wrapping key does not work; no rotation to it until it does");
                    if !has_failed {
                        failing.push(id);
                    }
                }
            }
        }
        let mut ids = self.wrapping.ids();
        ids.retain(|id| failing.iter().all(|failing| failing.as_str() != id));
        ids
    }

    /// The current vault, for decryption.
    #[must_use]
    pub fn vault(&self) -> Arc<Vault> {
        Arc::clone(&self.vault.read())
    }

    /// The vault with these data keys. Reloads the keys if another node has encrypted under a newer one;
    /// concurrent calls share one load. A key that does not exist is not an error here, but where a value is
    /// decrypted.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub async fn vault_with(
        &self,
        key_ids: impl IntoIterator<Item = KeyId>,
    ) -> Result<Arc<Vault>, KeyringError> {
        let vault = self.vault();
        let key_ids = key_ids.into_iter();
        let missing: Vec<KeyId> = key_ids.filter(|key_id| !vault.has_key(*key_id)).collect();
        if missing.is_empty() {
            return Ok(vault);
        }
        let mut loading = self.loading.lock().await;
        let vault = self.vault();
        let is_known = |key_id: &KeyId| vault.has_key(*key_id) || loading.has_missed(*key_id);
        if missing.iter().all(is_known) {
            return Ok(vault);
        }
        if let Some(error) = loading.recent_failure() {
            return Err(error.into());
        }
        let vault = self.load(&mut loading).await?;
        loading.remember_misses(&missing, &vault);
        Ok(vault)
    }

    /// The vault for encryption; rotates to the next data key if the active one has encrypted too many
    /// values. While that fails, or another caller does it, the active key stays in use.
    ///
    /// # Errors
    /// [`KeyringError`] if the next key cannot be created, and the active one may encrypt nothing more.
    #[boxed]
    pub async fn sealing_vault(&self) -> Result<Arc<Vault>, KeyringError> {
        let vault = self.vault();
        if !vault.needs_rotation() {
            return Ok(vault);
        }
        let Ok(mut next_rotation) = self.next_rotation.try_lock() else {
            return Ok(vault);
        };
        if next_rotation.is_some_and(|at| Instant::now() < at) {
            return Ok(vault);
        }
        match self.rotate(vault.active_key()).await {
            Err(error) if !vault.is_exhausted() => {
                tracing::warn!(error.message = %error, "cannot create the next data key");
                *next_rotation = Some(Instant::now() + ROTATION_RETRY_DELAY);
                Ok(vault)
            }
            rotated => rotated,
        }
    }

    /// Loads the data keys if the newest one is not the active one of this process, and creates the next one
    /// if it is older than `max_age`. Another node may have created a key; a standby that took over may lack
    /// the active one, or have another one under its number.
    ///
    /// # Errors
    /// [`KeyringError`]; the current keys stay in use.
    #[boxed]
    pub async fn refresh(&self, max_age: Option<Duration>) -> Result<(), KeyringError> {
        let Some(newest) = self.data_keys.newest_codes_key(max_age).await? else {
            return Ok(());
        };
        if self.loading.lock().await.newest.as_ref() != Some(&newest.row) {
            self.reload().await?;
        }
        if newest.is_due {
            self.rotate(newest.row.key_id).await?;
        }
        Ok(())
    }

    /// Reloads the data keys: another node may have encrypted under a new one.
    ///
    /// # Errors
    /// [`KeyringError`].
    #[boxed]
    pub async fn reload(&self) -> Result<Arc<Vault>, KeyringError> {
        self.load(&mut *self.loading.lock().await).await
    }

    async fn load(&self, loading: &mut LoadState) -> Result<Arc<Vault>, KeyringError> {
        let keys = self.data_keys.load().await?;
        self.replace_vault(loading, keys).await
    }

    async fn rotate(&self, active: KeyId) -> Result<Arc<Vault>, KeyringError> {
        let mut loading = self.loading.lock().await;
        let wrapping = self.wrapping.clone();
        let keys = self.data_keys.next_codes_key(active, wrapping).await?;
        self.replace_vault(&mut loading, keys).await
    }

    async fn replace_vault(
        &self,
        loading: &mut LoadState,
        keys: DataKeySet,
    ) -> Result<Arc<Vault>, KeyringError> {
        let vault = match unlock(&self.wrapping, &keys).await {
            Err(KeyringError::Locked(error)) => {
                loading.failure = Some((Instant::now(), error.clone()));
                return Err(error.into());
            }
            unlocked => unlocked?,
        };
        loading.failure = None;
        let mut current = self.vault.write();
        if vault.active_key() < current.active_key() {
            tracing::error!(
                key.id = vault.active_key().0,
                key.lost = current.active_key().0,
                "the database lacks the active data key, as after a failover to a standby that lagged; using an older one"
            );
        }
        *current = vault;
        loading.newest = keys.newest;
        tracing::info!(key.id = current.active_key().0, "data keys reloaded");
        Ok(Arc::clone(&current))
    }
}

/// The keys of the audit checkpoints and of the rows that grant access, without the service. `None` if the
/// database has no data keys yet.
///
/// # Errors
/// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
#[boxed]
pub async fn load_mac_keys(
    connection: &mut PgConnection,
    wrapping: &WrappingKeys,
) -> Result<Option<(CheckpointKey, GrantKey)>, KeyringError> {
    let keys = read_data_keys(connection).await?;
    if keys.is_empty() {
        return Ok(None);
    }
    // This vault encrypts nothing, so the number of encrypted codes does not matter.
    let vault = Vault::new(&wrapping.unwrap_all(&keys).await?, 0)?;
    Ok(Some((vault.checkpoint_key(), vault.grant_key())))
}

/// The key of the rows that grant access, without the service. Creates the data keys of a new database.
///
/// # Errors
/// [`KeyringError`]; a wrong master key is [`KeyringError::Locked`].
#[boxed]
pub async fn open_grants(
    database: &PgConnectOptions,
    wrapping: &WrappingKeys,
) -> Result<Grants, KeyringError> {
    let pool = PgPool::connect_with(database.clone()).await?;
    let keys = create_missing(&pool, wrapping).await?;
    pool.close().await;
    Ok(Grants::of(unlock(wrapping, &keys).await?.grant_key()))
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.vault()).finish()
    }
}

async fn unlock(wrapping: &WrappingKeys, set: &DataKeySet) -> Result<Arc<Vault>, KeyringError> {
    let keys = wrapping.unwrap_all(&set.keys).await?;
    Ok(Arc::new(Vault::new(&keys, set.active_seals)?))
}
