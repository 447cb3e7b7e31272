//! Keyed hash of the rows that grant access: partners, credentials, operators with their tokens, sessions,
//! links and identities.
//!
//! A row without the right HMAC grants nothing, so that access to the database alone, without the vault,
//! gives none. The HMAC covers every field that grants something, and not those that only record what
//! happened. It does not cover time: a row that was right once and is put back, for example one from before a
//! revocation, has the right HMAC. `vouchsafe verify` compares such rows with the audit log.

use hmac::Mac;
use time::OffsetDateTime;
use time::macros::datetime;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::operator::{OperatorAccount, OperatorIdentity, OperatorName};
use vouchsafe_domain::operator_session::SessionAuthentication;
use vouchsafe_domain::partner::Partner;

use super::mac_key::mac_key;
use crate::credential::Credential;
use crate::operator_token::OperatorTokenHash;

/// Separates the derived key. Its first eight bytes exceed the length of every brand.
pub(super) const GRANT_CONTEXT: &[u8] = b"vouchsafe grants v1";

/// Postgres counts time in microseconds from here.
const EPOCH: OffsetDateTime = datetime!(2000-01-01 00:00 UTC);

mac_key! {
    /// The key of the HMACs, as the state of a hash that has read it. It never changes: it comes from that of
    /// the blind index.
    GrantKey
}

impl GrantKey {
    /// The HMAC of a row.
    #[must_use]
    pub fn mac(&self, grant: &Grant) -> Vec<u8> {
        let mac = self.0.clone().chain_update(&grant.0);
        mac.finalize().into_bytes().to_vec()
    }

    /// Whether a row has this HMAC, compared in constant time.
    #[must_use]
    pub fn is_mac_of(&self, mac: Option<&[u8]>, grant: &Grant) -> bool {
        let computed = self.0.clone().chain_update(&grant.0);
        mac.is_some_and(|mac| computed.verify_slice(mac).is_ok())
    }
}

/// What the HMAC of a row covers: a label of its kind and its fields, each with its length, so that no two
/// rows share a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(Vec<u8>);

impl Grant {
    fn of(kind: &str) -> Self {
        Self(Vec::new()).field(kind.as_bytes())
    }

    fn field(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    fn flag(self, is_set: bool) -> Self {
        self.field(&[u8::from(is_set)])
    }

    fn optional(self, bytes: Option<&[u8]>) -> Self {
        let present = self.flag(bytes.is_some());
        bytes.into_iter().fold(present, Self::field)
    }

    fn time(self, at: Option<OffsetDateTime>) -> Self {
        let micros = at.map(|at| (at - EPOCH).whole_microseconds().to_be_bytes());
        self.optional(micros.as_ref().map(<[u8; 16]>::as_slice))
    }

    fn text(self, text: Option<&str>) -> Self {
        self.optional(text.map(str::as_bytes))
    }

    /// A list of texts has one JSON text.
    fn allowlist(self, allowlist: Option<&Allowlist>) -> Self {
        let json = allowlist.map(|allowlist| match serde_json::to_string(allowlist) {
            Ok(json) => json,
            Err(error) => unreachable!("an allowlist is JSON: {error}"),
        });
        self.text(json.as_deref())
    }

    fn labels(self, labels: Option<&[impl AsRef<str>]>) -> Self {
        let count = labels.map(|labels| (labels.len() as u64).to_be_bytes());
        let counted = self.optional(count.as_ref().map(<[u8; 8]>::as_slice));
        let labels = labels.into_iter().flatten();
        labels.fold(counted, |grant, label| grant.field(label.as_ref().as_bytes()))
    }

    /// Everything but the name and the times of the row. A version that adds a column to it includes the
    /// column, after a field with its name, only if it differs from its default: during a rolling upgrade,
    /// older nodes accept all other rows.
    #[must_use]
    pub fn of_partner(partner: &Partner, terms: &PartnerTerms<'_>) -> Self {
        Self::of("partner")
            .field(partner.partner_id.as_uuid().as_bytes())
            .allowlist(Some(&partner.allowlist))
            .flag(partner.suspended)
            .flag(partner.codes_blocked)
            .text(Some(terms.limits))
            .text(Some(terms.ceilings))
            .text(terms.approval_rule)
            .text(terms.caps)
            .text(terms.catalogue)
            .field(&partner.cancel_window_s.to_be_bytes())
            .time(partner.certified_at)
            .time(partner.agreement_signed_at)
    }

    /// A credential that is not revoked: a revoked one grants nothing, and has no HMAC. `scopes` has the
    /// labels as they are stored, also those of a later version.
    #[must_use]
    pub fn of_credential(credential: &Credential, scopes: Option<&[impl AsRef<str>]>) -> Self {
        Self::of("credential")
            .field(credential.credential_id.as_uuid().as_bytes())
            .field(credential.partner_id.as_uuid().as_bytes())
            .field(credential.key_hash.as_bytes())
            .field(credential.secret_hash.as_bytes())
            .allowlist(credential.allowlist.as_ref())
            .labels(scopes)
            .time(credential.not_after)
            .optional(
                credential
                    .rotated_from
                    .map(CredentialId::as_uuid)
                    .as_ref()
                    .map(|id| id.as_bytes().as_slice()),
            )
            .field(credential.family_id.as_uuid().as_bytes())
    }

    /// The account of an operator, also a disabled one: who enables it must not grant a forged role.
    #[must_use]
    pub fn of_operator(account: &OperatorAccount) -> Self {
        Self::of("operator")
            .field(account.name.as_str().as_bytes())
            .field(account.role.into_str().as_bytes())
            .flag(account.disabled)
            .flag(account.active)
    }

    /// A token that is not revoked.
    #[must_use]
    pub fn of_token(token: &TokenGrant<'_>) -> Self {
        Self::of("operator token")
            .field(token.token_id)
            .field(token.operator.as_str().as_bytes())
            .field(token.hash)
            .time(token.expires_at)
            .optional(token.session_id.map(<[u8; 16]>::as_slice))
            .optional(token.activation)
    }

    /// A session that has not ended. Its last use is outside: it extends a session up to its end only.
    #[must_use]
    pub fn of_session(
        session_id: &[u8; 16],
        operator: &OperatorName,
        hash: &OperatorTokenHash,
        expires_at: OffsetDateTime,
        authentication: SessionAuthentication,
    ) -> Self {
        Self::of("operator session")
            .field(session_id)
            .field(operator.as_str().as_bytes())
            .field(hash.as_bytes())
            .time(Some(expires_at))
            .field(authentication.method.into_str().as_bytes())
            .time(authentication.at)
    }

    #[must_use]
    pub fn of_sign_in_link(
        operator: &OperatorName,
        hash: &OperatorTokenHash,
        expires_at: OffsetDateTime,
    ) -> Self {
        Self::of("sign-in link")
            .field(operator.as_str().as_bytes())
            .field(hash.as_bytes())
            .time(Some(expires_at))
    }

    #[must_use]
    pub fn of_identity(identity: &OperatorIdentity, operator: &OperatorName) -> Self {
        Self::of("operator identity")
            .field(identity.issuer.as_bytes())
            .field(identity.subject.as_bytes())
            .field(operator.as_str().as_bytes())
    }
}

/// The terms of a partner in Postgres' text of `jsonb`, of which each value has one. They include fields that
/// a later version has added, so that older nodes accept the row during a rolling upgrade.
#[derive(Debug, Clone, Copy)]
pub struct PartnerTerms<'a> {
    pub limits: &'a str,
    pub ceilings: &'a str,
    pub approval_rule: Option<&'a str>,
    pub caps: Option<&'a str>,
    pub catalogue: Option<&'a str>,
}

/// The fields of a token that grant something.
#[derive(Debug, Clone, Copy)]
pub struct TokenGrant<'a> {
    pub token_id: &'a [u8; 16],
    pub operator: &'a OperatorName,
    pub hash: &'a [u8],
    pub expires_at: Option<OffsetDateTime>,
    /// The session with which it ends.
    pub session_id: Option<&'a [u8; 16]>,
    /// Hash of the code without which it is inactive.
    pub activation: Option<&'a [u8]>,
}

#[cfg(test)]
mod tests;
