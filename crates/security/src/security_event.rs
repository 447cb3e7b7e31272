//! Security events: requests that show that a secret has leaked or is guessed.

use std::net::IpAddr;

use time::OffsetDateTime;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{CredentialId, PartnerId};

use super::auth_failures::ClientPrefix;
use super::credential::Credential;

/// Why a request is a security event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecurityEventReason {
    /// The key and the secret of a partner are right, and the client address is not on the allowlist.
    ForeignAddress,
    /// An operator's bearer token is wrong, revoked or expired.
    OperatorToken,
    /// The token of a browser's session is unknown.
    OperatorSession,
    /// A row of the database that grants access has no valid HMAC: a database user has written it without the
    /// service.
    ForgedGrant,
    /// A sign-in link is unknown or used up, or the identity provider or the accounts refuse the person.
    OperatorSignIn,
    /// The token of a request for the metrics is wrong.
    MetricsToken,
}

impl SecurityEventReason {
    pub const ALL: [Self; 6] = [
        Self::ForeignAddress,
        Self::ForgedGrant,
        Self::OperatorToken,
        Self::OperatorSession,
        Self::OperatorSignIn,
        Self::MetricsToken,
    ];

    /// The label in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ForeignAddress => "foreign_address",
            Self::ForgedGrant => "forged_grant",
            Self::OperatorToken => "operator_token",
            Self::OperatorSession => "operator_session",
            Self::OperatorSignIn => "operator_sign_in",
            Self::MetricsToken => "metrics_token",
        }
    }

    /// The action in the audit log.
    #[must_use]
    pub const fn audit_action(self) -> AuditAction {
        match self {
            Self::ForeignAddress => AuditAction::ForeignAddress,
            Self::ForgedGrant => AuditAction::ForgedGrant,
            Self::OperatorToken => AuditAction::FailedToken,
            Self::OperatorSession => AuditAction::FailedSession,
            Self::OperatorSignIn => AuditAction::FailedSignIn,
            Self::MetricsToken => AuditAction::FailedMetricsToken,
        }
    }
}

/// The partner's credential that a request has proved to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldCredential {
    pub partner_id: PartnerId,
    pub credential_id: CredentialId,
}

impl HeldCredential {
    #[must_use]
    pub const fn of(credential: &Credential) -> Self {
        Self {
            partner_id: credential.partner_id,
            credential_id: credential.credential_id,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct SecurityEvent {
    pub reason: SecurityEventReason,
    pub credential: Option<HeldCredential>,
    pub address: IpAddr,
}

/// The events that share an audit entry; without a client, those of all clients that have none of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecurityEventKey {
    pub reason: SecurityEventReason,
    pub credential: Option<HeldCredential>,
    pub client: Option<ClientPrefix>,
}

impl SecurityEventKey {
    #[must_use]
    pub fn of(event: &SecurityEvent) -> Self {
        Self {
            reason: event.reason,
            credential: event.credential,
            client: Some(ClientPrefix::of(event.address)),
        }
    }
}

/// Events with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityEventSummary {
    pub key: SecurityEventKey,
    pub count: u64,
    pub first_at: OffsetDateTime,
    pub last_at: OffsetDateTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_action_has_the_label_of_the_reason() {
        for reason in SecurityEventReason::ALL {
            assert_eq!(
                reason.audit_action().into_str(),
                format!("security.{}", reason.as_str())
            );
        }
    }
}
