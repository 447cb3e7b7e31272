//! Has this partner asked for this before, and for the same?
//!
//! The rule: a key counts for one partner at one endpoint, and no text that a partner may choose reaches into the
//! scope of another. Only a hash of the key is kept; its text is never logged, as partners put names into it.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;
use vouchsafe_actors::domain::idempotency::{Fingerprint, KeyHash};
use vouchsafe_actors::domain::ids::PartnerId;

use super::headers::UniqueHeader;

/// Longest key in characters (contract: 1 to 255 visible ASCII characters).
pub const MAX_KEY_LENGTH: usize = 255;

/// What a key is given for. The bytes are part of what is stored: a byte is never given to another endpoint.
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
    /// There is none, or an empty one.
    #[error("Idempotency-Key is missing")]
    Missing,
    /// It is there more than once, too long, or holds something else than visible ASCII.
    #[error("Idempotency-Key must appear once, as 1 to {MAX_KEY_LENGTH} visible ASCII characters")]
    Malformed,
}

/// The partner's name for one order or payout. Its `Debug` text is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads the value of `Idempotency-Key`.
    ///
    /// # Errors
    /// [`KeyError::Missing`] without a value, [`KeyError::Malformed`] for one that cannot be used.
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

    /// What the answer is kept under.
    #[must_use]
    pub fn hash_for(&self, partner_id: PartnerId, endpoint: IdempotencyScope) -> KeyHash {
        scoped_hash(partner_id, endpoint, &self.0)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(***)")
    }
}

/// Where a key, or an operator's reference, is kept: the first 16 bytes of SHA-256 over partner (16 bytes), endpoint
/// (1 byte) and text. The parts before the text have a fixed length, so none can run into the next. The reference of a
/// wallet's booking is given with its currency before it, `USD:…`, as each wallet counts its own.
#[must_use]
pub fn scoped_hash(partner_id: PartnerId, endpoint: IdempotencyScope, text: &str) -> KeyHash {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(partner_id.as_uuid().as_bytes())
        .chain_update([endpoint as u8])
        .chain_update(text)
        .finalize()
        .into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    KeyHash(Uuid::from_bytes(half))
}

/// Tells one request from another under the same key: SHA-256 of method, path and the body's bytes before any parsing,
/// the first two behind their length.
#[must_use]
pub fn fingerprint(method: &str, path: &str, body: &[u8]) -> Fingerprint {
    let digest = Sha256::new()
        .chain_update(length_prefix(method))
        .chain_update(method)
        .chain_update(length_prefix(path))
        .chain_update(path)
        .chain_update(body)
        .finalize();
    Fingerprint(digest.into())
}

fn length_prefix(text: &str) -> [u8; 8] {
    (text.len() as u64).to_be_bytes()
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
    fn a_key_is_one_to_255_visible_characters() {
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
        assert_eq!(IdempotencyKey::parse(UniqueHeader::Missing), Err(KeyError::Missing));
        assert_eq!(IdempotencyKey::parse(UniqueHeader::Repeated), Err(KeyError::Malformed));
        assert_eq!(
            IdempotencyKey::parse(UniqueHeader::Single(&[b'k'; 10 << 20])),
            Err(KeyError::Malformed)
        );
    }

    #[test]
    fn a_key_counts_for_one_partner_at_one_endpoint() {
        use IdempotencyScope::{Adjustment, PlaceOrder, RequestPayout, TopUp};
        let mut seen = HashSet::new();
        for text in ["k", "K", "kk", "\u{1}k"] {
            for endpoint in [PlaceOrder, RequestPayout, TopUp, Adjustment] {
                for byte in [0, 1, 2] {
                    assert!(
                        seen.insert(scoped_hash(partner(byte), endpoint, text)),
                        "{text} {endpoint:?} {byte}"
                    );
                }
            }
        }
        let key = IdempotencyKey::parse(UniqueHeader::Single(b"k")).unwrap();
        assert!(seen.contains(&key.hash_for(partner(1), PlaceOrder)));
    }

    #[test]
    fn what_is_stored_stays_the_same_from_build_to_build() {
        let key = scoped_hash(partner(7), IdempotencyScope::PlaceOrder, "order-1");
        let message = [&[7; 16][..], &[1], b"order-1"].concat();
        assert_eq!(key.0.as_bytes()[..], Sha256::digest(message)[..16]);

        let message = [
            &4u64.to_be_bytes()[..],
            b"POST",
            &14u64.to_be_bytes(),
            b"/api/v1/orders",
            b"{}",
        ]
        .concat();
        assert_eq!(
            fingerprint("POST", "/api/v1/orders", b"{}").0[..],
            Sha256::digest(message)[..]
        );
    }

    #[test]
    fn debug_text_never_shows_the_key() {
        let key = IdempotencyKey::parse(UniqueHeader::Single(b"canary")).unwrap();
        assert_eq!(format!("{key:?}"), "IdempotencyKey(***)");
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let plain = (1..=255).contains(&text.len()) && text.iter().all(|b| (0x21..=0x7e).contains(b));
            prop_assert_eq!(IdempotencyKey::parse(UniqueHeader::Single(&text)).is_ok(), plain);
        }

        #[test]
        fn bytes_moved_between_the_parts_give_another_fingerprint(text in "[a-z/{]{2,12}", i in 0usize..12, j in 0usize..12) {
            let (i, j) = (i % text.len(), j % text.len());
            let (low, high) = (i.min(j), i.max(j));
            let moved = fingerprint(&text[..low], &text[low..high], &text.as_bytes()[high..]);
            let whole = fingerprint(&text, "", b"");
            prop_assert_ne!(moved, whole);
        }
    }
}
