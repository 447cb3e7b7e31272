//! Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Crates: base64 0.23,
//! hmac 0.13, sha2 0.11.
//!
//! `VOUCHSAFE_WEBHOOK_SECRET=whsec_… verify WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body`

use std::env::{args, var};
use std::error::Error;
use std::io::{Read as _, stdin};
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Returns whether one of the signatures is valid. The body is the raw bytes.
pub fn verify(
    secret: &str,
    [id, timestamp, signatures]: [&str; 3],
    body: &[u8],
    now: i64,
) -> Result<bool, Box<dyn Error>> {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_"))?;
    let mac = Hmac::<Sha256>::new_from_slice(&key)?
        .chain_update(format!("{id}.{timestamp}."))
        .chain_update(body);
    let authentic = signatures.split(' ').any(|one| {
        let bytes = one.strip_prefix("v1,").map(|text| STANDARD.decode(text));
        matches!(bytes, Some(Ok(bytes)) if mac.clone().verify_slice(&bytes).is_ok())
    });
    Ok(authentic && (now - timestamp.parse::<i64>()?).abs() <= 300)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = args().skip(1).collect();
    let [id, timestamp, signatures] = [0, 1, 2].map(|index| given.get(index).map_or("", String::as_str));
    let now = match given.get(3) {
        Some(now) => now.parse()?,
        None => i64::try_from(UNIX_EPOCH.elapsed()?.as_secs())?,
    };
    let mut body = Vec::new();
    stdin().read_to_end(&mut body)?;
    let secret = var("VOUCHSAFE_WEBHOOK_SECRET")?;
    if verify(&secret, [id, timestamp, signatures], &body, now)? {
        Ok(())
    } else {
        Err("the signature is wrong or the timestamp is not within 300 seconds of now".into())
    }
}
