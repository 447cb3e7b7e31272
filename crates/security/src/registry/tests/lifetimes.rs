//! Rotation, revocation, first use and end of credentials.

use super::*;

#[test]
fn rotation_keeps_both_credentials_until_the_old_one_ends() {
    let registry = sandbox();
    let old = Persona::join(&registry, &[HOME]);
    let new = Persona::with_credential(&registry, old.partner_id, |_| ());
    registry.upsert_credential(Credential {
        not_after: Some(NOW + Duration::DAY),
        ..old.credential.clone()
    });
    assert!(old.calls(&registry, HOME).is_ok());
    assert!(new.calls(&registry, HOME).is_ok());
    registry.upsert_credential(Credential {
        not_after: Some(NOW),
        ..old.credential.clone()
    });
    assert_eq!(
        old.calls(&registry, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
    assert!(new.calls(&registry, HOME).is_ok());
}

#[test]
fn revocation_applies_at_once_and_stays() {
    let registry = sandbox();
    let acme = Persona::join(&registry, &[HOME]);
    let spare = Persona::with_credential(&registry, acme.partner_id, |_| ());
    assert!(registry.revoke(acme.credential.credential_id, NOW));
    assert_eq!(
        acme.calls(&registry, HOME).err(),
        Some(AccessError::InvalidCredentials)
    );
    assert!(spare.calls(&registry, HOME).is_ok());

    registry.upsert_credential(acme.credential.clone());
    assert!(
        acme.calls(&registry, HOME).is_err(),
        "a copy read before the revocation does not undo it"
    );
    assert!(
        registry.revoke(acme.credential.credential_id, NOW + Duration::DAY),
        "a second revocation succeeds"
    );
    assert!(!registry.revoke(CredentialId::generate(), NOW));
}

#[test]
fn first_use_is_awaited_until_recorded() {
    let registry = sandbox();
    let old = Persona::join(&registry, &[HOME]);
    let new = Persona::with_credential(&registry, old.partner_id, |c| {
        c.rotated_from = Some(old.credential.credential_id);
    });
    let awaited = |persona: &Persona| persona.calls(&registry, HOME).unwrap().is_awaiting_first_use;
    assert!(
        !awaited(&old),
        "an issued credential does not await its first use"
    );
    assert!(awaited(&new) && awaited(&new));
    registry.record_first_use(new.credential.key_hash, NOW);
    assert!(!awaited(&new));
}

#[test]
fn ended_credentials_are_evicted_after_an_hour() {
    let registry = sandbox();
    let lasting = Persona::join(&registry, &[HOME]);
    let end = |change: fn(&mut Credential)| Persona::join_with(&registry, &[HOME], change);
    let ended = [
        end(|c| c.revoked_at = Some(NOW)),
        end(|c| c.not_after = Some(NOW)),
    ];
    for (hours, kept) in [(0, 3), (1, 1)] {
        registry.evict_ended(NOW + ENDED_RETENTION * hours);
        assert_eq!(registry.credentials.len(), kept, "after {hours} h");
    }
    assert!(!registry.revoke(ended[0].credential.credential_id, NOW));
    assert!(lasting.calls(&registry, HOME).is_ok());
}
