//! Audit entries of security events.

use std::collections::BTreeSet;

use serde::Serialize;
use time::OffsetDateTime;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_security::security_event::{SecurityEventReason, SecurityEventSummary};

use crate::{AuditActor, AuditLog, NO_STATE};

/// Subject of an entry about clients that have no entry of their own.
const MANY_CLIENTS: &str = "many";

/// The state of an entry.
#[derive(Serialize)]
struct RecordedEvents {
    partner_id: Option<PartnerId>,
    credential_id: Option<CredentialId>,
    /// Address or network of the client.
    client: String,
    count: u64,
    #[serde(with = "vouchsafe_domain::timestamp")]
    first_at: OffsetDateTime,
    #[serde(with = "vouchsafe_domain::timestamp")]
    last_at: OffsetDateTime,
}

/// A row without a valid HMAC, found when it was used or loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ForgedGrant {
    pub table: &'static str,
    /// Subject of the row's audit entries.
    #[serde(skip)]
    pub subject: String,
    /// The partner whom it concerns; `None` for a row of operators.
    pub partner_id: Option<PartnerId>,
}

impl AuditLog {
    /// Writes an entry per forged row.
    #[boxed]
    pub async fn write_forged_grants(&self, forged: BTreeSet<ForgedGrant>) -> Result<(), StoreError> {
        transaction!(self.0, "forged_grant.write", async |transaction| {
            let actor = AuditActor::service();
            let action = SecurityEventReason::ForgedGrant.audit_action();
            for row in &forged {
                crate::write_of_partner(
                    transaction,
                    &actor,
                    row.partner_id,
                    action,
                    &row.subject,
                    NO_STATE,
                    Some(row),
                )
                .await?;
            }
            Ok(())
        })
    }

    /// Writes an entry per summary. After an error that leaves the outcome open they may exist, and be
    /// written again.
    #[boxed]
    pub async fn write_security_events(&self, events: Vec<SecurityEventSummary>) -> Result<(), StoreError> {
        transaction!(self.0, "security_event.write", async |transaction| {
            let actor = AuditActor::service();
            for event in &events {
                let credential = event.key.credential;
                let client = event.key.client;
                let client = client.map_or_else(|| MANY_CLIENTS.to_owned(), |client| client.to_string());
                let credential_id = credential.map(|credential| credential.credential_id);
                let subject = credential_id.map_or_else(|| client.clone(), |id| id.to_string());
                let partner_id = credential.map(|credential| credential.partner_id);
                let recorded = RecordedEvents {
                    partner_id,
                    credential_id,
                    client,
                    count: event.count,
                    first_at: event.first_at,
                    last_at: event.last_at,
                };
                crate::write_of_partner(
                    transaction,
                    &actor,
                    partner_id,
                    event.key.reason.audit_action(),
                    &subject,
                    NO_STATE,
                    Some(&recorded),
                )
                .await?;
            }
            Ok(())
        })
    }
}
