//! What does a partner present, and what is kept of it?
//!
//! The rule: the service keeps hashes alone. The key is an identifier that stays out of logs; the secret is seen when
//! it is made and while a request that carries it is checked, and is wiped from memory afterwards. A fast hash is
//! right here: both are random and long, so there is nothing to guess, and every request pays for it.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};
use zeroize::Zeroizing;

use super::allowlist::Allowlist;
use super::environment::Environment;

/// Random bytes in a key: it must be unique, and not found by trying.
const KEY_BYTES: usize = 16;
/// Random bytes in a secret: as many as the HMAC that it keys can use.
const SECRET_BYTES: usize = 32;
/// What a secret begins with, so that a scanner of leaked texts can find it.
const SECRET_PREFIX: &str = "vss_";

/// A text that is no key, or no secret. It says nothing more: the text may be a secret with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not in the form of an API key or an API secret")]
pub struct MalformedCredential;

/// The public half of a credential: `vs_sandbox_…` or `vs_live_…` and 32 hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    environment: Environment,
    text: String,
}

impl ApiKey {
    /// Reads a key of either environment.
    ///
    /// # Errors
    /// [`MalformedCredential`] for every text that [`mint`] would not have made.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedCredential> {
        let text = std::str::from_utf8(text).map_err(|_| MalformedCredential)?;
        let environment = [Environment::Sandbox, Environment::Production]
            .into_iter()
            .find(|environment| is_prefixed_hex(text, environment.key_prefix(), KEY_BYTES))
            .ok_or(MalformedCredential)?;
        Ok(Self {
            environment,
            text: text.to_owned(),
        })
    }

    /// The environment that its prefix names.
    #[must_use]
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// What is stored, and looked up at every request.
    #[must_use]
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(Sha256::digest(self.text.as_bytes()).into())
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}***)", self.environment.key_prefix())
    }
}

/// The secret half: `vss_` and 64 hex digits. Its text, as it was presented, keys the HMAC of a signed request.
///
/// It has no `Debug` text, no `Serialize` and no `Display`, and it is wiped when dropped.
#[derive(Clone)]
pub struct ApiSecret(SecretString);

impl ApiSecret {
    /// Reads a secret.
    ///
    /// # Errors
    /// [`MalformedCredential`] for every text that [`mint`] would not have made.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedCredential> {
        let text = std::str::from_utf8(text).map_err(|_| MalformedCredential)?;
        if !is_prefixed_hex(text, SECRET_PREFIX, SECRET_BYTES) {
            return Err(MalformedCredential);
        }
        Ok(Self(SecretString::from(text)))
    }

    /// What is stored.
    #[must_use]
    pub fn hash(&self) -> ApiSecretHash {
        ApiSecretHash(Sha256::digest(self.expose().as_bytes()).into())
    }

    /// The text itself: for the one answer that shows it to its owner, and as the key of the HMAC.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for ApiSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiSecret(***)")
    }
}

/// A key and its secret at the moment they are made: the only time at which the secret can be shown.
#[derive(Debug)]
pub struct ApiKeyPair {
    pub api_key: ApiKey,
    /// Goes into `X-API-Secret`, and keys the signatures.
    pub api_secret: ApiSecret,
}

impl ApiKeyPair {
    /// What is kept of it: a new credential of this partner, in force from `now` on.
    #[must_use]
    pub fn to_credential(&self, partner_id: PartnerId, now: OffsetDateTime) -> Credential {
        Credential {
            credential_id: CredentialId::generate(),
            partner_id,
            key_hash: self.api_key.hash(),
            secret_hash: self.api_secret.hash(),
            allowlist: None,
            not_before: now,
            not_after: None,
            revoked_at: None,
            rotated_from: None,
            rotated_at: None,
            first_used_at: None,
        }
    }
}

/// Makes a key and a secret out of the randomness that `fill` gives, in service `getrandom::fill`.
///
/// # Errors
/// Those of `fill`.
pub fn generate_key_pair<E>(
    environment: Environment,
    mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<ApiKeyPair, E> {
    let mut key = [0; KEY_BYTES];
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    fill(&mut key)?;
    fill(&mut *secret)?;
    let text = format!("{}{}", environment.key_prefix(), hex::encode(key));
    let digits = Zeroizing::new(hex::encode(secret.as_slice()));
    let secret_text = Zeroizing::new([SECRET_PREFIX, &digits].concat());
    let api_secret = ApiSecret(SecretString::from(secret_text.as_str()));
    Ok(ApiKeyPair {
        api_key: ApiKey { environment, text },
        api_secret,
    })
}

/// SHA-256 of an API key: names a credential in memory and in the database. 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyHash([u8; 32]);

impl ApiKeyHash {
    /// The hash with these bytes, as read from the database.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, as written to the database.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// SHA-256 of an API secret, 32 bytes. It has no `==`: [`ApiSecretHash::matches`] takes the same time for every answer.
#[derive(Clone, Copy)]
pub struct ApiSecretHash([u8; 32]);

impl ApiSecretHash {
    /// The hash with these bytes, as read from the database.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, as written to the database.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether both are hashes of one secret, in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for ApiSecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiSecretHash(***)")
    }
}

/// One key and secret of a partner, as they are kept.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Its public name, in answers and in the audit trail.
    pub credential_id: CredentialId,
    pub partner_id: PartnerId,
    pub key_hash: ApiKeyHash,
    pub secret_hash: ApiSecretHash,
    /// Narrows the partner's list; `None` leaves it as it is.
    pub allowlist: Option<Allowlist>,
    /// Works from this moment on.
    pub not_before: OffsetDateTime,
    /// Works up to this moment, exclusive; `None` is until revoked.
    pub not_after: Option<OffsetDateTime>,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
    /// Which credential asked for it, in a rotation; `None` is issued by an operator.
    pub rotated_from: Option<CredentialId>,
    /// When it last asked for the one that follows it.
    pub rotated_at: Option<OffsetDateTime>,
    /// When it was first used; kept for one that came from a rotation alone.
    pub first_used_at: Option<OffsetDateTime>,
}

impl Credential {
    /// Whether its first use is still to be written down: until then the one that asked for it may ask again, and this
    /// one is taken back.
    #[must_use]
    pub const fn is_awaiting_first_use(&self) -> bool {
        self.rotated_from.is_some() && self.first_used_at.is_none()
    }

    /// Whether it opens anything now.
    ///
    /// Revoked is revoked, whatever moment is written: it may have been written by a clock that runs ahead of this one.
    #[must_use]
    pub fn is_live(&self, now: OffsetDateTime) -> bool {
        let ended = self.not_after.is_some_and(|end| now >= end);
        self.revoked_at.is_none() && self.not_before <= now && !ended
    }
}

/// Whether a text is the prefix and that many bytes in lower-case hex, and nothing else.
fn is_prefixed_hex(text: &str, prefix: &str, bytes: usize) -> bool {
    text.strip_prefix(prefix).is_some_and(|digits| {
        digits.len() == bytes * 2 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests;
