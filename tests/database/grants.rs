//! HMACs of partners and credentials: what a later version has stored stays valid, and a change without the
//! service does not.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use time::OffsetDateTime;
use time::macros::datetime;
use tokio::runtime::Handle;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::operator::{OperatorIdentity, OperatorName, Role};
use vouchsafe_domain::operator_session::{SessionAuthentication, SignInMethod};
use vouchsafe_domain::partner::Partner;
use vouchsafe_security::credential::{self, Credential};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::registry::PartnerStatus;
use vouchsafe_security::vault::grant_key::{Grant, GrantKey, PartnerTerms};
use vouchsafe_store::operators::{
    IssueTokenOutcome, NewOperatorToken, NewSession, ProviderIdentity, ProviderSignIn, SessionLookup,
    SessionUse,
};
use vouchsafe_store::{AuditActor, LoadedAccess, PgStore, RotationOutcome, RotationRequest};
use vouchsafe_test_harness::Database;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn key() -> GrantKey {
    GrantKey::from_bytes([1; 32])
}

fn generate_credential(partner: &Partner) -> Credential {
    let key_pair = credential::generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    key_pair.to_credential(partner.partner_id, NOW)
}

struct Fixture {
    database: Database,
    store: PgStore,
    connection: PgConnection,
    partner: Partner,
    credential: Credential,
}

impl Fixture {
    async fn new() -> Self {
        let database = Database::create().await;
        let store = PgStore::open(database.service_options(), Handle::current());
        store.grants.unlock(key());
        let partner = Partner::new("Partner".to_owned(), Allowlist::default(), NOW);
        let credential = generate_credential(&partner);
        let created = store
            .partners
            .create(partner.clone(), Some(credential.clone()), AuditActor::service());
        created.await.unwrap();
        Self {
            connection: database.connect().await,
            database,
            store,
            partner,
            credential,
        }
    }

    async fn execute(&mut self, sql: String) {
        self.connection.execute(AssertSqlSafe(sql)).await.unwrap();
    }

    /// Rotates the credential, which stays valid.
    async fn rotate(&self) {
        let rotation = RotationRequest {
            credential_id: self.credential.credential_id,
            next: generate_credential(&self.partner),
            overlap: time::Duration::days(10_000),
            max_per_day: None,
            now: NOW,
        };
        let rotated = self.store.credentials.rotate(rotation, AuditActor::service());
        assert!(matches!(rotated.await.unwrap(), RotationOutcome::Rotated(_)));
    }

    /// Whether the partner is suspended, and the number of credentials that are valid.
    async fn load(&self) -> (bool, usize) {
        let LoadedAccess {
            partners,
            credentials,
            ..
        } = self.store.credentials.load_access().await.unwrap();
        let live = credentials
            .iter()
            .filter(|credential| credential.revoked_at.is_none());
        (partners[0].status != PartnerStatus::Active, live.count())
    }
}

/// During a rolling upgrade, an older node reads and changes rows of a newer one.
#[tokio::test(flavor = "multi_thread")]
async fn rows_with_terms_and_scopes_of_a_later_version_stay_valid() {
    let mut fixture = Fixture::new().await;
    let (partner_id, credential_id) = (
        fixture.partner.partner_id.as_uuid(),
        fixture.credential.credential_id.as_uuid(),
    );
    let limits = r#"{"later": {"b": 1.50, "a": [2]}, "orders": null}"#;
    let caps = r#"{"later": "unknown", "pending_orders": 7}"#;
    let scopes = ["read", "refunds"];
    fixture
        .execute(format!(
            "UPDATE partners SET limits = '{limits}', caps = '{caps}' WHERE partner_id = '{partner_id}';
             UPDATE credentials SET scopes = '{{read,refunds}}' WHERE credential_id = '{credential_id}'"
        ))
        .await;
    assert_eq!(fixture.load().await, (true, 0), "without an HMAC of the change");
    // As the later version computes them, from what Postgres has stored.
    let (limits, ceilings, caps): (String, String, String) =
        sqlx::query_as("SELECT limits::text, ceilings::text, caps::text FROM partners")
            .fetch_one(&mut fixture.connection)
            .await
            .unwrap();
    let terms = PartnerTerms {
        limits: &limits,
        ceilings: &ceilings,
        approval_rule: None,
        caps: Some(&caps),
        catalogue: None,
    };
    let (partner, credential) = (
        Grant::of_partner(&fixture.partner, &terms),
        Grant::of_credential(&fixture.credential, Some(&scopes)),
    );
    let macs = [
        hex::encode(key().mac(&partner)),
        hex::encode(key().mac(&credential)),
    ];
    fixture
        .execute(format!(
            "UPDATE partners SET mac = decode('{}', 'hex');
             UPDATE credentials SET mac = decode('{}', 'hex')",
            macs[0], macs[1]
        ))
        .await;
    assert_eq!(fixture.load().await, (false, 1));

    fixture.rotate().await;
    assert_eq!(fixture.load().await, (false, 2), "old and new credential");
    fixture.database.remove().await;
}

/// Without the name of its predecessor, a credential would outlive the revocation of the one that it came
/// from.
#[tokio::test(flavor = "multi_thread")]
async fn credential_without_the_name_of_its_predecessor_grants_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.rotate().await;
    assert_eq!(fixture.load().await, (false, 2));
    fixture
        .execute("UPDATE credentials SET rotated_from = NULL".to_owned())
        .await;
    assert_eq!(fixture.load().await, (false, 1), "the first one alone");
    fixture.database.remove().await;
}

/// A token must not be further from the authentication of its person than the session that issued it,
/// whatever the row of the session says.
#[tokio::test(flavor = "multi_thread")]
async fn token_of_a_session_has_the_authentication_of_the_session() {
    let mut fixture = Fixture::new().await;
    let operators = fixture.store.operators.clone();
    let authentication = SessionAuthentication {
        method: SignInMethod::Oidc,
        at: Some(NOW),
    };
    let name: OperatorName = "jane@example.com".parse().unwrap();
    let identity = ProviderIdentity {
        identity: OperatorIdentity {
            issuer: "https://id.example".to_owned(),
            subject: "1".to_owned(),
        },
        name: name.clone(),
        role: Role::Admin,
    };
    let [session_hash, token_hash] = [b"session", b"a token"].map(|text| OperatorTokenHash::of(text));
    let session = NewSession {
        hash: session_hash,
        address: "203.0.113.7".to_owned(),
        trace_id: None,
        authentication,
        replaced: None,
    };
    let ProviderSignIn::Started(session) = operators.sign_in_identity(identity, session).await.unwrap()
    else {
        panic!("the account is new");
    };
    let token = NewOperatorToken {
        operator: name,
        hash: token_hash,
        expires_at: Some(session.expires_at),
        session_id: Some(session.session_id),
        activation: None,
    };
    let issued = operators.issue_token(token, AuditActor::service()).await.unwrap();
    assert!(matches!(issued, IssueTokenOutcome::Issued(_)), "{issued:?}");
    let holder = operators.authenticate(token_hash).await.unwrap().unwrap();
    assert_eq!(holder.authentication, Some(authentication));
    fixture
        .execute("UPDATE operator_sessions SET authenticated_at = now()".to_owned())
        .await;
    assert_eq!(operators.authenticate(token_hash).await.unwrap(), None);
    let found = operators.find_session_holder(session_hash, SessionUse::ByOperator);
    assert_eq!(found.await.unwrap(), SessionLookup::Unknown);
    fixture.database.remove().await;
}
