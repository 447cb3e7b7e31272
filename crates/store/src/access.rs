//! What access control loads into memory: partners and credentials, with those that grant nothing.

use vouchsafe_domain::partner::Partner;
use vouchsafe_operators::grants::{Grants, StoredGrant};
use vouchsafe_security::credential::Credential;
use vouchsafe_security::registry::PartnerAccess;

/// What access control keeps in memory. A forged credential counts as revoked, a forged partner as suspended.
#[derive(Debug)]
pub struct LoadedAccess {
    pub partners: Vec<PartnerAccess>,
    pub credentials: Vec<Credential>,
}

impl LoadedAccess {
    pub(super) fn of(
        grants: &Grants,
        partners: Vec<(Partner, StoredGrant)>,
        credentials: Vec<(Credential, StoredGrant)>,
    ) -> Self {
        let partners = partners.into_iter().map(|(mut partner, stored)| {
            if !grants.verify(&stored) {
                partner.suspended = true;
                partner.codes_blocked = true;
            }
            PartnerAccess::from(&partner)
        });
        let partners = partners.collect();
        let credentials = credentials.into_iter().map(|(mut credential, stored)| {
            // A revoked one grants nothing, and has no HMAC.
            if credential.revoked_at.is_none() && !grants.verify(&stored) {
                credential.revoked_at = Some(credential.not_before);
            }
            credential
        });
        Self {
            partners,
            credentials: credentials.collect(),
        }
    }
}
