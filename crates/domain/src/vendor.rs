//! Vendors: their adapters and limits.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;

use crate::labels::labels;

/// Default of concurrent purchases per vendor.
pub const DEFAULT_CONCURRENCY: u16 = 4;

/// Most concurrent purchases per vendor: each may hold a complete response in memory.
pub const MAX_CONCURRENCY: u16 = 64;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = UnknownAdapter, parse_err_fn = UnknownAdapter::new)]
#[derive(utoipa::ToSchema)]
#[schema(
    description = "The adapter of a vendor: `mock` (sandbox, sells fake vouchers), `http` (the vendor protocol) or `manual` \
    (an operator fulfils)."
)]
pub enum AdapterKind {
    /// Sandbox: sells fake vouchers.
    Mock,
    Http,
    Manual,
}

impl AdapterKind {
    /// The adapters that list their sales, for reconciliation.
    pub const WITH_RECORDS: [Self; 2] = [Self::Mock, Self::Http];

    #[must_use]
    pub fn has_records(self) -> bool {
        Self::WITH_RECORDS.contains(&self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `mock`, `http` or `manual`")]
pub struct UnknownAdapter;

impl UnknownAdapter {
    const fn new(_: &str) -> Self {
        Self
    }
}

labels! {
    /// Where the servers of vendors may be.
    pub enum VendorNetwork: "lowercase", "Where the servers of vendors may be: `public` (https to public addresses) or `any`." {
        Public,
        Any,
    }
}

labels! {
    /// State of a vendor's circuit breaker.
    pub enum CircuitState: "snake_case",
        "State of a circuit breaker: `closed` (calls pass), `open` (calls are rejected until the next \
         probe) or `half_open` (one call is a probe, others are rejected)." {
        Closed,
        Open,
        HalfOpen,
    }
}

/// Circuit breaker of a vendor. Each node has its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Circuit {
    /// Name of the node that responded.
    pub node: String,
    /// State.
    pub state: CircuitState,
    /// Time at which the state was entered; null if it has been closed from the beginning.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub since: Option<OffsetDateTime>,
    /// Failed calls in a row.
    pub consecutive_failures: u32,
    /// Time from which the next call is a probe, while the circuit is open.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub next_probe_at: Option<OffsetDateTime>,
}

/// A vendor, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Vendor {
    /// Id, chosen by the operator.
    pub vendor_id: String,
    /// Protocol adapter.
    pub adapter: AdapterKind,
    /// Base URL of the vendor; null for adapters without a server.
    #[schema(required)]
    pub url: Option<String>,
    /// Whether a credential is stored. The credential itself is never returned.
    pub has_credentials: bool,
    /// Maximum of concurrent purchases.
    pub concurrency: u16,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}
