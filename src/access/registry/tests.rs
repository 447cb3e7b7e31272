//! Who gets in, as partners and strangers meet it, and is a change in force with the next call?

use time::Duration;
use time::macros::datetime;

use super::*;
use crate::access::credential::{ApiKeyPair, generate_key_pair};
use crate::access::headers::UniqueHeader;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);
const HOME: &str = "203.0.113.7";

/// One partner with one credential, as its engineer holds them.
struct Persona {
    partner_id: PartnerId,
    credential: Credential,
    key: String,
    secret: String,
}

impl Persona {
    fn join(register: &AccessRegistry, allowlist: &[&str]) -> Self {
        Self::join_with(register, allowlist, |_| ())
    }

    fn join_with(register: &AccessRegistry, allowlist: &[&str], change: impl FnOnce(&mut Credential)) -> Self {
        let partner_id = PartnerId::generate();
        register.upsert_partner(partner(partner_id, allowlist, PartnerStatus::Active));
        Self::with_credential(register, partner_id, change)
    }

    fn with_credential(
        register: &AccessRegistry,
        partner_id: PartnerId,
        change: impl FnOnce(&mut Credential),
    ) -> Self {
        let minted = generate_key_pair(register.environment, getrandom::fill).unwrap();
        let mut credential = minted.to_credential(partner_id, NOW);
        let ApiKeyPair { api_key, api_secret } = minted;
        change(&mut credential);
        register.upsert_credential(credential.clone());
        Self {
            partner_id,
            credential,
            key: api_key.to_string(),
            secret: api_secret.expose().to_owned(),
        }
    }

    fn calls(&self, register: &AccessRegistry, from: &str) -> Result<Caller, AccessError> {
        presents(
            register,
            UniqueHeader::Single(self.key.as_bytes()),
            UniqueHeader::Single(self.secret.as_bytes()),
            from,
        )
    }
}

fn partner(partner_id: PartnerId, allowlist: &[&str], standing: PartnerStatus) -> PartnerAccess {
    let allowlist = Allowlist::parse(allowlist).unwrap();
    PartnerAccess {
        partner_id,
        name: "Acme".to_owned(),
        allowlist,
        scope: None,
        status: standing,
        limits: Limits::default(),
        cancel_window_s: 86_400,
        approval_rule: None,
    }
}

fn presents(register: &AccessRegistry, key: UniqueHeader<'_>, secret: UniqueHeader<'_>, from: &str) -> Result<Caller, AccessError> {
    let presented = AuthHeaders {
        api_key: key,
        api_secret: secret,
        timestamp: UniqueHeader::Missing,
        signature: UniqueHeader::Missing,
        idempotency_key: UniqueHeader::Missing,
    };
    register.authenticate(&presented, known(from), NOW)
}

fn known(address: &str) -> ClientAddress {
    ClientAddress::Known(address.parse().unwrap())
}

fn sandbox() -> AccessRegistry {
    AccessRegistry::new(Environment::Sandbox)
}

#[test]
fn the_right_key_and_secret_from_the_right_address_name_the_caller() {
    let register = sandbox();
    let (acme, other) = (
        Persona::join(&register, &[HOME]),
        Persona::join(&register, &[HOME]),
    );
    let caller = acme.calls(&register, HOME).unwrap();
    assert_eq!(caller.partner.partner_id, acme.partner_id);
    assert_eq!(caller.credential_id, acme.credential.credential_id);
    assert_eq!(caller.key_hash, acme.credential.key_hash);
    assert_eq!(caller.secret.expose(), acme.secret);
    assert_eq!(
        other.calls(&register, HOME).unwrap().partner.partner_id,
        other.partner_id
    );
}

#[test]
fn whatever_is_wrong_with_key_or_secret_looks_the_same() {
    let register = sandbox();
    let (acme, other) = (
        Persona::join(&register, &[HOME]),
        Persona::join(&register, &[HOME]),
    );
    let stranger = Persona::join(&sandbox(), &[HOME]);
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
            "bytes that are no text",
            UniqueHeader::Single(&[0xff; 43]),
            UniqueHeader::Single(&[0xff; 68]),
        ),
        ("unknown key", UniqueHeader::Single(stranger.key.as_bytes()), secret()),
        (
            "unknown pair",
            UniqueHeader::Single(stranger.key.as_bytes()),
            UniqueHeader::Single(stranger.secret.as_bytes()),
        ),
        (
            "another partner's secret",
            key(),
            UniqueHeader::Single(other.secret.as_bytes()),
        ),
        ("a wrong last byte", key(), UniqueHeader::Single(last_byte.as_bytes())),
        ("swapped", secret(), key()),
    ] {
        // From an address that is not welcome either: that is not told before the secret is right.
        for from in [HOME, "198.51.100.1"] {
            let refused = presents(&register, key, secret, from).err();
            assert_eq!(refused, Some(AccessError::InvalidCredentials), "{name}");
        }
    }
}

#[test]
fn a_credential_out_of_force_is_an_unknown_one() {
    let register = sandbox();
    let second = Duration::SECOND;
    let yet_to_come = Persona::join_with(&register, &[HOME], |c| c.not_before = NOW + second);
    let ended = Persona::join_with(&register, &[HOME], |c| c.not_after = Some(NOW));
    let revoked = Persona::join_with(&register, &[HOME], |c| c.revoked_at = Some(NOW));
    for persona in [yet_to_come, ended, revoked] {
        assert_eq!(
            persona.calls(&register, HOME).err(),
            Some(AccessError::InvalidCredentials)
        );
    }
    let ending = Persona::join_with(&register, &[HOME], |c| c.not_after = Some(NOW + second));
    assert!(ending.calls(&register, HOME).is_ok());
}

#[test]
fn a_key_of_the_other_environment_is_unknown_even_if_it_is_there() {
    let live = AccessRegistry::new(Environment::Production);
    let acme = Persona::join(&live, &[HOME]);
    assert!(acme.calls(&live, HOME).is_ok());
    let register = sandbox();
    register.upsert_partner(partner(acme.partner_id, &[HOME], PartnerStatus::Active));
    register.upsert_credential(acme.credential.clone());
    assert_eq!(
        acme.calls(&register, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
}

#[test]
fn a_credential_whose_partner_is_not_known_opens_nothing() {
    let register = sandbox();
    let orphan = Persona::with_credential(&register, PartnerId::generate(), |_| ());
    assert_eq!(
        orphan.calls(&register, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
}

#[test]
fn the_address_must_be_on_both_lists() {
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
        let register = sandbox();
        let persona = Persona::join_with(&register, partner, |c| c.allowlist = credential);
        let refused = persona.calls(&register, from).err();
        let partner_id = persona.partner_id;
        let expected = AccessError::IpNotAllowed {
            partner_id,
            address: known(from),
        };
        assert_eq!(refused, (!admitted).then_some(expected), "{partner:?} {from}");
    }
}

#[test]
fn suspension_and_a_new_list_are_in_force_with_the_next_call() {
    let register = sandbox();
    let acme = Persona::join(&register, &[HOME]);
    let partner_id = acme.partner_id;
    assert!(acme.calls(&register, HOME).is_ok());

    register.upsert_partner(partner(partner_id, &[HOME], PartnerStatus::Suspended));
    assert_eq!(
        acme.calls(&register, HOME).err(),
        Some(AccessError::PartnerSuspended { partner_id })
    );
    let elsewhere = acme.calls(&register, "198.51.100.1").err();
    assert!(
        matches!(elsewhere, Some(AccessError::IpNotAllowed { .. })),
        "the address comes first"
    );

    register.upsert_partner(partner(partner_id, &["198.51.100.1"], PartnerStatus::Active));
    assert!(acme.calls(&register, "198.51.100.1").is_ok());
    assert_eq!(
        *register.find_partner(partner_id).unwrap(),
        partner(partner_id, &["198.51.100.1"], PartnerStatus::Active)
    );
}

#[test]
fn in_a_rotation_both_credentials_work_until_the_old_one_ends() {
    let register = sandbox();
    let old = Persona::join(&register, &[HOME]);
    let new = Persona::with_credential(&register, old.partner_id, |_| ());
    register.upsert_credential(Credential {
        not_after: Some(NOW + Duration::DAY),
        ..old.credential.clone()
    });
    assert!(old.calls(&register, HOME).is_ok());
    assert!(new.calls(&register, HOME).is_ok());
    register.upsert_credential(Credential {
        not_after: Some(NOW),
        ..old.credential.clone()
    });
    assert_eq!(
        old.calls(&register, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
    assert!(new.calls(&register, HOME).is_ok());
}

#[test]
fn a_revocation_is_in_force_at_once_and_for_good() {
    let register = sandbox();
    let acme = Persona::join(&register, &[HOME]);
    let spare = Persona::with_credential(&register, acme.partner_id, |_| ());
    assert!(register.revoke(acme.credential.credential_id, NOW));
    assert_eq!(
        acme.calls(&register, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
    assert!(spare.calls(&register, HOME).is_ok());

    register.upsert_credential(acme.credential.clone());
    assert!(
        acme.calls(&register, HOME).is_err(),
        "a copy read before the revocation changes nothing"
    );
    assert!(
        register.revoke(acme.credential.credential_id, NOW + Duration::DAY),
        "a second call is no error"
    );
    assert!(!register.revoke(CredentialId::generate(), NOW));
}

#[test]
fn an_address_that_cannot_be_read_is_on_no_list() {
    let register = sandbox();
    let acme = Persona::join(&register, &["0.0.0.0/0", "::/0"]);
    let presented = AuthHeaders {
        api_key: UniqueHeader::Single(acme.key.as_bytes()),
        api_secret: UniqueHeader::Single(acme.secret.as_bytes()),
        timestamp: UniqueHeader::Missing,
        signature: UniqueHeader::Missing,
        idempotency_key: UniqueHeader::Missing,
    };
    let address = ClientAddress::Unreadable {
        proxy: HOME.parse().unwrap(),
    };
    let partner_id = acme.partner_id;
    assert_eq!(
        register.authenticate(&presented, address, NOW).err(),
        Some(AccessError::IpNotAllowed { partner_id, address })
    );
}

#[test]
fn the_first_use_is_awaited_until_it_is_noted() {
    let register = sandbox();
    let old = Persona::join(&register, &[HOME]);
    let new = Persona::with_credential(&register, old.partner_id, |c| {
        c.rotated_from = Some(old.credential.credential_id);
    });
    let awaited = |persona: &Persona| persona.calls(&register, HOME).unwrap().is_awaiting_first_use;
    assert!(!awaited(&old), "nobody asks when an issued one was first used");
    assert!(awaited(&new) && awaited(&new));
    register.record_first_use(new.credential.key_hash, NOW);
    assert!(!awaited(&new));
}

#[test]
fn what_has_ended_is_forgotten_after_an_hour() {
    let register = sandbox();
    let lasting = Persona::join(&register, &[HOME]);
    let end = |change: fn(&mut Credential)| Persona::join_with(&register, &[HOME], change);
    let ended = [
        end(|c| c.revoked_at = Some(NOW)),
        end(|c| c.not_after = Some(NOW)),
    ];
    for (hours, kept) in [(0, 3), (1, 1)] {
        register.evict_ended(NOW + ENDED_RETENTION * hours);
        assert_eq!(register.credentials.len(), kept, "after {hours} h");
    }
    assert!(!register.revoke(ended[0].credential.credential_id, NOW));
    assert!(lasting.calls(&register, HOME).is_ok());
}

#[test]
fn debug_text_never_shows_a_key_or_a_secret() {
    let register = sandbox();
    let acme = Persona::join(&register, &[HOME]);
    let caller = acme.calls(&register, HOME).unwrap();
    let debug = format!("{register:?} {caller:?} {:?}", acme.calls(&register, "::1").err());
    assert!(debug.contains("***"));
    let secret_hash = hex::encode(acme.credential.secret_hash.as_bytes());
    for hidden in [&acme.secret[4..], &acme.key["vs_sandbox_".len()..], &secret_hash] {
        assert!(!debug.contains(hidden), "{debug}");
    }
}
