//! Wrapping keys (key-encryption keys): the port through which data keys are wrapped, and the keys that a
//! process has loaded.
//!
//! A [`MasterKey`] wraps in this process; a key manager wraps with a key that never leaves it. During a
//! rotation a process has several wrapping keys loaded and unwraps each data key with the one that fits.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::data_key::{DataKey, KeyId, KeyPurpose, WrappedKey, WrongMasterKey};
use super::master_key::MasterKey;
use super::random::NoRandomness;

pub use super::wrapping_key_id::WrappingKeyId;

/// Why a data key was not wrapped or unwrapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrapError {
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error(transparent)]
    WrongMasterKey(#[from] WrongMasterKey),
    #[error("data key {key_id} is wrapped by the key {wrapped_by}, which is not loaded; loaded: {loaded}")]
    NotLoaded {
        key_id: KeyId,
        wrapped_by: WrappingKeyId,
        loaded: String,
    },
    /// The key manager failed. The text says what to do.
    #[error("{0}")]
    KeyManager(String),
}

/// The future of an operation on a wrapping key.
pub type WrapFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, WrapError>> + Send + 'a>>;

/// A key that wraps data keys. It binds each to its id and purpose.
pub trait WrappingKey: Send + Sync {
    /// Stays the same as long as the key can unwrap what it has wrapped.
    fn id(&self) -> WrappingKeyId;

    /// Whether the id of a row is that of this key.
    fn is_named_by(&self, id: &WrappingKeyId) -> bool {
        self.id() == *id
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> WrapFuture<'a, WrappedKey>;

    fn unwrap_key<'a>(&'a self, wrapped: &'a WrappedKey) -> WrapFuture<'a, DataKey>;
}

impl WrappingKey for MasterKey {
    fn id(&self) -> WrappingKeyId {
        Self::id(self)
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> WrapFuture<'a, WrappedKey> {
        Box::pin(async move { Ok(key.wrap(self)?) })
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a WrappedKey) -> WrapFuture<'a, DataKey> {
        Box::pin(async move { Ok(wrapped.unwrap_key(self)?) })
    }
}

/// The wrapping keys of a process. Clones share them.
#[derive(Clone)]
pub struct WrappingKeys {
    /// The key under which a rotation wraps all data keys; the others only unwrap.
    keys: Vec<Arc<dyn WrappingKey>>,
}

impl WrappingKeys {
    /// `current` wraps the keys of a new database and is the target of a rotation. The others are needed for
    /// data keys that have not been rewrapped yet.
    #[must_use]
    pub fn new(current: Arc<dyn WrappingKey>, others: Vec<Arc<dyn WrappingKey>>) -> Self {
        let mut keys = vec![current];
        for other in others {
            if keys.iter().all(|key| key.id() != other.id()) {
                keys.push(other);
            }
        }
        Self { keys }
    }

    /// The target of a rotation.
    #[must_use]
    pub fn current(&self) -> &dyn WrappingKey {
        &*self.keys[0]
    }

    /// The ids of all keys.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.id().to_string()).collect()
    }

    /// The id of each key that `is_due`, and whether it wraps a random data key and unwraps it again. A key
    /// manager may be unreachable, or refuse the token.
    pub async fn probe(
        &self,
        is_due: impl Fn(&WrappingKeyId) -> bool,
    ) -> Vec<(WrappingKeyId, Result<(), WrapError>)> {
        let mut results = Vec::with_capacity(self.keys.len());
        for key in self.keys.iter().filter(|key| is_due(&key.id())) {
            results.push((key.id(), probe(&**key).await));
        }
        results
    }

    /// Unwraps a data key with the key that fits.
    ///
    /// # Errors
    /// [`WrapError`] if that key is not loaded, the row was altered, or the key manager fails.
    pub async fn unwrap_key(&self, wrapped: &WrappedKey) -> Result<DataKey, WrapError> {
        self.unwrap_with(wrapped).await.map(|(key, _)| key)
    }

    /// Unwraps all data keys.
    ///
    /// # Errors
    /// Same as [`Self::unwrap_key`].
    pub async fn unwrap_all(&self, wrapped: &[WrappedKey]) -> Result<Vec<DataKey>, WrapError> {
        let mut keys = Vec::with_capacity(wrapped.len());
        for wrapped in wrapped {
            keys.push(self.unwrap_key(wrapped).await?);
        }
        Ok(keys)
    }

    /// Wraps a new data key like one of the database, so that a rotation alone decides which key wraps all of
    /// them. Without one, with the current key.
    ///
    /// # Errors
    /// Same as [`Self::unwrap_key`].
    pub async fn wrap_like(
        &self,
        existing: Option<&WrappedKey>,
        new: &DataKey,
    ) -> Result<WrappedKey, WrapError> {
        match existing {
            Some(existing) => {
                let (_, wrapping_key) = self.unwrap_with(existing).await?;
                wrapping_key.wrap(new).await
            }
            None => self.current().wrap(new).await,
        }
    }

    async fn unwrap_with(&self, wrapped: &WrappedKey) -> Result<(DataKey, &dyn WrappingKey), WrapError> {
        let mut failure = None;
        let keys = self.keys.iter().map(|key| &**key);
        for key in keys.filter(|key| key.is_named_by(&wrapped.wrapped_by)) {
            match key.unwrap_key(wrapped).await {
                Ok(data_key) => return Ok((data_key, key)),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| WrapError::NotLoaded {
            key_id: wrapped.key_id,
            wrapped_by: wrapped.wrapped_by.clone(),
            loaded: self.ids().join(", "),
        }))
    }
}

/// The number 0 is of no row: the ciphertext is worthless.
async fn probe(wrapping_key: &dyn WrappingKey) -> Result<(), WrapError> {
    let key = DataKey::generate(KeyId(0), KeyPurpose::Codes)?;
    let wrapped = wrapping_key.wrap(&key).await?;
    if wrapping_key.unwrap_key(&wrapped).await?.is_same_key(&key) {
        return Ok(());
    }
    Err(WrapError::KeyManager(format!(
        "{} does not return the data key that it wrapped",
        wrapping_key.id()
    )))
}

impl From<MasterKey> for WrappingKeys {
    fn from(master: MasterKey) -> Self {
        Self::new(Arc::new(master), Vec::new())
    }
}

impl fmt::Debug for WrappingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrappingKeys").field(&self.ids()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn master(byte: &str) -> MasterKey {
        MasterKey::parse(&byte.repeat(32)).unwrap()
    }

    fn keys(current: &str, others: &[&str]) -> WrappingKeys {
        let others = others
            .iter()
            .map(|byte| Arc::new(master(byte)) as Arc<dyn WrappingKey>);
        WrappingKeys::new(Arc::new(master(current)), others.collect())
    }

    /// Master keys never wait.
    fn finish<T>(future: impl Future<Output = T>) -> T {
        let Poll::Ready(output) = std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it waits")
        };
        output
    }

    fn data_key() -> DataKey {
        DataKey::generate(KeyId(3), KeyPurpose::Codes).unwrap()
    }

    #[test]
    fn key_that_fits_unwraps_whatever_the_order() {
        let key = data_key();
        let wrapped = key.wrap(&master("ab")).unwrap();
        for loaded in [keys("ab", &[]), keys("ab", &["cd"]), keys("cd", &["ef", "ab"])] {
            assert!(finish(loaded.unwrap_key(&wrapped)).unwrap().is_same_key(&key));
        }
        let other = keys("cd", &["ef"]);
        let error = finish(other.unwrap_key(&wrapped)).unwrap_err().to_string();
        for id in [master("ab").id(), master("cd").id(), master("ef").id()] {
            assert!(error.contains(id.as_str()), "{error}");
        }
    }

    #[test]
    fn new_key_is_wrapped_like_existing_ones_until_a_rotation() {
        let loaded = keys("cd", &["ab"]);
        let existing = data_key().wrap(&master("ab")).unwrap();
        let new = data_key();
        let wrapped = finish(loaded.wrap_like(Some(&existing), &new)).unwrap();
        assert!(wrapped.unwrap_key(&master("ab")).unwrap().is_same_key(&new));
        let first = finish(loaded.wrap_like(None, &new)).unwrap();
        assert!(first.unwrap_key(&master("cd")).unwrap().is_same_key(&new));
    }

    #[test]
    fn key_named_twice_is_loaded_once() {
        assert_eq!(
            keys("ab", &["ab", "cd"]).ids(),
            [master("ab").id().to_string(), master("cd").id().to_string()]
        );
    }
}
