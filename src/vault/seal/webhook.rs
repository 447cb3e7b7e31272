//! What signs the deliveries to an endpoint, and how is it kept?
//!
//! The rule: a secret is random, shown when it is made, and sealed for its endpoint alone (`bound.rs`), since it must be read
//! again to sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{SealError, Vault};
use crate::vault::random::{NoRandomness, fill};

/// Keeps the associated data of a webhook's secret apart from that of anything else.
const WEBHOOK_CONTEXT: &[u8] = b"vouchsafe webhook secret v1";

/// Bytes of a secret: the least that Standard Webhooks asks for, 192 bits, and a multiple of three, so that its text has no
/// padding.
const SECRET_BYTES: usize = 24;

/// What the text of a secret begins with.
const PREFIX: &str = "whsec_";

/// What signs the deliveries to an endpoint.
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

/// Why a sealed secret does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret of a webhook does not open: it was altered, belongs to another, or its data key is not loaded"
)]
pub struct OpenWebhookSecretError;

impl WebhookSecret {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES]);
        fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The key of the signatures.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0
    }

    /// The text that the partner is shown, once.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }
}

impl Vault {
    /// Seals the secret of an endpoint.
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

    /// Opens the secret of an endpoint.
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
    fn a_secret_reads_as_standard_webhooks_wants_it_and_is_not_printed() {
        let secret = WebhookSecret::generate().unwrap();
        let text = secret.text();
        let encoded = text.strip_prefix(PREFIX).unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), secret.key());
        assert_eq!((encoded.len(), encoded.contains('=')), (32, false));
        assert!(!format!("{secret:?}").contains(encoded));
        assert_ne!(*WebhookSecret::generate().unwrap().text(), *text);
    }
}
