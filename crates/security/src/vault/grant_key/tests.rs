//! Which fields the HMACs cover, and the text from which they are computed.

use serde::de::DeserializeOwned;
use time::Duration;
use vouchsafe_domain::api_scope::{ApiScope, ApiScopes};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::operator_session::SignInMethod;

use super::*;
use crate::credential::{ApiKeyHash, ApiSecretHash};

const AT: OffsetDateTime = datetime!(2026-11-20 12:00:00.123456 UTC);

fn credential() -> Credential {
    Credential {
        credential_id: CredentialId::generate(),
        partner_id: PartnerId::generate(),
        key_hash: ApiKeyHash::from_bytes([1; 32]),
        secret_hash: ApiSecretHash::from_bytes([2; 32]),
        allowlist: Some(Allowlist::parse(&["203.0.113.0/24"]).unwrap()),
        scopes: Some(ApiScopes::from_iter([ApiScope::Read])),
        not_before: AT,
        not_after: Some(AT),
        revoked_at: None,
        rotated_from: Some(CredentialId::generate()),
        rotated_at: None,
        first_used_at: None,
        family_id: CredentialId::generate(),
    }
}

#[test]
fn mac_covers_key_and_every_field_of_a_credential_that_grants_something() {
    let (key, right) = (GrantKey::from_bytes([1; 32]), credential());
    let of = |credential: &Credential| {
        let labels: Option<Vec<_>> = credential
            .scopes
            .map(|scopes| scopes.iter().map(|scope| scope.into_str()).collect());
        Grant::of_credential(credential, labels.as_deref())
    };
    let grant = of(&right);
    let mac = key.mac(&grant);
    assert!(key.is_mac_of(Some(&mac), &grant));
    assert!(!GrantKey::from_bytes([2; 32]).is_mac_of(Some(&mac), &grant));
    assert!(!key.is_mac_of(None, &grant) && !key.is_mac_of(Some(&mac[1..]), &grant));
    let forgeries: [fn(&mut Credential); 9] = [
        |forged| forged.credential_id = CredentialId::generate(),
        |forged| forged.partner_id = PartnerId::generate(),
        |forged| forged.key_hash = ApiKeyHash::from_bytes([3; 32]),
        |forged| forged.secret_hash = ApiSecretHash::from_bytes([3; 32]),
        |forged| forged.allowlist = None,
        |forged| forged.scopes = None,
        |forged| forged.not_after = None,
        |forged| forged.rotated_from = None,
        |forged| forged.family_id = CredentialId::generate(),
    ];
    for forge in forgeries {
        let mut forged = right.clone();
        forge(&mut forged);
        assert!(!key.is_mac_of(Some(&mac), &of(&forged)), "{forged:?}");
    }
    let mut used = right;
    used.first_used_at = Some(AT);
    used.rotated_at = Some(AT);
    assert!(key.is_mac_of(Some(&mac), &of(&used)));
    let labels = [&["read"][..], &["read", "refunds"], &["readrefunds"], &[]];
    let grants = labels.map(|labels| Grant::of_credential(&used, Some(labels)));
    for (n, grant) in grants.iter().enumerate() {
        assert!(!grants[..n].contains(grant), "{n}");
    }
}

#[test]
fn grants_of_operators_differ_in_every_field_and_kind() {
    let account = OperatorAccount {
        name: "jane".parse().unwrap(),
        role: Role::Viewer,
        disabled: false,
        active: true,
        created_at: AT,
    };
    let sam: OperatorName = "sam".parse().unwrap();
    let (one, other) = ([1; 16], [2; 16]);
    let (hash, other_hash) = (OperatorTokenHash::of(b"a"), OperatorTokenHash::of(b"b"));
    let token = TokenGrant {
        token_id: &one,
        operator: &account.name,
        hash: hash.as_bytes(),
        expires_at: Some(AT),
        session_id: None,
        activation: None,
    };
    let identity = |issuer: &str, subject: &str| OperatorIdentity {
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
    };
    let later = AT + Duration::MICROSECOND;
    let by_link = SessionAuthentication {
        method: SignInMethod::Link,
        at: None,
    };
    let by_provider = |at| SessionAuthentication {
        method: SignInMethod::Oidc,
        at,
    };
    let grants = [
        Grant::of_operator(&account),
        Grant::of_operator(&OperatorAccount {
            name: sam.clone(),
            ..account.clone()
        }),
        Grant::of_operator(&OperatorAccount {
            role: Role::Admin,
            ..account.clone()
        }),
        Grant::of_operator(&OperatorAccount {
            disabled: true,
            ..account.clone()
        }),
        Grant::of_operator(&OperatorAccount {
            active: false,
            ..account.clone()
        }),
        Grant::of_token(&token),
        Grant::of_token(&TokenGrant {
            token_id: &other,
            ..token
        }),
        Grant::of_token(&TokenGrant {
            operator: &sam,
            ..token
        }),
        Grant::of_token(&TokenGrant {
            hash: other_hash.as_bytes(),
            ..token
        }),
        Grant::of_token(&TokenGrant {
            expires_at: None,
            ..token
        }),
        Grant::of_token(&TokenGrant {
            session_id: Some(&one),
            ..token
        }),
        Grant::of_token(&TokenGrant {
            activation: Some(hash.as_bytes()),
            ..token
        }),
        Grant::of_session(&one, &account.name, &hash, AT, by_link),
        Grant::of_session(&other, &account.name, &hash, AT, by_link),
        Grant::of_session(&one, &sam, &hash, AT, by_link),
        Grant::of_session(&one, &account.name, &other_hash, AT, by_link),
        Grant::of_session(&one, &account.name, &hash, later, by_link),
        Grant::of_session(&one, &account.name, &hash, AT, by_provider(None)),
        Grant::of_session(&one, &account.name, &hash, AT, by_provider(Some(AT))),
        Grant::of_session(&one, &account.name, &hash, AT, by_provider(Some(later))),
        Grant::of_sign_in_link(&account.name, &hash, AT),
        Grant::of_sign_in_link(&sam, &hash, AT),
        Grant::of_sign_in_link(&account.name, &other_hash, AT),
        Grant::of_sign_in_link(&account.name, &hash, later),
        Grant::of_identity(&identity("a", "b"), &account.name),
        Grant::of_identity(&identity("ab", ""), &account.name),
        Grant::of_identity(&identity("a", "b"), &sam),
    ];
    for (n, grant) in grants.iter().enumerate() {
        assert!(!grants[..n].contains(grant), "{n}");
    }
}

fn parse<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap()
}

fn partner() -> Partner {
    let mut partner = Partner::new(
        "Acme".to_owned(),
        Allowlist::parse(&["203.0.113.0/24"]).unwrap(),
        AT,
    );
    partner.partner_id = "ptn_01900000000070008000000000000001".parse().unwrap();
    partner.limits = parse(r#"{ "orders": { "quota": 5, "window_s": 60 } }"#);
    partner.ceilings = parse(r#"{ "orders": { "quota": 9, "window_s": 60 } }"#);
    partner.approval_rule = parse(r#"{ "amount_over": { "USD": "100.00" }, "first_orders": 3 }"#);
    partner.caps = parse(r#"{ "pending_orders": 7 }"#);
    partner.catalogue = parse(r#"{ "products": ["acme-us"] }"#);
    partner.cancel_window_s = 60;
    partner.certified_at = Some(AT);
    partner.agreement_signed_at = Some(AT);
    partner
}

/// The grant of a partner whose terms are stored as this version writes them.
fn grant_of_partner(partner: &Partner) -> Grant {
    fn to_json(value: Option<&impl serde::Serialize>) -> Option<String> {
        value.map(|value| serde_json::to_string(value).unwrap())
    }
    let limits = to_json(Some(&partner.limits)).unwrap();
    let ceilings = to_json(Some(&partner.ceilings)).unwrap();
    let [approval_rule, caps, catalogue] = [
        to_json(partner.approval_rule.as_ref()),
        to_json(partner.caps.as_ref()),
        to_json(partner.catalogue.as_ref()),
    ];
    let terms = PartnerTerms {
        limits: &limits,
        ceilings: &ceilings,
        approval_rule: approval_rule.as_deref(),
        caps: caps.as_deref(),
        catalogue: catalogue.as_deref(),
    };
    Grant::of_partner(partner, &terms)
}

#[test]
fn mac_covers_every_field_of_a_partner_that_grants_something() {
    let grant = grant_of_partner(&partner());
    let forgeries: [fn(&mut Partner); 12] = [
        |forged| forged.partner_id = PartnerId::generate(),
        |forged| forged.allowlist = Allowlist::parse(&["0.0.0.0/0"]).unwrap(),
        |forged| forged.suspended = true,
        |forged| forged.codes_blocked = true,
        |forged| forged.limits.orders = None,
        |forged| forged.ceilings.orders = None,
        |forged| forged.approval_rule = None,
        |forged| forged.caps = None,
        |forged| forged.catalogue = None,
        |forged| forged.cancel_window_s = 61,
        |forged| forged.certified_at = None,
        |forged| forged.agreement_signed_at = None,
    ];
    for forge in forgeries {
        let mut forged = partner();
        forge(&mut forged);
        assert_ne!(grant, grant_of_partner(&forged), "{forged:?}");
    }
    let mut renamed = partner();
    "Acme Ltd".clone_into(&mut renamed.name);
    renamed.updated_at = AT;
    assert_eq!(grant, grant_of_partner(&renamed));
}

/// During a rolling upgrade, an older node reads terms that a newer one has written.
#[test]
fn mac_covers_fields_of_the_terms_that_this_version_does_not_know() {
    let partner = partner();
    let grant_of = |limits: &str| {
        let terms = PartnerTerms {
            limits,
            ceilings: "{}",
            approval_rule: None,
            caps: None,
            catalogue: None,
        };
        Grant::of_partner(&partner, &terms)
    };
    assert_ne!(grant_of(r#"{"later": 1}"#), grant_of(r#"{"later": 2}"#));
    assert_ne!(grant_of(r#"{"later": 1}"#), grant_of("{}"));
}
