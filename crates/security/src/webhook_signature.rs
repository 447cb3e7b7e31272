//! Signatures of webhooks and of audit exports: two headers from the same key; a receiver verifies either.
//!
//! | Header | Signed content |
//! |---|---|
//! | `webhook-signature: v1,<base64>` | `<webhook-id>.<webhook-timestamp>.<body>` (Standard Webhooks) |
//! | `X-Signature: t=<timestamp>,v1=<hex>` | `<timestamp>.<body>`, in the style of request signatures |
//!
//! The timestamp is the attempt's, the id is that of the event or the batch. During a secret rotation both
//! headers carry two signatures, the new one first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac as _;

use crate::secret::keyed_hash;

/// Values of the headers of a signed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHeaders {
    pub timestamp: String,
    pub webhook_signature: String,
    pub x_signature: String,
}

/// Signs a body under each key. `timestamp` is Unix time in seconds.
#[must_use]
pub fn sign(id: &str, timestamp: i64, body: &[u8], keys: &[&[u8]]) -> SignatureHeaders {
    let timestamp = timestamp.to_string();
    let standard = keys.iter().map(|key| {
        let mac = mac(key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(mac))
    });
    let ours = keys.iter().map(|key| {
        format!(
            ",v1={}",
            hex::encode(mac(key, &[timestamp.as_bytes(), b".", body]))
        )
    });
    SignatureHeaders {
        webhook_signature: standard.collect::<Vec<_>>().join(" "),
        x_signature: format!("t={timestamp}{}", ours.collect::<String>()),
        timestamp,
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = keyed_hash(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_standard_webhooks_example() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body, &[&key]);
        assert_eq!(
            signed.webhook_signature,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(signed.timestamp, "1614265330");
    }

    #[test]
    fn rotation_signs_with_both_keys_new_one_first() {
        let both = sign("evt_1", 1_700_000_000, b"{}", &[b"new", b"old"]);
        let new = sign("evt_1", 1_700_000_000, b"{}", &[b"new"]);
        let old = sign("evt_1", 1_700_000_000, b"{}", &[b"old"]);
        assert_eq!(
            both.webhook_signature,
            format!("{} {}", new.webhook_signature, old.webhook_signature)
        );
        let (_, old_hex) = old.x_signature.split_once(',').unwrap();
        assert_eq!(both.x_signature, format!("{},{old_hex}", new.x_signature));
        assert!(new.x_signature.starts_with("t=1700000000,v1="));
    }
}
