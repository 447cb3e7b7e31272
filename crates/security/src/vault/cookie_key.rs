//! Keyed hash of cookies that begin a sign-in: a browser cannot make or change one.
//!
//! The key is derived from the blind index's key, so any node finishes what another one began.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;

use super::mac_key::mac_key;

/// Separates the derived key.
pub(super) const COOKIE_CONTEXT: &[u8] = b"vouchsafe sign-in cookie v1";

const MAC_BYTES: usize = 32;

mac_key! {
    /// The key of signed cookies.
    CookieKey
}

impl CookieKey {
    /// The text with its HMAC-SHA-256, in characters that a cookie may have. The text stays readable for the
    /// browser.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let mac = self.0.clone().chain_update(text).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&mac[..], text.as_bytes()].concat())
    }

    /// The text of a cookie that this key has signed.
    #[must_use]
    pub fn verify(&self, cookie: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (mac, text) = bytes.split_first_chunk::<MAC_BYTES>()?;
        let computed = self.0.clone().chain_update(text);
        // In constant time.
        computed.verify_slice(mac).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_verified_by_its_key_and_unchanged_only() {
        let key = CookieKey::from_bytes([1; 32]);
        let cookie = key.sign("state\n/orders?a=b");
        assert!(!cookie.contains([';', ' ', ',', '"', '=']), "{cookie}");
        assert_eq!(key.verify(&cookie).as_deref(), Some("state\n/orders?a=b"));
        assert_eq!(CookieKey::from_bytes([2; 32]).verify(&cookie), None);
        for position in 0..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.verify(&changed), None, "{position}");
        }
        for forged in ["", "A", "state", &cookie[..43], &"A".repeat(86)] {
            assert_eq!(key.verify(forged), None, "{forged}");
        }
    }
}
