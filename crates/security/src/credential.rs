//! API keys and secrets of partners, stored as hashes.
//!
//! A key is an identifier and stays out of logs. A secret exists in memory while it is generated and while a
//! request that carries it is checked, and is wiped afterwards. A fast hash (SHA-256) is sufficient: both are
//! long and random, and every request computes it.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::api_scope::ApiScopes;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use zeroize::Zeroizing;

use super::environment::Environment;
use super::secret::{hidden, secret_hash};

/// Random bytes of a key: enough to be unique and not guessable.
const KEY_BYTES: usize = 16;
/// Random bytes of a secret: as many as its HMAC-SHA256 can use.
const SECRET_BYTES: usize = 32;
/// Lets secret scanners find leaked secrets.
const SECRET_PREFIX: &str = "vss_";

/// The text is not an API key or secret. The error does not quote it: it may be a secret with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed API key or API secret")]
pub struct MalformedCredential;

/// The public half of a credential: `vs_sandbox_…` or `vs_live_…` and 32 hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    environment: Environment,
    text: String,
}

impl ApiKey {
    /// Parses a key of either environment.
    ///
    /// # Errors
    /// [`MalformedCredential`] for any text that [`generate_key_pair`] cannot produce.
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

    #[must_use]
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// The stored form, by which every request is looked up.
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

/// The secret half: `vss_` and 64 hex digits. Its text keys the HMAC of a signed request.
///
/// It has no `Serialize` and no `Display`, its `Debug` output is redacted, and it is wiped when dropped.
#[derive(Clone)]
pub struct ApiSecret(SecretString);

impl ApiSecret {
    /// Parses a secret.
    ///
    /// # Errors
    /// [`MalformedCredential`] for any text that [`generate_key_pair`] cannot produce.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedCredential> {
        let text = std::str::from_utf8(text).map_err(|_| MalformedCredential)?;
        if !is_prefixed_hex(text, SECRET_PREFIX, SECRET_BYTES) {
            return Err(MalformedCredential);
        }
        Ok(Self(SecretString::from(text)))
    }

    /// The stored form.
    #[must_use]
    pub fn hash(&self) -> ApiSecretHash {
        ApiSecretHash(Sha256::digest(self.expose().as_bytes()).into())
    }

    /// The text: for the one response that shows it to its owner, and as the HMAC key.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

hidden!(ApiSecret);

/// A new key and its secret: the only time at which the secret can be shown.
#[derive(Debug)]
pub struct ApiKeyPair {
    pub api_key: ApiKey,
    /// Sent in `X-API-Secret`, and keys the signatures.
    pub api_secret: ApiSecret,
}

impl ApiKeyPair {
    /// The stored form: a new credential of this partner, valid from `now` on.
    #[must_use]
    pub fn to_credential(&self, partner_id: PartnerId, now: OffsetDateTime) -> Credential {
        let credential_id = CredentialId::generate();
        Credential {
            credential_id,
            partner_id,
            key_hash: self.api_key.hash(),
            secret_hash: self.api_secret.hash(),
            allowlist: None,
            scopes: None,
            not_before: now,
            not_after: None,
            revoked_at: None,
            rotated_from: None,
            rotated_at: None,
            first_used_at: None,
            family_id: credential_id,
        }
    }
}

/// Generates a key and a secret from the random bytes of `fill` (`getrandom::fill` in the service).
///
/// # Errors
/// The error of `fill`.
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

/// SHA-256 of an API key: identifies a credential in memory and in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyHash([u8; 32]);

impl ApiKeyHash {
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

secret_hash! {
    /// SHA-256 of an API secret.
    ApiSecretHash
}

/// A stored credential of a partner.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Public id, in responses and in the audit trail.
    pub credential_id: CredentialId,
    pub partner_id: PartnerId,
    pub key_hash: ApiKeyHash,
    pub secret_hash: ApiSecretHash,
    /// Narrows the partner's list; `None` leaves it unchanged.
    pub allowlist: Option<Allowlist>,
    /// What it may do; `None` is everything.
    pub scopes: Option<ApiScopes>,
    /// When it was issued, by the clock of the issuing node. It is valid at once, also on a node whose clock
    /// is behind.
    pub not_before: OffsetDateTime,
    /// Valid before this time; `None` is until revoked.
    pub not_after: Option<OffsetDateTime>,
    pub revoked_at: Option<OffsetDateTime>,
    /// The credential that requested this one in a rotation; `None` if an operator issued it.
    pub rotated_from: Option<CredentialId>,
    /// When this credential last requested its successor.
    pub rotated_at: Option<OffsetDateTime>,
    /// Recorded only for credentials of a rotation.
    pub first_used_at: Option<OffsetDateTime>,
    /// The first of the credentials that led to this one by rotation; its own ID if an operator issued it.
    /// They share their rate limits.
    pub family_id: CredentialId,
}

impl Credential {
    /// Whether the first use is still to be recorded. Until then the predecessor may repeat the rotation,
    /// which withdraws this credential.
    #[must_use]
    pub const fn is_awaiting_first_use(&self) -> bool {
        self.rotated_from.is_some() && self.first_used_at.is_none()
    }

    /// Whether the credential is valid at `now`.
    #[must_use]
    pub fn is_live(&self, now: OffsetDateTime) -> bool {
        let ended = self.not_after.is_some_and(|end| now >= end);
        // Any `revoked_at` counts, even one in the future: the clock of the node that wrote it may be ahead
        // of this one.
        self.revoked_at.is_none() && !ended
    }
}

/// Whether `text` is the prefix followed by this many bytes in lower-case hex. Takes the same time for all
/// digits.
fn is_prefixed_hex(text: &str, prefix: &str, bytes: usize) -> bool {
    text.strip_prefix(prefix).is_some_and(|digits| {
        let is_hex = |byte: u8| byte.is_ascii_digit() | (b'a'..=b'f').contains(&byte);
        digits.len() == bytes * 2 && digits.bytes().fold(true, |all, byte| all & is_hex(byte))
    })
}

#[cfg(test)]
mod tests;
