//! Vendors: their adapters and limits.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Default of concurrent purchases per vendor.
pub const DEFAULT_CONCURRENCY: u16 = 4;

/// Most concurrent purchases per vendor: each may hold a complete response in memory.
pub const MAX_CONCURRENCY: u16 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(
    feature = "utoipa",
    schema(
        description = "The adapter of a vendor: `mock` (sandbox, sells fake vouchers), `http` (the vendor protocol) or `manual` \
    (an operator fulfils)."
    )
)]
pub enum AdapterKind {
    /// Sandbox: sells fake vouchers.
    Mock,
    Http,
    Manual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `mock`, `http` or `manual`")]
pub struct UnknownAdapter;

impl AdapterKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Http => "http",
            Self::Manual => "manual",
        }
    }
}

impl FromStr for AdapterKind {
    type Err = UnknownAdapter;

    fn from_str(text: &str) -> Result<Self, UnknownAdapter> {
        let all = [Self::Mock, Self::Http, Self::Manual];
        all.into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownAdapter)
    }
}

/// A vendor, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct Vendor {
    /// Id, chosen by the operator.
    pub vendor_id: String,
    /// Protocol adapter.
    pub adapter: AdapterKind,
    /// Base URL of the vendor; null for adapters without a server.
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub url: Option<String>,
    /// Whether a credential is stored. The credential itself is never returned.
    pub has_credentials: bool,
    /// Maximum of concurrent purchases.
    pub concurrency: u16,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}
