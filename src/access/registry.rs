//! Who may call right now?
//!
//! The register holds every partner and credential in memory, so that a check costs no query and a change is in force
//! with the next request. The rules: what is wrong with a credential is never told, and takes the same work whether
//! the key is known or not; the address is looked at only after the secret was right; a revoked credential stays
//! revoked, whatever older copy is put in later.
//!
//! | Checked, in this order | Refused as |
//! |---|---|
//! | key and secret: there once, well formed, known, right, in force | [`AccessError::InvalidCredentials`] |
//! | the address is on the partner's list, and on the credential's where it has one | [`AccessError::IpNotAllowed`] |
//! | the partner is not suspended | [`AccessError::PartnerSuspended`] |

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use time::OffsetDateTime;
use vouchsafe_actors::domain::approval::ApprovalRule;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};
use vouchsafe_actors::domain::scope::Scope;

use super::allowlist::Allowlist;
use super::client_address::ClientAddress;
use super::credential::{ApiKey, ApiKeyHash, ApiSecret, ApiSecretHash, Credential};
use super::environment::Environment;
use super::headers::AuthHeaders;
use super::limits::Limits;

/// How long a credential that has ended is remembered: longer than a change may take that was begun before.
const ENDED_RETENTION: Duration = Duration::from_secs(3_600);

/// Stands in for the stored hash of an unknown key, so that it is compared like a known one. No secret has it: that
/// would be a preimage of zero.
const DUMMY_SECRET_HASH: ApiSecretHash = ApiSecretHash::from_bytes([0; 32]);

/// Whether a partner may call at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartnerStatus {
    Active,
    /// An operator has stopped it.
    Suspended,
}

/// What access knows of a partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerAccess {
    pub partner_id: PartnerId,
    /// Its name, for people.
    pub name: String,
    /// The networks it calls from.
    pub allowlist: Allowlist,
    /// What it may order; `None` is everything.
    pub scope: Option<Arc<Scope>>,
    /// Whether it may call at all.
    pub status: PartnerStatus,
    /// The limits of its own.
    pub limits: Limits,
    /// For how long after its acceptance an order may be cancelled. Seconds.
    pub cancel_window_s: u32,
    /// When its orders wait for an operator; `None` is never.
    pub approval_rule: Option<Arc<ApprovalRule>>,
}

/// Why a request goes no further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Key or secret are missing, repeated, malformed, unknown, wrong, expired or revoked: which is not told.
    #[error("X-API-Key and X-API-Secret must be those of a credential in force")]
    InvalidCredentials,
    /// The credentials are right, and the call comes from elsewhere.
    #[error("{address} is not on the allowlist")]
    IpNotAllowed {
        /// Whose credentials they are.
        partner_id: PartnerId,
        /// Where the call comes from.
        address: ClientAddress,
    },
    /// All is right, and the partner is stopped.
    #[error("the partner is suspended")]
    PartnerSuspended {
        partner_id: PartnerId,
    },
}

/// The partner behind a request, with what the later checks of the same request need.
#[derive(Debug)]
pub struct Caller {
    /// Who it is, as of this request.
    pub partner: Arc<PartnerAccess>,
    /// Which of its credentials it used.
    pub credential_id: CredentialId,
    /// From where, in canonical form.
    pub address: IpAddr,
    /// Names the key without being it: what limits are counted by.
    pub key_hash: ApiKeyHash,
    /// Its first use is to be written down before it is answered.
    pub is_awaiting_first_use: bool,
    /// The secret as presented: it keys the signature.
    pub secret: ApiSecret,
}

/// Every partner and credential of one environment. All methods take `&self`; none waits, and none gives out a lock.
#[derive(Debug)]
pub struct AccessRegistry {
    environment: Environment,
    partners: DashMap<PartnerId, Arc<PartnerAccess>>,
    credentials: DashMap<ApiKeyHash, Arc<Credential>>,
    key_hashes: DashMap<CredentialId, ApiKeyHash>,
}

impl AccessRegistry {
    /// An empty register: it lets nobody in.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            partners: DashMap::new(),
            credentials: DashMap::new(),
            key_hashes: DashMap::new(),
        }
    }

    /// Puts a partner in, or in the place of what was known of it.
    pub fn upsert_partner(&self, partner: PartnerAccess) {
        self.partners.insert(partner.partner_id, Arc::new(partner));
    }

    /// The partner with this id.
    #[must_use]
    pub fn find_partner(&self, partner_id: PartnerId) -> Option<Arc<PartnerAccess>> {
        self.partners.get(&partner_id).map(|partner| Arc::clone(&partner))
    }

    /// Puts a credential in, or in the place of what was known under its key.
    ///
    /// A copy read before a revocation may arrive after it; the revocation stays.
    pub fn upsert_credential(&self, mut credential: Credential) {
        let mut slot = self
            .credentials
            .entry(credential.key_hash)
            .or_insert_with(|| Arc::new(credential.clone()));
        credential.revoked_at = slot.revoked_at.or(credential.revoked_at);
        self.key_hashes.insert(credential.credential_id, credential.key_hash);
        *slot = Arc::new(credential);
    }

    /// Forgets every credential that is not among these.
    pub fn retain_credentials(&self, live: &HashSet<CredentialId>) {
        self.credentials
            .retain(|_, credential| live.contains(&credential.credential_id));
        self.key_hashes.retain(|credential_id, _| live.contains(credential_id));
    }

    /// Takes a credential out of force from the next request on. False if there is none of this id.
    pub fn revoke(&self, credential_id: CredentialId, now: OffsetDateTime) -> bool {
        let key_hash = self.key_hashes.get(&credential_id).map(|key_hash| *key_hash);
        let Some(mut slot) = key_hash.and_then(|key_hash| self.credentials.get_mut(&key_hash)) else {
            return false;
        };
        let revoked_at = slot.revoked_at.or(Some(now));
        Arc::make_mut(&mut slot).revoked_at = revoked_at;
        true
    }

    /// The first use of the credential with this key is written down.
    pub fn record_first_use(&self, key_hash: ApiKeyHash, at: OffsetDateTime) {
        if let Some(mut slot) = self.credentials.get_mut(&key_hash) {
            Arc::make_mut(&mut slot).first_used_at = Some(at);
        }
    }

    /// Forgets credentials that ended more than an hour ago. For house keeping.
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
        // Only now: whoever puts a credential in locks both maps, this one last.
        for credential_id in forgotten {
            self.key_hashes.remove(&credential_id);
        }
    }

    /// Finds out who calls.
    ///
    /// `address` is the client's, after trusted proxies were taken off.
    ///
    /// # Errors
    /// [`AccessError`], in the order of the table above.
    pub fn authenticate(
        &self,
        presented: &AuthHeaders<'_>,
        address: ClientAddress,
        now: OffsetDateTime,
    ) -> Result<Caller, AccessError> {
        let (credential, secret) = self
            .verify_secret(presented, now)
            .ok_or(AccessError::InvalidCredentials)?;
        let partner = self
            .find_partner(credential.partner_id)
            .ok_or(AccessError::InvalidCredentials)?;
        let partner_id = partner.partner_id;
        let admitted = address
            .known_ip()
            .filter(|known| is_address_allowed(&partner, &credential, *known));
        let Some(known) = admitted else {
            return Err(AccessError::IpNotAllowed { partner_id, address });
        };
        if partner.status == PartnerStatus::Suspended {
            return Err(AccessError::PartnerSuspended { partner_id });
        }
        Ok(Caller {
            partner,
            credential_id: credential.credential_id,
            address: known,
            key_hash: credential.key_hash,
            is_awaiting_first_use: credential.is_awaiting_first_use(),
            secret,
        })
    }

    /// The credential whose key and secret these are. All of it is computed before anything is decided, so that an
    /// unknown key takes as long as a wrong secret.
    fn verify_secret(&self, presented: &AuthHeaders<'_>, now: OffsetDateTime) -> Option<(Arc<Credential>, ApiSecret)> {
        let key = ApiKey::parse(presented.api_key.value()?).ok()?;
        let secret = ApiSecret::parse(presented.api_secret.value()?).ok()?;
        let found = self
            .credentials
            .get(&key.hash())
            .map(|credential| Arc::clone(&credential));
        let expected = found
            .as_ref()
            .map_or(DUMMY_SECRET_HASH, |credential| credential.secret_hash);
        let right = expected.matches(&secret.hash());
        let credential = found?;
        (right && key.environment() == self.environment && credential.is_live(now))
            .then_some((credential, secret))
    }
}

/// A credential's list narrows its partner's and never widens it.
fn is_address_allowed(partner: &PartnerAccess, credential: &Credential, address: IpAddr) -> bool {
    let narrower = credential
        .allowlist
        .as_ref()
        .is_none_or(|list| list.contains(address));
    narrower && partner.allowlist.contains(address)
}

#[cfg(test)]
mod tests;
