//! Tests of parsing, hashing, validity and redaction of keys and secrets.

use std::convert::Infallible;

use time::macros::datetime;
use uuid::Uuid;

use super::*;

fn key_pair(byte: u8) -> ApiKeyPair {
    let Ok(key_pair) = generate_key_pair::<Infallible>(Environment::Sandbox, |bytes| {
        bytes.fill(byte);
        Ok(())
    });
    key_pair
}

#[test]
fn key_pair_generated_round_trips_through_text() {
    for (environment, prefix) in [
        (Environment::Sandbox, "vs_sandbox_"),
        (Environment::Production, "vs_live_"),
    ] {
        let ApiKeyPair { api_key, api_secret } = generate_key_pair(environment, getrandom::fill).unwrap();
        let text = api_key.to_string();
        assert!(text.starts_with(prefix), "{text}");
        assert_eq!(ApiKey::parse(text.as_bytes()), Ok(api_key.clone()));
        assert_eq!(api_key.environment(), environment);
        let again = ApiSecret::parse(api_secret.expose().as_bytes()).unwrap();
        assert_eq!(again.expose(), api_secret.expose());
        assert!(again.hash().matches(&api_secret.hash()));
    }
}

#[test]
fn key_pairs_generated_differ() {
    let (a, b) = (
        generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap(),
        generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap(),
    );
    assert_ne!(a.api_key, b.api_key);
    assert!(!a.api_secret.hash().matches(&b.api_secret.hash()));
}

#[test]
fn key_pair_without_randomness_is_an_error() {
    assert_eq!(
        generate_key_pair(Environment::Sandbox, |_| Err("none")).err(),
        Some("none")
    );
}

#[test]
fn malformed_key_is_refused() {
    let good = format!("vs_live_{}", "0a".repeat(16));
    assert!(ApiKey::parse(good.as_bytes()).is_ok());
    for text in [
        String::new(),
        "vs_live_".to_owned(),
        good.to_uppercase(),
        good.replace("0a", "0A"),
        good.replace("vs_live_", "vs_prod_"),
        format!("{good}0"),
        good[..good.len() - 1].to_owned(),
        format!(" {good}"),
        format!("{good}\n"),
        good.replacen('0', "g", 1),
        good.replacen("0a", "é", 1),
    ] {
        assert_eq!(
            ApiKey::parse(text.as_bytes()),
            Err(MalformedCredential),
            "{text:?}"
        );
    }
    assert_eq!(ApiKey::parse(b"vs_live_\xff\xfe"), Err(MalformedCredential));
}

#[test]
fn malformed_secret_is_refused() {
    let good = format!("vss_{}", "0a".repeat(32));
    assert!(ApiSecret::parse(good.as_bytes()).is_ok());
    for text in [
        "",
        "vss_",
        &good[4..],
        &good[..67],
        &format!("{good}0"),
        &good.to_uppercase(),
    ] {
        assert!(ApiSecret::parse(text.as_bytes()).is_err(), "{text:?}");
    }
}

#[test]
fn secret_hash_is_sha_256_of_the_text() {
    let secret = key_pair(0).api_secret;
    let expected: [u8; 32] = Sha256::digest(format!("vss_{}", "00".repeat(32))).into();
    assert!(secret.hash().matches(&ApiSecretHash::from_bytes(expected)));
    let mut last_bit = expected;
    last_bit[31] ^= 1;
    assert!(!secret.hash().matches(&ApiSecretHash::from_bytes(last_bit)));
}

#[test]
fn credential_is_live_from_its_issue_until_it_ends_or_is_revoked() {
    let (start, end) = (datetime!(2026-11-20 12:00 UTC), datetime!(2026-11-20 13:00 UTC));
    let second = time::Duration::SECOND;
    let base = key_pair(1).to_credential(PartnerId::from_uuid(Uuid::nil()), start);
    let bounded = Credential {
        not_after: Some(end),
        ..base.clone()
    };
    let revoked = Credential {
        revoked_at: Some(end),
        ..base.clone()
    };
    for (name, credential, now, live) in [
        ("issued by a clock ahead", &base, start - second, true),
        ("at the start", &base, start, true),
        ("unbounded", &base, end + second, true),
        ("before the end", &bounded, end - second, true),
        ("at the end", &bounded, end, false),
        ("revoked", &revoked, end + second, false),
        ("revoked by a clock ahead", &revoked, start, false),
    ] {
        assert_eq!(credential.is_live(now), live, "{name}");
    }
}

#[test]
fn first_use_is_awaited_after_rotation_only() {
    let now = datetime!(2026-11-20 12:00 UTC);
    let issued = key_pair(1).to_credential(PartnerId::generate(), now);
    let rotated = Credential {
        rotated_from: Some(CredentialId::generate()),
        ..issued.clone()
    };
    let used = Credential {
        first_used_at: Some(now),
        ..rotated.clone()
    };
    for (name, credential, awaited) in [
        ("issued", issued, false),
        ("rotated", rotated, true),
        ("used", used, false),
    ] {
        assert_eq!(credential.is_awaiting_first_use(), awaited, "{name}");
    }
}

#[test]
fn debug_output_hides_keys_and_secrets() {
    let key_pair = key_pair(0xab);
    let debug = format!(
        "{key_pair:?} {:?} {:?}",
        key_pair.api_secret.hash(),
        ApiSecret::parse(b"vss_abab").err()
    );
    assert!(debug.contains("***"));
    assert!(!debug.contains("abab"), "{debug}");
    let hash = hex::encode(key_pair.api_secret.hash().as_bytes());
    assert!(!debug.contains(&hash));
}
