//! Webhook signing secrets: random, shown once, encrypted and bound to their endpoint (`bound.rs`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{SealError, Vault};
use crate::secret::hidden;
use crate::vault::random::{NoRandomness, fill};

/// Domain separation from other encrypted values.
const WEBHOOK_CONTEXT: &[u8] = b"vouchsafe webhook secret v1";

/// The minimum of Standard Webhooks, 192 bits, and a multiple of three, so that the base64 text has no
/// padding.
const SECRET_BYTES: usize = 24;

const PREFIX: &str = "whsec_";

/// The key that signs deliveries to an endpoint, or batches of the audit export.
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

hidden!(WebhookSecret);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot decrypt the webhook secret: it was altered, belongs to another endpoint, or its data key is not loaded"
)]
pub struct OpenWebhookSecretError;

impl WebhookSecret {
    /// Generates a random secret.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES]);
        fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads a secret that an operator chose: at least [`SECRET_BYTES`] in base64, with or without the
    /// prefix. `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(PREFIX).unwrap_or(text);
        let key = Zeroizing::new(STANDARD.decode(text).ok()?);
        (key.len() >= SECRET_BYTES).then_some(Self(key))
    }

    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0
    }

    /// The text that the partner sees once.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }
}

impl Vault {
    /// Encrypts the secret of an endpoint.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_webhook_secret(
        &self,
        webhook_id: Uuid,
        secret: &WebhookSecret,
    ) -> Result<Vec<u8>, SealError> {
        self.seal_bound(WEBHOOK_CONTEXT, webhook_id, &secret.0)
    }

    /// Decrypts the secret of an endpoint.
    ///
    /// # Errors
    /// [`OpenWebhookSecretError`].
    pub fn open_webhook_secret(
        &self,
        webhook_id: Uuid,
        sealed: &[u8],
    ) -> Result<WebhookSecret, OpenWebhookSecretError> {
        self.open_bound(WEBHOOK_CONTEXT, webhook_id, sealed)
            .map(WebhookSecret)
            .ok_or(OpenWebhookSecretError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_follows_standard_webhooks_and_is_not_printed() {
        let secret = WebhookSecret::generate().unwrap();
        let text = secret.text();
        let encoded = text.strip_prefix(PREFIX).unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), secret.key());
        assert_eq!((encoded.len(), encoded.contains('=')), (32, false));
        assert!(!format!("{secret:?}").contains(encoded));
        assert_ne!(*WebhookSecret::generate().unwrap().text(), *text);
        for text in [&**text, encoded] {
            assert_eq!(WebhookSecret::parse(text).unwrap().key(), secret.key());
        }
        for text in ["", "hidden", &encoded[..28]] {
            assert!(WebhookSecret::parse(text).is_none(), "{text}");
        }
    }
}
