//! Entries of `GET /orders/{order_id}/vouchers/access`: the reads of an order's codes, from the audit log.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::audit_log::AuditRow;
use vouchsafe_domain::ids::CredentialId;

/// A read of an order's voucher codes.
#[derive(Debug, Serialize, ToSchema)]
pub struct VoucherAccess {
    #[serde(skip)]
    audit_id: i64,
    /// When the codes were read.
    #[serde(with = "vouchsafe_domain::timestamp")]
    at: OffsetDateTime,
    /// Credential of the request.
    credential_id: CredentialId,
    /// Address of the client.
    address: String,
    /// Number of vouchers whose codes were returned.
    vouchers: u32,
    /// Trace id of the request: the `X-Trace-ID` of its response.
    #[schema(required)]
    trace_id: Option<String>,
}

/// The recorded state of an audit entry `codes.retrieve`.
#[derive(Deserialize)]
struct CodeRetrievalState {
    credential_id: CredentialId,
    address: String,
    vouchers: u32,
}

impl VoucherAccess {
    /// The read that an audit entry `codes.retrieve` records.
    ///
    /// # Errors
    /// Returns an error for an entry of another action.
    pub fn of(entry: AuditRow) -> Result<Self, serde_json::Error> {
        let state: CodeRetrievalState = serde_json::from_str(entry.after.as_deref().unwrap_or_default())?;
        Ok(Self {
            audit_id: entry.audit_id,
            at: entry.at,
            credential_id: state.credential_id,
            address: state.address,
            vouchers: state.vouchers,
            trace_id: entry.trace_id,
        })
    }

    /// The position in the list.
    #[must_use]
    pub const fn audit_id(&self) -> i64 {
        self.audit_id
    }
}
