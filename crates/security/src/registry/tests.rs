//! Tests of authentication.

mod lifetimes;

use strum::VariantArray as _;
use time::Duration;
use time::macros::datetime;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::limits::Limits;

use super::*;
use crate::credential::{ApiKeyPair, generate_key_pair};
use crate::headers::UniqueHeader;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);
const HOME: &str = "203.0.113.7";

/// A partner with one credential, as its client holds them.
struct Persona {
    partner_id: PartnerId,
    credential: Credential,
    key: String,
    secret: String,
}

impl Persona {
    fn join(registry: &AccessRegistry, allowlist: &[&str]) -> Self {
        Self::join_with(registry, allowlist, |_| ())
    }

    fn join_with(
        registry: &AccessRegistry,
        allowlist: &[&str],
        change: impl FnOnce(&mut Credential),
    ) -> Self {
        let partner_id = PartnerId::generate();
        registry.upsert_partner(partner(partner_id, allowlist, PartnerStatus::Active));
        Self::with_credential(registry, partner_id, change)
    }

    fn with_credential(
        registry: &AccessRegistry,
        partner_id: PartnerId,
        change: impl FnOnce(&mut Credential),
    ) -> Self {
        let key_pair = generate_key_pair(registry.environment, getrandom::fill).unwrap();
        let mut credential = key_pair.to_credential(partner_id, NOW);
        let ApiKeyPair { api_key, api_secret } = key_pair;
        change(&mut credential);
        registry.upsert_credential(credential.clone());
        Self {
            partner_id,
            credential,
            key: api_key.to_string(),
            secret: api_secret.expose().to_owned(),
        }
    }

    fn calls(&self, registry: &AccessRegistry, from: &str) -> Result<Caller, AccessError> {
        self.calls_class(registry, from, RequestClass::General)
    }

    fn calls_class(
        &self,
        registry: &AccessRegistry,
        from: &str,
        class: RequestClass,
    ) -> Result<Caller, AccessError> {
        registry.authenticate(&self.headers(), known(from), class, NOW)
    }

    fn headers(&self) -> AuthHeaders<'_> {
        let [key, secret] = [&self.key, &self.secret].map(|text| UniqueHeader::Single(text.as_bytes()));
        headers(key, secret)
    }
}

fn partner(partner_id: PartnerId, allowlist: &[&str], status: PartnerStatus) -> PartnerAccess {
    let allowlist = Allowlist::parse(allowlist).unwrap();
    PartnerAccess {
        partner_id,
        name: "Acme".to_owned(),
        allowlist,
        scope: None,
        status,
        limits: Limits::default(),
        ceilings: Limits::default(),
        cancel_window_s: 86_400,
        approval_rule: None,
        caps: None,
    }
}

fn authenticate_with(
    registry: &AccessRegistry,
    key: UniqueHeader<'_>,
    secret: UniqueHeader<'_>,
    from: &str,
) -> Result<Caller, AccessError> {
    registry.authenticate(&headers(key, secret), known(from), RequestClass::General, NOW)
}

const fn headers<'a>(key: UniqueHeader<'a>, secret: UniqueHeader<'a>) -> AuthHeaders<'a> {
    AuthHeaders {
        api_key: key,
        api_secret: secret,
        timestamp: UniqueHeader::Missing,
        signature: UniqueHeader::Missing,
        idempotency_key: UniqueHeader::Missing,
    }
}

fn known(address: &str) -> ClientAddress {
    ClientAddress::Known(address.parse().unwrap())
}

fn sandbox() -> AccessRegistry {
    AccessRegistry::new(Environment::Sandbox)
}

#[test]
fn valid_credentials_from_an_allowed_address_identify_the_caller() {
    let registry = sandbox();
    let (acme, other) = (
        Persona::join(&registry, &[HOME]),
        Persona::join(&registry, &[HOME]),
    );
    let caller = acme.calls(&registry, HOME).unwrap();
    assert_eq!(caller.partner.partner_id, acme.partner_id);
    assert_eq!(caller.credential_id, acme.credential.credential_id);
    assert_eq!(caller.key_hash, acme.credential.key_hash);
    assert_eq!(caller.secret.expose(), acme.secret);
    assert_eq!(
        other.calls(&registry, HOME).unwrap().partner.partner_id,
        other.partner_id
    );
}

#[test]
fn invalid_credentials_of_any_kind_give_the_same_error() {
    let registry = sandbox();
    let (acme, other) = (
        Persona::join(&registry, &[HOME]),
        Persona::join(&registry, &[HOME]),
    );
    let unknown = Persona::join(&sandbox(), &[HOME]);
    let key = || UniqueHeader::Single(acme.key.as_bytes());
    let secret = || UniqueHeader::Single(acme.secret.as_bytes());
    let last_byte = format!(
        "{}{}",
        &acme.secret[..67],
        if acme.secret.ends_with('0') { '1' } else { '0' }
    );
    for (name, key, secret) in [
        ("no key", UniqueHeader::Missing, secret()),
        ("no secret", key(), UniqueHeader::Missing),
        ("neither", UniqueHeader::Missing, UniqueHeader::Missing),
        ("key twice", UniqueHeader::Repeated, secret()),
        ("secret twice", key(), UniqueHeader::Repeated),
        ("malformed key", UniqueHeader::Single(b"key"), secret()),
        ("malformed secret", key(), UniqueHeader::Single(b"secret")),
        (
            "bytes that are not UTF-8",
            UniqueHeader::Single(&[0xff; 43]),
            UniqueHeader::Single(&[0xff; 68]),
        ),
        (
            "unknown key",
            UniqueHeader::Single(unknown.key.as_bytes()),
            secret(),
        ),
        (
            "unknown pair",
            UniqueHeader::Single(unknown.key.as_bytes()),
            UniqueHeader::Single(unknown.secret.as_bytes()),
        ),
        (
            "another partner's secret",
            key(),
            UniqueHeader::Single(other.secret.as_bytes()),
        ),
        (
            "a wrong last byte",
            key(),
            UniqueHeader::Single(last_byte.as_bytes()),
        ),
        ("swapped", secret(), key()),
    ] {
        // Also from an address that is not allowed: the secret is checked first.
        for from in [HOME, "198.51.100.1"] {
            let refused = authenticate_with(&registry, key, secret, from).err();
            assert_eq!(refused, Some(AccessError::InvalidCredentials), "{name}");
        }
    }
}

#[test]
fn credential_outside_its_validity_is_refused() {
    let registry = sandbox();
    let second = Duration::SECOND;
    let ended = Persona::join_with(&registry, &[HOME], |c| c.not_after = Some(NOW));
    let revoked = Persona::join_with(&registry, &[HOME], |c| c.revoked_at = Some(NOW));
    for persona in [ended, revoked] {
        assert_eq!(
            persona.calls(&registry, HOME).err(),
            Some(AccessError::InvalidCredentials)
        );
    }
    let ending = Persona::join_with(&registry, &[HOME], |c| c.not_after = Some(NOW + second));
    let by_a_fast_clock = Persona::join_with(&registry, &[HOME], |c| c.not_before = NOW + Duration::HOUR);
    assert!(ending.calls(&registry, HOME).is_ok() && by_a_fast_clock.calls(&registry, HOME).is_ok());
}

#[test]
fn key_of_the_other_environment_is_refused() {
    let live = AccessRegistry::new(Environment::Production);
    let acme = Persona::join(&live, &[HOME]);
    assert!(acme.calls(&live, HOME).is_ok());
    let registry = sandbox();
    registry.upsert_partner(partner(acme.partner_id, &[HOME], PartnerStatus::Active));
    registry.upsert_credential(acme.credential.clone());
    assert_eq!(
        acme.calls(&registry, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
}

#[test]
fn credential_of_an_unknown_partner_is_refused() {
    let registry = sandbox();
    let orphan = Persona::with_credential(&registry, PartnerId::generate(), |_| ());
    assert_eq!(
        orphan.calls(&registry, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
}

#[test]
fn address_must_be_on_both_allowlists() {
    let narrow = |list: &'static [&'static str]| Some(Allowlist::parse(list).unwrap());
    for (partner, credential, from, admitted) in [
        (&["203.0.113.0/24"][..], None, HOME, true),
        (&["203.0.113.0/24"], None, "::ffff:203.0.113.7", true),
        (&["203.0.113.0/24"], None, "198.51.100.1", false),
        (&[], None, HOME, false),
        (&["203.0.113.0/24"], narrow(&[HOME]), HOME, true),
        (&["203.0.113.0/24"], narrow(&[HOME]), "203.0.113.8", false),
        (&["203.0.113.0/24"], narrow(&[]), HOME, false),
        (&["203.0.113.0/24"], narrow(&["0.0.0.0/0"]), "198.51.100.1", false),
        (&[], narrow(&["0.0.0.0/0"]), HOME, false),
    ] {
        let registry = sandbox();
        let persona = Persona::join_with(&registry, partner, |c| c.allowlist = credential);
        let refused = persona.calls(&registry, from).err();
        let expected = AccessError::IpNotAllowed {
            credential: HeldCredential::of(&persona.credential),
            address: known(from),
        };
        assert_eq!(refused, (!admitted).then_some(expected), "{partner:?} {from}");
    }
}

#[test]
fn suspension_and_allowlist_apply_to_the_next_call() {
    let registry = sandbox();
    let acme = Persona::join(&registry, &[HOME]);
    let partner_id = acme.partner_id;
    assert!(acme.calls(&registry, HOME).is_ok());

    let suspended = |codes_blocked| partner(partner_id, &[HOME], PartnerStatus::Suspended { codes_blocked });
    registry.upsert_partner(suspended(false));
    assert_eq!(
        acme.calls(&registry, HOME).err(),
        Some(AccessError::PartnerSuspended { partner_id })
    );
    let refusal = acme.calls(&registry, "198.51.100.1").err();
    assert!(
        matches!(refusal, Some(AccessError::IpNotAllowed { .. })),
        "the address is checked first"
    );
    let mut classes = RequestClass::VARIANTS.to_vec();
    classes.retain(|class| acme.calls_class(&registry, HOME, *class).is_ok());
    assert_eq!(classes, [RequestClass::Vouchers], "what it has paid for");
    registry.upsert_partner(suspended(true));
    assert_eq!(
        acme.calls_class(&registry, HOME, RequestClass::Vouchers).err(),
        Some(AccessError::PartnerSuspended { partner_id })
    );

    registry.upsert_partner(partner(partner_id, &["198.51.100.1"], PartnerStatus::Active));
    assert!(acme.calls(&registry, "198.51.100.1").is_ok());
    assert_eq!(
        *registry.find_partner(partner_id).unwrap(),
        partner(partner_id, &["198.51.100.1"], PartnerStatus::Active)
    );
}

#[test]
fn unreadable_address_is_refused() {
    let registry = sandbox();
    let acme = Persona::join(&registry, &["0.0.0.0/0", "::/0"]);
    let address = ClientAddress::Unreadable {
        proxy: HOME.parse().unwrap(),
    };
    let credential = HeldCredential::of(&acme.credential);
    let refused = registry.authenticate(&acme.headers(), address, RequestClass::General, NOW);
    assert_eq!(
        refused.err(),
        Some(AccessError::IpNotAllowed { credential, address })
    );
}

#[test]
fn debug_output_hides_keys_and_secrets() {
    let registry = sandbox();
    let acme = Persona::join(&registry, &[HOME]);
    let caller = acme.calls(&registry, HOME).unwrap();
    let debug = format!("{registry:?} {caller:?} {:?}", acme.calls(&registry, "::1").err());
    assert!(debug.contains("***"));
    let secret_hash = hex::encode(acme.credential.secret_hash.as_bytes());
    for hidden in [&acme.secret[4..], &acme.key["vs_sandbox_".len()..], &secret_hash] {
        assert!(!debug.contains(hidden), "{debug}");
    }
}
