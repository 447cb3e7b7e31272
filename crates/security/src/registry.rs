//! In-memory registry of partners and credentials, and the authentication of requests.
//!
//! Authentication costs no query, and a change applies to the next request. A wrong credential is refused
//! with the same error and at the same cost whether or not its key exists. The address is checked only after
//! the secret. A revoked credential stays revoked, even if an older copy is inserted later.
//!
//! | Check, in this order | Error |
//! |---|---|
//! | key and secret: present once, well formed, known, correct, in force | [`AccessError::InvalidCredentials`] |
//! | the address is on the partner's list, and on the credential's if it has one | [`AccessError::IpNotAllowed`] |
//! | the partner is not suspended, or reads the codes of its orders | [`AccessError::PartnerSuspended`] |

mod partner_access;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::api_scope::{ApiScope, ApiScopes};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::limits::RequestClass;

pub use self::partner_access::{PartnerAccess, PartnerStatus};
use super::client_address::ClientAddress;
use super::credential::{ApiKey, ApiKeyHash, ApiSecret, ApiSecretHash, Credential};
use super::environment::Environment;
use super::headers::AuthHeaders;
use super::security_event::HeldCredential;

/// How long ended credentials are retained: longer than a change that began before may take.
const ENDED_RETENTION: Duration = Duration::from_secs(3_600);

/// Compared in place of an unknown key's hash, so that unknown keys take as long as known ones. No secret
/// matches it: that would be a preimage of zero.
const DUMMY_SECRET_HASH: ApiSecretHash = ApiSecretHash::from_bytes([0; 32]);

/// Why authentication failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Key or secret missing, repeated, malformed, unknown, wrong, expired or revoked. The client does not
    /// learn which.
    #[error("X-API-Key and X-API-Secret must belong to a valid credential")]
    InvalidCredentials,
    /// The credentials are valid, the client address is not allowed.
    #[error("{address} is not on the allowlist")]
    IpNotAllowed {
        credential: HeldCredential,
        address: ClientAddress,
    },
    #[error("the partner is suspended")]
    PartnerSuspended { partner_id: PartnerId },
}

/// The authenticated caller of a request, with the data that later checks need.
#[derive(Debug)]
pub struct Caller {
    /// The partner at the time of this request.
    pub partner: Arc<PartnerAccess>,
    pub credential_id: CredentialId,
    /// The address in canonical form.
    pub address: IpAddr,
    pub key_hash: ApiKeyHash,
    /// Has the rate limits of the credential.
    pub family_id: CredentialId,
    /// The first use of the credential must be recorded before the response.
    pub is_awaiting_first_use: bool,
    /// What the credential may do; `None` is everything.
    pub scopes: Option<ApiScopes>,
    /// The presented secret: it keys the signature.
    pub secret: ApiSecret,
}

impl Caller {
    #[must_use]
    pub fn has_scope(&self, scope: ApiScope) -> bool {
        self.scopes.is_none_or(|scopes| scopes.contains(scope))
    }
}

/// Every partner and credential of one environment. No method blocks on I/O or returns a lock guard.
#[derive(Debug)]
pub struct AccessRegistry {
    environment: Environment,
    partners: DashMap<PartnerId, Arc<PartnerAccess>>,
    credentials: DashMap<ApiKeyHash, Arc<Credential>>,
    /// Stands for the credential of an unknown key: no secret has its hash.
    unknown: Arc<Credential>,
    key_hashes: DashMap<CredentialId, ApiKeyHash>,
    /// Counts the changes of credentials.
    version: AtomicU64,
    /// The families of partners with ceilings, and the version at which they were counted.
    family_counts: DashMap<PartnerId, (u64, u32)>,
}

impl AccessRegistry {
    /// Creates an empty registry, which authenticates no request.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            partners: DashMap::new(),
            credentials: DashMap::new(),
            unknown: Arc::new(unknown_credential()),
            key_hashes: DashMap::new(),
            version: AtomicU64::new(0),
            family_counts: DashMap::new(),
        }
    }

    pub fn upsert_partner(&self, partner: PartnerAccess) {
        self.partners.insert(partner.partner_id, Arc::new(partner));
    }

    #[must_use]
    pub fn find_partner(&self, partner_id: PartnerId) -> Option<Arc<PartnerAccess>> {
        self.partners.get(&partner_id).map(|partner| Arc::clone(&partner))
    }

    /// Inserts or replaces a credential by its key. A copy that was read before a revocation may arrive after
    /// it: the revocation is kept.
    pub fn upsert_credential(&self, mut credential: Credential) {
        let (credential_id, key_hash) = (credential.credential_id, credential.key_hash);
        let previous = {
            let mut slot = self
                .credentials
                .entry(key_hash)
                .or_insert_with(|| Arc::new(credential.clone()));
            credential.revoked_at = slot.revoked_at.or(credential.revoked_at);
            *slot = Arc::new(credential);
            self.key_hashes.insert(credential_id, key_hash)
        };
        // The service changes no key: a database user did. Under both, the credential would outlive its
        // revocation.
        if let Some(previous) = previous.filter(|previous| *previous != key_hash)
            && let Some(mut slot) = self.credentials.get_mut(&previous)
        {
            let former = Arc::make_mut(&mut slot);
            former.revoked_at = former.revoked_at.or(Some(former.not_before));
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Removes every credential that is not in `live`.
    pub fn retain_credentials(&self, live: &HashSet<CredentialId>) {
        self.credentials
            .retain(|_, credential| live.contains(&credential.credential_id));
        self.key_hashes
            .retain(|credential_id, _| live.contains(credential_id));
    }

    /// Revokes a credential from the next request on. Returns false if it is unknown.
    pub fn revoke(&self, credential_id: CredentialId, now: OffsetDateTime) -> bool {
        let key_hash = self.key_hashes.get(&credential_id).map(|key_hash| *key_hash);
        let Some(mut slot) = key_hash.and_then(|key_hash| self.credentials.get_mut(&key_hash)) else {
            return false;
        };
        let revoked_at = slot.revoked_at.or(Some(now));
        Arc::make_mut(&mut slot).revoked_at = revoked_at;
        true
    }

    /// The partner of a credential that is in memory.
    #[must_use]
    pub fn find_owner(&self, credential_id: CredentialId) -> Option<PartnerId> {
        let key_hash = *self.key_hashes.get(&credential_id)?;
        self.credentials
            .get(&key_hash)
            .map(|credential| credential.partner_id)
    }

    pub fn record_first_use(&self, key_hash: ApiKeyHash, at: OffsetDateTime) {
        if let Some(mut slot) = self.credentials.get_mut(&key_hash) {
            Arc::make_mut(&mut slot).first_used_at = Some(at);
        }
    }

    /// The live credentials of a partner with their families, which have their rate limits.
    #[must_use]
    pub fn live_families(
        &self,
        partner_id: PartnerId,
        now: OffsetDateTime,
    ) -> Vec<(CredentialId, CredentialId)> {
        self.credentials
            .iter()
            .filter(|credential| credential.partner_id == partner_id && credential.is_live(now))
            .map(|credential| (credential.credential_id, credential.family_id))
            .collect()
    }

    /// The number of families of a partner's live credentials, or more if some have expired since credentials
    /// last changed. Counted once per change, because it reads all credentials.
    #[must_use]
    pub fn count_families(&self, partner_id: PartnerId, now: OffsetDateTime) -> u32 {
        let version = self.version.load(Ordering::Acquire);
        let counted = self.family_counts.get(&partner_id).map(|counted| *counted);
        if let Some((_, families)) = counted.filter(|(at, _)| *at == version) {
            return families;
        }
        let live = self.live_families(partner_id, now).into_iter();
        let families: HashSet<CredentialId> = live.map(|(_, family_id)| family_id).collect();
        let families = u32::try_from(families.len()).unwrap_or(u32::MAX);
        self.family_counts.insert(partner_id, (version, families));
        families
    }

    /// Evicts credentials that ended more than an hour ago. Called by housekeeping.
    pub fn evict_ended(&self, now: OffsetDateTime) {
        let ended = |credential: &Credential| {
            let end = credential.revoked_at.or(credential.not_after);
            end.is_some_and(|end| end + ENDED_RETENTION <= now)
        };
        let mut forgotten = Vec::new();
        self.credentials.retain(|_, credential| {
            let keep = !ended(credential);
            if !keep {
                forgotten.push(credential.credential_id);
            }
            keep
        });
        // Lock order: `upsert_credential` locks both maps, this one last.
        for credential_id in forgotten {
            self.key_hashes.remove(&credential_id);
        }
    }

    /// Authenticates a request.
    ///
    /// `address` is the client's, after trusted proxies were resolved; `class` is that of the request.
    ///
    /// # Errors
    /// [`AccessError`], in the order of the table above.
    pub fn authenticate(
        &self,
        headers: &AuthHeaders<'_>,
        address: ClientAddress,
        class: RequestClass,
        now: OffsetDateTime,
    ) -> Result<Caller, AccessError> {
        let (credential, secret) = self
            .verify_secret(headers, now)
            .ok_or(AccessError::InvalidCredentials)?;
        let partner = self
            .find_partner(credential.partner_id)
            .ok_or(AccessError::InvalidCredentials)?;
        let partner_id = partner.partner_id;
        let admitted = address
            .known_ip()
            .filter(|known| is_address_allowed(&partner, &credential, *known));
        let Some(known) = admitted else {
            let credential = HeldCredential::of(&credential);
            return Err(AccessError::IpNotAllowed { credential, address });
        };
        if !partner.status.admits(class) {
            return Err(AccessError::PartnerSuspended { partner_id });
        }
        Ok(Caller {
            partner,
            credential_id: credential.credential_id,
            address: known,
            key_hash: credential.key_hash,
            family_id: credential.family_id,
            is_awaiting_first_use: credential.is_awaiting_first_use(),
            scopes: credential.scopes,
            secret,
        })
    }

    /// Returns the credential of this key and secret. An unknown key takes the same steps as a wrong secret,
    /// so that it takes as long.
    fn verify_secret(
        &self,
        headers: &AuthHeaders<'_>,
        now: OffsetDateTime,
    ) -> Option<(Arc<Credential>, ApiSecret)> {
        let key = ApiKey::parse(headers.api_key.value()?).ok()?;
        let secret = ApiSecret::parse(headers.api_secret.value()?).ok()?;
        let found = self
            .credentials
            .get(&key.hash())
            .map(|credential| Arc::clone(&credential));
        let credential = found.unwrap_or_else(|| Arc::clone(&self.unknown));
        let right = credential.secret_hash.matches(&secret.hash());
        let valid = credential.is_live(now) & (key.environment() == self.environment);
        (right & valid).then_some((credential, secret))
    }
}

/// A credential that no partner has.
fn unknown_credential() -> Credential {
    let id = CredentialId::from_uuid(Uuid::nil());
    Credential {
        credential_id: id,
        partner_id: PartnerId::from_uuid(Uuid::nil()),
        key_hash: ApiKeyHash::from_bytes([0; 32]),
        secret_hash: DUMMY_SECRET_HASH,
        allowlist: None,
        scopes: None,
        not_before: OffsetDateTime::UNIX_EPOCH,
        not_after: None,
        revoked_at: None,
        rotated_from: None,
        rotated_at: None,
        first_used_at: None,
        family_id: id,
    }
}

/// A credential's list narrows its partner's list and never widens it.
fn is_address_allowed(partner: &PartnerAccess, credential: &Credential, address: IpAddr) -> bool {
    let narrower = credential
        .allowlist
        .as_ref()
        .is_none_or(|list| list.contains(address));
    narrower && partner.allowlist.contains(address)
}

#[cfg(test)]
mod tests;
