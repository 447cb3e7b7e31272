//! Idempotency keys: scoped to partner and operation, stored as hashes.
//!
//! The text of a key is never logged or stored: partners put names into it.

use sha2::{Digest, Sha256};
use uuid::Uuid;
use vouchsafe_domain::idempotency::KeyHash;
use vouchsafe_domain::ids::PartnerId;

use super::headers::UniqueHeader;
use crate::secret::hidden;

/// Longest key in characters (contract: 1 to 255 visible ASCII characters).
pub const MAX_KEY_LENGTH: usize = 255;

/// The operation that a key belongs to. The discriminant is part of the stored hash: never reuse a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdempotencyScope {
    PlaceOrder = 1,
    RequestPayout = 2,
    /// An operator's top-up, by its reference.
    TopUp = 3,
    /// An operator's adjustment, by its reference.
    Adjustment = 4,
}

/// Why a request has no usable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The header is absent or empty.
    #[error("Idempotency-Key is missing")]
    Missing,
    /// Repeated, too long, or not visible ASCII.
    #[error("Idempotency-Key must appear once, as 1 to {MAX_KEY_LENGTH} visible ASCII characters")]
    Malformed,
}

/// The partner's key for one order or payout. `Debug` prints `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses the value of `Idempotency-Key`.
    ///
    /// # Errors
    /// [`KeyError::Missing`] without a value, [`KeyError::Malformed`] for an invalid one.
    pub fn parse(header: UniqueHeader<'_>) -> Result<Self, KeyError> {
        let text = match header {
            UniqueHeader::Missing | UniqueHeader::Single([]) => return Err(KeyError::Missing),
            UniqueHeader::Repeated => return Err(KeyError::Malformed),
            UniqueHeader::Single(text) => text,
        };
        if text.len() > MAX_KEY_LENGTH || !text.iter().all(u8::is_ascii_graphic) {
            return Err(KeyError::Malformed);
        }
        Ok(Self(text.iter().copied().map(char::from).collect()))
    }

    /// The hash under which the response is stored.
    #[must_use]
    pub fn hash_for(&self, partner_id: PartnerId, scope: IdempotencyScope) -> KeyHash {
        scoped_hash(partner_id, scope, &self.0)
    }
}

hidden!(IdempotencyKey);

/// The stored hash of a key or of an operator's reference: the first 16 bytes of SHA-256 over partner (16
/// bytes), scope (1 byte) and text. The fixed lengths keep the parts apart. For the reference of a wallet
/// entry `text` begins with the currency (`USD:…`), because references are unique per wallet and kind.
#[must_use]
pub fn scoped_hash(partner_id: PartnerId, scope: IdempotencyScope, text: &str) -> KeyHash {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(partner_id.as_uuid().as_bytes())
        .chain_update([scope as u8])
        .chain_update(text)
        .finalize()
        .into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    KeyHash(Uuid::from_bytes(half))
}

/// Method and path with their lengths, which keep them and the body apart in the message of a fingerprint.
pub(crate) fn frame(method: &str, path: &str) -> Vec<u8> {
    let length = |text: &str| (text.len() as u64).to_be_bytes();
    [
        &length(method)[..],
        method.as_bytes(),
        &length(path),
        path.as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn partner(byte: u8) -> PartnerId {
        PartnerId::from_uuid(Uuid::from_bytes([byte; 16]))
    }

    #[test]
    fn key_other_than_1_to_255_visible_characters_is_refused() {
        let (longest, too_long) = ("k".repeat(255), "k".repeat(256));
        for (text, expected) in [
            ("a", Ok(())),
            ("!~", Ok(())),
            ("order-2026/11/20#1 ", Err(KeyError::Malformed)),
            (&longest, Ok(())),
            (&too_long, Err(KeyError::Malformed)),
            ("", Err(KeyError::Missing)),
            (" ", Err(KeyError::Malformed)),
            ("a b", Err(KeyError::Malformed)),
            ("a\tb", Err(KeyError::Malformed)),
            ("\u{7f}", Err(KeyError::Malformed)),
            ("\0", Err(KeyError::Malformed)),
            ("clé", Err(KeyError::Malformed)),
        ] {
            assert_eq!(
                IdempotencyKey::parse(UniqueHeader::Single(text.as_bytes())).map(|_| ()),
                expected,
                "{text:?}"
            );
        }
        assert_eq!(
            IdempotencyKey::parse(UniqueHeader::Missing),
            Err(KeyError::Missing)
        );
        assert_eq!(
            IdempotencyKey::parse(UniqueHeader::Repeated),
            Err(KeyError::Malformed)
        );
        assert_eq!(
            IdempotencyKey::parse(UniqueHeader::Single(&[b'k'; 10 << 20])),
            Err(KeyError::Malformed)
        );
    }

    #[test]
    fn scoped_hash_differs_by_partner_scope_and_text() {
        use IdempotencyScope::{Adjustment, PlaceOrder, RequestPayout, TopUp};
        let mut hashes = HashSet::new();
        for text in ["k", "K", "kk", "\u{1}k"] {
            for scope in [PlaceOrder, RequestPayout, TopUp, Adjustment] {
                for byte in [0, 1, 2] {
                    assert!(
                        hashes.insert(scoped_hash(partner(byte), scope, text)),
                        "{text} {scope:?} {byte}"
                    );
                }
            }
        }
        let key = IdempotencyKey::parse(UniqueHeader::Single(b"k")).unwrap();
        assert!(hashes.contains(&key.hash_for(partner(1), PlaceOrder)));
    }

    #[test]
    fn stored_hashes_are_stable_across_versions() {
        let key = scoped_hash(partner(7), IdempotencyScope::PlaceOrder, "order-1");
        let message = [&[7; 16][..], &[1], b"order-1"].concat();
        assert_eq!(key.0.as_bytes()[..], Sha256::digest(message)[..16]);
    }

    #[test]
    fn debug_output_hides_the_key() {
        let key = IdempotencyKey::parse(UniqueHeader::Single(b"canary")).unwrap();
        assert_eq!(format!("{key:?}"), "IdempotencyKey(***)");
    }

    proptest! {
        #[test]
        fn key_of_any_bytes_does_not_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let plain = (1..=255).contains(&text.len()) && text.iter().all(|b| (0x21..=0x7e).contains(b));
            prop_assert_eq!(IdempotencyKey::parse(UniqueHeader::Single(&text)).is_ok(), plain);
        }

        #[test]
        fn framed_message_changes_when_bytes_move_between_parts(text in "[a-z/{]{2,12}", i in 0usize..12, j in 0usize..12) {
            let (i, j) = (i % text.len(), j % text.len());
            let (low, high) = (i.min(j), i.max(j));
            let moved = [frame(&text[..low], &text[low..high]), text.as_bytes()[high..].to_vec()].concat();
            prop_assert_ne!(moved, frame(&text, ""));
        }
    }
}
